# SPDX-License-Identifier: MIT
"""Who says what about the archives of hostile.py: writes docs/hostile.md.

    python tests/hostile_peers.py [PYTHON]      # another Python, whose zipfile is asked

Each program reads or extracts every archive in a folder of its own, in at most 20 s of CPU.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hostile import CORPUS, Hostile, members

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "hostile.md"
SECONDS = 20
# Not on a disk where there is memory: some archives have 65,537 members.
SCRATCH = "/dev/shm" if os.path.isdir("/dev/shm") else None

ZIPFILE = """
import os, sys, warnings, zipfile
warnings.simplefilter("ignore")
for path in sys.argv[1:]:
    try:
        with zipfile.ZipFile(path) as zf:
            good = bad = 0
            for info in zf.infolist():
                try:
                    good += len(zf.read(info)) == info.file_size
                    bad += info.file_size != len(zf.read(info))
                except Exception:
                    bad += 1
        print(f"reads {good}" if not bad else f"reads {good} of {good + bad}" if good else "refuses")
    except Exception:
        print("refuses")
"""


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))


def files_in(folder: Path) -> int:
    """Counted by find: bsdtar nests 32,000 folders, deeper than Python can follow."""
    done = subprocess.run(["find", folder, "!", "-type", "d"], capture_output=True, check=True)
    return done.stdout.count(b"\n")


def extracted_by(command: list[str], path: Path) -> str:
    """Runs an extraction in a folder of its own and looks what it left, and where."""
    root = Path(tempfile.mkdtemp(dir=SCRATCH))
    try:
        target = root / "deep" / "er" / "in"
        target.mkdir(parents=True)
        try:
            done = subprocess.run(
                [part.replace("ARCHIVE", str(path)) for part in command],
                cwd=target,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=3 * SECONDS,
                preexec_fn=bounded,
            )
            status = done.returncode
        except subprocess.TimeoutExpired:
            return "**hangs**"
        inside, outside = files_in(target), files_in(root) - files_in(target)
        outside += os.path.lexists("/tmp/pyio-evil")
        Path("/tmp/pyio-evil").unlink(missing_ok=True)
        word = f"writes {inside}" if status == 0 else f"writes {inside}, complains" if inside else "refuses"
        if status < 0:
            word = f"**signal {-status}**"
        return word + (", **outside**" if outside else "")
    finally:
        subprocess.run(["rm", "-rf", root], check=True)


def zipfile_says(python: str, paths: list[Path]) -> list[str]:
    done = subprocess.run([python, "-c", ZIPFILE, *paths], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def java_says(paths: list[Path]) -> list[tuple[str, str]]:
    done = subprocess.run(
        ["java", "-Xmx512m", HERE / "java" / "HostileVerdict.java", *paths],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == [str(path) for path in paths]
    return [(row[1], row[2]) for row in rows]


def version(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout or done.stderr).splitlines()[0].strip()


def ours(h: Hostile, profile: str) -> str:
    verdict = getattr(h, profile)
    if verdict == "ok":
        return "reads all"
    if verdict == "open":
        return "refuses to open"
    places = members(verdict, 0)
    return "refuses all" if not places else f"refuses {len(places)}"


HEAD = """# Hostile archives: who says what

{count} archives made by `tests/hostile.py`; `tests/test_hostile.py` holds this package to the first three columns
in every build, with a bound on time and memory. The others were asked on one machine: {versions}.
`python tests/hostile_peers.py` writes this page.

"refuses n" counts members that are refused when read (the others are right); "writes n" counts files that an
extraction left in its folder, "complains" an exit status other than 0. A reading program that sees another number
of members than its neighbour is what an attacker looks for: that is the case for `profile="strict"`.

"""


def main() -> None:
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    missing = [name for name in ("java", "unzip", "bsdtar") if shutil.which(name) is None]
    if missing:
        sys.exit(f"not found: {', '.join(missing)}")
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        paths = []
        for i, h in enumerate(CORPUS):
            path = Path(folder, f"{i:03}.zip")
            path.write_bytes(h.make())
            paths.append(path)
        zipfile_rows, java_rows = zipfile_says(python, paths), java_says(paths)
        other = [
            [extracted_by([*command, "ARCHIVE"], path) for path in paths]
            for command in (["unzip", "-qq", "-o", "-P", "x"], ["bsdtar", "--passphrase", "x", "-xf"])
        ]
    versions = "; ".join(
        [
            f"zipfile of {version(python, '--version')}",
            version("java", "-version"),
            version("unzip", "-v").split(",")[0],
            version("bsdtar", "--version"),
        ]
    )
    lines = [
        "| archive | compat | safe, extraction | strict | check() names"
        " | zipfile | java ZipFile | java stream | unzip | bsdtar |",
        "|" + "---|" * 10,
    ]
    for h, z, j, u, b in zip(CORPUS, zipfile_rows, java_rows, *other, strict=True):
        name = h.name.replace("|", "\\|").replace("<", "&lt;")
        cells = [
            name,
            *(ours(h, p) for p in ("compat", "safe", "strict")),
            ", ".join(h.rules) or "-",
            z,
            *j,
            u,
            b,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    PAGE.write_text(HEAD.format(count=len(CORPUS), versions=versions) + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
