# SPDX-License-Identifier: MIT
"""The code of docs/data.md runs, each block by itself in a folder of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pyio_chunked.java import DataOutput

DOCS = Path(__file__).resolve().parent.parent / "docs" / "data.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCS.read_text(encoding="utf-8"), re.M | re.S)


def write_orders(path: Path) -> None:
    """What the Java program of the docs writes."""
    with DataOutput(path) as out:
        out.writeInt(2)
        for name, day, price, paid in (
            ("Müller 😀", 20260101, 19.99, True),
            ("a\0b", -1, float("nan"), False),
        ):
            out.writeUTF(name)
            out.writeLong(day)
            out.writeDouble(price)
            out.writeBoolean(paid)


def test_there_are_a_first_example_and_three_recipes():
    assert len(blocks("python")) == 4 and len(blocks("java")) == 1


@pytest.mark.parametrize("number", range(4))
def test_block(number, tmp_path):
    code = blocks("python")[number]
    if "numpy" in code:
        pytest.importorskip("numpy")
    if "orders.bin" in code:
        write_orders(tmp_path / "orders.bin")
    script = tmp_path / "recipe.py"
    script.write_text(code, encoding="utf-8")
    subprocess.run([sys.executable, "-W", "error", str(script)], cwd=tmp_path, check=True)


def test_the_java_program_writes_these_bytes(tmp_path):
    java = shutil.which("java")
    if java is None:
        pytest.skip("no JDK: java is not on PATH")
    (tmp_path / "Orders.java").write_text(blocks("java")[0], encoding="utf-8")
    done = subprocess.run(
        [java, "-Dfile.encoding=UTF-8", "Orders.java"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    if "jdk.compiler" in done.stderr:
        pytest.skip("no JDK: this java can't run a source file")
    assert done.returncode == 0, done.stderr
    write_orders(tmp_path / "ours.bin")
    assert (tmp_path / "orders.bin").read_bytes() == (tmp_path / "ours.bin").read_bytes()
