# SPDX-License-Identifier: MIT
"""The demo proves what it shows: it runs, and it fails where bytes differ."""

from __future__ import annotations

import random
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pyio_chunked import _demo

STEPS = ["open the archive", "read, one by one", "read, all at once", "extract", "copy the largest",
         "write an index", "read the index"]  # fmt: skip


@pytest.fixture
def archive(tmp_path: Path, rng: random.Random) -> Path:
    path = tmp_path / "archive.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("folder/", b"")
        for number in range(30):
            target.writestr(f"folder/{number}", b"some text " * number + rng.randbytes(number * 100))
    return path


def test_table_has_every_step(archive: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pyio_chunked", "demo", archive],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.count("|") == 3 and "x" in line[-3:]]
    assert [row[:19].rstrip() for row in rows] == STEPS
    assert "30 members" in done.stdout
    assert "all equal" in done.stdout.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["archive.zip"]


def test_missing_archive_is_an_error(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pyio_chunked", "demo", tmp_path / "none.zip"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "none.zip" in done.stderr


@pytest.mark.parametrize("spoilt", ["extracted", "copied", "index"])
def test_check_finds_a_wrong_byte(archive: Path, tmp_path: Path, spoilt: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    demo = _demo.Demo(archive, work)
    demo.extract_tree()
    for step in demo.steps():
        if step.title not in ("read, one by one", "read, all at once"):
            step.ours()
            step.theirs()
    originals = {info.filename: demo.tree / info.filename for info in demo.members}
    originals["folder/7"] = tmp_path / "original"
    originals["folder/7"].write_bytes((demo.tree / "folder" / "7").read_bytes())
    assert demo.check(originals)[0] == 30
    if spoilt == "extracted":
        path = demo.tree / "folder" / "7"
    elif spoilt == "copied":
        path = next(work.glob("copied-ours-*/0"))
    else:
        path = next(work.glob("index-ours-*/index"))
    path.write_bytes(path.read_bytes()[:-1] + b"\0\0")
    with pytest.raises(AssertionError, match=r"bytes|differ"):
        demo.check(originals)
