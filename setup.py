# SPDX-License-Identifier: MIT
"""The extension module pyio_chunked._core, and what it finds on this machine.

Environment
    PYIO_CHUNKED_NO_LIBDEFLATE=1  build without libdeflate though it is there
    PYIO_CHUNKED_NO_ISAL=1        build without ISA-L though it is there
    PYIO_CHUNKED_REQUIRE=a,b      fail where one of libdeflate, isal is not used
    PYIO_CHUNKED_PORTABLE=1       POSIX only; what other systems than Linux get
    PYIO_SANITIZE=1               AddressSanitizer and UndefinedBehaviorSanitizer
    PYIO_WERROR=1                 warnings are errors
    PKG_CONFIG                    the pkg-config to ask

Objects are kept per set of flags under build/, so that builds of different
engines live side by side, and only what changed is compiled again.
"""

import hashlib
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

LAYERS = ("base", "io", "transfer", "inflate", "zip", "data")
WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Wshadow",
    "-Wconversion",
    "-Wstrict-prototypes",
    "-Wmissing-prototypes",
    "-Wswitch-enum",
    "-Wvla",
    "-Wundef",
    "-Wimplicit-fallthrough",
]

# name: (pkg-config package, library, header, a call that must link)
LIBRARIES = {
    "zlib": ("zlib", "z", "zlib.h", "zlibVersion()"),
    "libdeflate": ("libdeflate", "deflate", "libdeflate.h", "libdeflate_alloc_decompressor()"),
    "isal": ("libisal", "isal", "isa-l/igzip_lib.h", "isal_inflate_init(0)"),
}
PACKAGES = {
    "zlib": "zlib1g-dev or zlib-devel",
    "libdeflate": "libdeflate-dev or libdeflate-devel",
    "isal": "libisal-dev or isa-l-devel",
}


def switched_on(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


def portable() -> bool:
    return switched_on("PYIO_CHUNKED_PORTABLE") or not sys.platform.startswith("linux")


def pkg_config(package: str, option: str) -> list[str]:
    """What pkg-config says, or nothing: the trial compile decides."""
    command = shlex.split(os.environ.get("PKG_CONFIG", "pkg-config"))
    try:
        done = subprocess.run([*command, option, package], capture_output=True, text=True)
    except OSError:
        return []
    return shlex.split(done.stdout) if done.returncode == 0 else []


class Build(build_ext):
    """build_ext that asks for libraries first and compiles only what changed."""

    def finalize_options(self) -> None:
        super().finalize_options()
        names = ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "PKG_CONFIG_PATH")
        values = [f"{name}={os.environ.get(name, '')}" for name in names]
        values += [str(switched_on(name)) for name in sorted(SWITCHES)]
        key = hashlib.sha256("\n".join(values).encode()).hexdigest()[:12]
        self.build_temp = os.path.join(self.build_temp, key)
        self.force = True  # the objects know whether they are new enough

    def build_extensions(self) -> None:
        (extension,) = self.extensions
        used = self.find_libraries(extension)
        for name in ("libdeflate", "isal"):
            extension.define_macros.append((f"CIO_HAVE_{name.upper()}", str(int(name in used))))
            if name not in used:
                engine = f"csrc/inflate/cio_engine_{name}.c"
                extension.sources = [path for path in extension.sources if path != engine]
        version = self.distribution.get_version()
        extension.define_macros.append(("PYIO_VERSION", f'"{version}"'))
        self.compile_all = self.compiler.compile
        self.compiler.compile = self.compile_changed
        super().build_extensions()

    def find_libraries(self, extension: Extension) -> set[str]:
        required = set(filter(None, re.split(r"[,\s]+", os.environ.get("PYIO_CHUNKED_REQUIRE", ""))))
        if unknown := required - LIBRARIES.keys():
            sys.exit(f"PYIO_CHUNKED_REQUIRE names {', '.join(sorted(unknown))}; it may name "
                     f"{', '.join(LIBRARIES)}.")  # fmt: skip
        used = set()
        for name, (package, library, header, call) in LIBRARIES.items():
            if name != "zlib" and switched_on(f"PYIO_CHUNKED_NO_{name.upper()}"):
                continue
            compile_args = pkg_config(package, "--cflags")
            link_args = pkg_config(package, "--libs") or [f"-l{library}"]
            if self.links(header, call, compile_args, link_args):
                used.add(name)
                extension.extra_compile_args += compile_args
                extension.extra_link_args += link_args
        for name in sorted((required | {"zlib"}) - used):
            if switched_on(f"PYIO_CHUNKED_NO_{name.upper()}"):
                sys.exit(f"PYIO_CHUNKED_REQUIRE and PYIO_CHUNKED_NO_{name.upper()} contradict each other.")
            why = ", which PYIO_CHUNKED_REQUIRE names" if name in required else ""
            sys.exit(
                f"pyio_chunked needs {name}{why}, but a program with <{LIBRARIES[name][2]}> doesn't compile"
                f" and link here: install {PACKAGES[name]}, and a C compiler where there is none."
            )
        return used

    def links(self, header: str, call: str, compile_args: list[str], link_args: list[str]) -> bool:
        compiler = list(self.compiler.compiler_so)
        flags = shlex.split(os.environ.get("CPPFLAGS", "")) + shlex.split(os.environ.get("LDFLAGS", ""))
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "trial.c")
            source.write_text(f"#include <{header}>\nint main(void) {{ (void){call}; return 0; }}\n")
            command = [*compiler, "-w", *compile_args, str(source), "-o", str(source.with_suffix("")),
                       *flags, *link_args]  # fmt: skip
            try:
                return subprocess.run(command, capture_output=True).returncode == 0
            except OSError:
                return False

    def compile_changed(self, sources, output_dir=None, macros=None, include_dirs=None, debug=0,
                        extra_preargs=None, extra_postargs=None, depends=None):  # fmt: skip
        """In place of compiler.compile: all at once, and only what changed."""
        objects = self.compiler.object_filenames(sources, output_dir=output_dir)
        flags = repr((self.compiler.compiler_so, macros, include_dirs, extra_postargs))

        def one(source: str, object_file: str) -> None:
            if up_to_date(object_file, flags):
                return
            # What includes Python.h can't be pedantic: Python's headers aren't.
            pedantic = [] if source.startswith("csrc/glue/") else ["-Wpedantic"]
            note = Path(object_file + ".flags")
            note.unlink(missing_ok=True)
            self.compile_all([source], output_dir, macros, include_dirs, debug, ["-MMD"],
                             [*extra_postargs, *pedantic])  # fmt: skip
            note.write_text(flags)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(one, sources, objects))
        return objects


def up_to_date(object_file: str, flags: str) -> bool:
    """The object was made with these flags, after the last change of all it includes."""
    try:
        if Path(object_file + ".flags").read_text() != flags:
            return False
        made = os.stat(object_file).st_mtime_ns
        rule = Path(object_file).with_suffix(".d").read_text().replace("\\\n", " ")
        return all(os.stat(name).st_mtime_ns <= made for name in shlex.split(rule.split(":", 1)[1]))
    except (OSError, IndexError):
        return False


def sources() -> list[str]:
    left_out = "_linux.c" if portable() else "_portable.c"
    return sorted(
        path
        for folder in (*LAYERS, "glue", "glue/*")
        for path in glob(f"csrc/{folder}/*.c")
        if not path.endswith(left_out)
    )


SWITCHES = ("PYIO_CHUNKED_NO_LIBDEFLATE", "PYIO_CHUNKED_NO_ISAL", "PYIO_CHUNKED_PORTABLE",
            "PYIO_SANITIZE", "PYIO_WERROR")  # fmt: skip

if sys.platform == "win32":
    sys.exit("pyio_chunked needs a POSIX system: it can't be built on Windows.")
if sys.platform == "darwin" and not switched_on("PYIO_CHUNKED_PORTABLE"):
    sys.exit("pyio_chunked was never built on macOS: PYIO_CHUNKED_PORTABLE=1 tries its POSIX-only build.")

os.chdir(Path(__file__).resolve().parent)

compile_args = [
    "-std=c11",
    "-fvisibility=hidden",
    "-pthread",
    # Python's own headers as system headers: warnings are for our code.
    *("-isystem", sysconfig.get_path("include")),
    *WARNINGS,
]
link_args = ["-pthread"]
if switched_on("PYIO_SANITIZE"):
    flags = [
        "-fsanitize=address,undefined",
        "-fno-omit-frame-pointer",
        "-fno-sanitize-recover=undefined",
        "-g",
    ]
    compile_args += flags
    link_args += flags
if switched_on("PYIO_WERROR"):
    compile_args.append("-Werror")

# glibc hides what isn't POSIX by these; other C libraries need nothing.
feature = ("_POSIX_C_SOURCE", "200809L") if portable() else ("_GNU_SOURCE", None)

setup(
    ext_modules=[
        Extension(
            "pyio_chunked._core",
            sources(),
            depends=glob("csrc/**/*.h", recursive=True),
            include_dirs=["csrc"],
            define_macros=[
                feature,
                ("_FILE_OFFSET_BITS", "64"),
                ("CIO_PORTABLE", str(int(portable()))),
            ],
            extra_compile_args=compile_args,
            extra_link_args=link_args,
        )
    ],
    cmdclass={"build_ext": Build},
)
