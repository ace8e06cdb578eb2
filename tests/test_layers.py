# SPDX-License-Identifier: MIT
"""The rules of the house that a machine can check."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pyio_chunked

ROOT = Path(__file__).resolve().parent.parent
CSRC = ROOT / "csrc"

# A layer and what it may include.
MAY_INCLUDE = {
    "base": {"base"},
    "io": {"base", "io"},
    "transfer": {"base", "io", "transfer"},
    "inflate": {"base", "io", "inflate"},
    "zip": {"base", "io", "transfer", "inflate", "zip"},
    "data": {"base", "io", "data"},
    "tests": {"base", "io", "transfer", "inflate", "zip", "data", "tests"},
}

CORE = {"base", "io", "transfer", "inflate", "zip", "data"}
# The same within the glue, which may include all of the core.
GLUE_MAY_INCLUDE = {
    "": {"", "base"},  # the module and the list of its parts
    "base": {"", "base"},
    "io": {"", "base", "io"},
    "transfer": {"", "base", "io", "transfer"},
    "inflate": {"", "base", "inflate"},
    "zip": {"", "base", "zip"},
    "data": {"", "base", "data"},
}


def c_files() -> list[Path]:
    return sorted(path for path in CSRC.rglob("*") if path.suffix in (".c", ".h"))


def all_files() -> list[Path]:
    python = [
        *ROOT.glob("pyio_chunked/**/*.py*"),
        *ROOT.glob("tests/**/*.py"),
        *ROOT.glob("benchmarks/**/*.py"),
    ]
    own = [path for path in python if path.suffix in (".py", ".pyi")]
    return sorted([*c_files(), *own, ROOT / "setup.py", ROOT / "dev"])


def test_folders_are_the_layers():
    assert {path.parent.relative_to(CSRC).parts[0] for path in c_files()} == {*MAY_INCLUDE, "glue"}
    folders = {path.parent.relative_to(CSRC / "glue").as_posix() for path in CSRC.glob("glue/**/*.c")}
    assert folders == {*GLUE_MAY_INCLUDE, "."} - {""}


def test_core_never_includes_python():
    pattern = re.compile(r'#\s*include\s*[<"]Python\.h')
    files = [path for path in c_files() if path.relative_to(CSRC).parts[0] != "glue"]
    assert files
    assert [str(path) for path in files if pattern.search(path.read_text())] == []


def test_includes_go_one_way():
    wrong = []
    for path in c_files():
        layer, *inner = path.relative_to(CSRC).parts[:-1]
        for name in re.findall(r'#\s*include\s*"([^"]+)"', path.read_text()):
            of, *folders = name.split("/")[:-1] or [""]
            if layer != "glue":
                right = of in MAY_INCLUDE[layer] and not folders
            elif of == "glue":
                right = "".join(folders) in GLUE_MAY_INCLUDE["".join(inner)]
            else:
                right = of in CORE and not folders
            if not right:
                wrong.append(f"{path.relative_to(ROOT)} includes {name}")
    assert wrong == []


def first_comment(text: str) -> str:
    found = re.match(
        r"(?:#!.*\n)?(/\*.*?\*/|(?:#.*\n)+(?:\"\"\".*?\"\"\")?|\"\"\".*?\"\"\")", text, re.DOTALL
    )
    return found.group(0) if found else ""


def test_long_files_say_why():
    """Above 600 lines the first comment has a line "Length" with the reason."""
    wrong = []
    for path in all_files():
        text = path.read_text()
        lines = text.count("\n")
        if lines > 600 and not re.search(r"\bLength\b", first_comment(text)):
            wrong.append(f"{path.relative_to(ROOT)}: {lines} lines")
    assert wrong == []


def test_every_c_file_names_its_licence_once():
    wrong = [
        str(path.relative_to(ROOT))
        for path in c_files()
        if sum(
            line.strip("/*# ").startswith("SPDX-License-Identifier:")
            for line in path.read_text().splitlines()
        )
        != 1
    ]
    assert wrong == []


def test_extension_exports_only_its_init():
    nm = shutil.which("nm")
    assert nm, "nm comes with the compiler"
    out = subprocess.run(
        [nm, "-D", "--defined-only", pyio_chunked._core.__file__], capture_output=True, text=True, check=True
    ).stdout
    names = {line.split()[-1] for line in out.splitlines()}
    if os.environ.get("PYIO_TEST_BUILD") == "sanitize":
        names = {name for name in names if not name.startswith(("__asan", "__odr_asan", "__ubsan"))}
    assert names == {"PyInit__core"}


def test_public_names_say_where_they_live():
    wrong = []
    for name in dir(pyio_chunked):
        value = getattr(pyio_chunked, name)
        if name.startswith("_") or inspect.ismodule(value):
            continue
        module = getattr(value, "__module__", "pyio_chunked")
        if callable(value) and module != "pyio_chunked":
            wrong.append(f"{name} says {module}")
    assert wrong == []


def test_every_name_of_dir_is_there():
    for name in dir(pyio_chunked):
        assert getattr(pyio_chunked, name) is not None or name.startswith("__")


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


FORBIDDEN = {"zipfile", "gzip", "zlib", "typing", "tempfile", "concurrent.futures", "numpy", "fsspec", "tqdm", "dask",
             "threading", "shutil", "bz2", "lzma", "inspect", "subprocess"}  # fmt: skip


def test_import_brings_in_little():
    done = run(
        "import sys, io, os\nbefore = set(sys.modules)\nimport pyio_chunked\nprint(*sorted(set(sys.modules) - before))"
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) & FORBIDDEN == set()


def test_import_costs_little():
    """CPU time of the import alone, bytecode warm; the quietest of ten runs
    counts, as a busy machine can only make it longer."""
    code = "import time; t = time.process_time_ns(); import pyio_chunked; print(time.process_time_ns() - t)"
    times = []
    for _ in range(10):
        done = run(code, PYTHONDONTWRITEBYTECODE="")
        assert done.returncode == 0, done.stderr
        times.append(int(done.stdout))
        if times[-1] < 30_000_000:
            return
    pytest.fail(f"import takes {min(times) / 1e6:.1f} ms of CPU time")
