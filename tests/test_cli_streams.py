# SPDX-License-Identifier: MIT
"""The command line where streams are pipes, full, or closed."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from cli_help import COMMAND, good

pytestmark = pytest.mark.once


@pytest.fixture
def archive(tmp_path) -> Path:
    path = tmp_path / "some.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("a.txt", b"first line\nsecond line\n" * 50)
        out.writestr("folder/b.csv", b"x,y\n1,2\n")
        out.writestr("folder/c.bin", bytes(range(256)), compress_type=zipfile.ZIP_STORED)
    return path


def test_an_archive_out_of_a_named_pipe(archive, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for verb, words in (("ls", b"3 members"), ("test", b"ok 3 members"), ("info", b"zip")):
        writer = subprocess.Popen(["sh", "-c", 'cat "$1" > "$2"', "sh", archive, pipe])
        assert words in good(verb, pipe)
        assert writer.wait() == 0


@pytest.mark.parametrize(
    "words",
    ["ls some.zip", "cat some.zip a.txt", "copy some.zip -", "copy some.zip b --json", "info some.zip"],
)
def test_closed_standard_output(archive, tmp_path, words):
    before = archive.read_bytes()
    done = subprocess.run(
        ["sh", "-c", f'"$@" {words} >&-', "sh", *COMMAND], cwd=tmp_path, capture_output=True
    )
    assert done.returncode == 1
    assert re.fullmatch(rb"pyio-chunked: .*Bad file descriptor.*\n", done.stderr)
    assert archive.read_bytes() == before


def test_closed_standard_input_and_error(archive, tmp_path):
    before = archive.read_bytes()
    for words in ("ls -", "gunzip - out", "copy - out"):
        done = subprocess.run(
            ["sh", "-c", f'"$@" {words} <&-', "sh", *COMMAND], cwd=tmp_path, capture_output=True
        )
        assert done.returncode == 1
        assert re.fullmatch(rb"pyio-chunked: .*Bad file descriptor.*\n", done.stderr)
    for words, code in (("copy some.zip new", 0), ("copy nothing other", 1), ("copy --nonsense", 2)):
        done = subprocess.run(
            ["sh", "-c", f'"$@" {words} 2>&-', "sh", *COMMAND], cwd=tmp_path, capture_output=True
        )
        assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")
    assert archive.read_bytes() == (tmp_path / "new").read_bytes() == before


def test_a_failure_of_standard_output_is_told_once(archive, tmp_path):
    with open("/dev/full", "wb") as full:
        for words in (["info", "--json", archive], ["copy", archive, tmp_path / "c", "--json"]):
            done = subprocess.run(
                [*COMMAND, *words], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE
            )
            assert done.returncode == 1
            assert done.stderr.count(b"\n") == 1 and b"No space left" in done.stderr


@pytest.mark.parametrize("data", ["zip", "gzip", "neither"])
@pytest.mark.parametrize(
    "words", ["ls -", "cat - a.txt", "test -", "extract - out", "info -", "gunzip - -", "gunzip - out"]
)
def test_nothing_is_left_open(archive, tmp_path, words, data):
    data = {"zip": archive.read_bytes(), "gzip": gzip.compress(b"text"), "neither": b"text"}[data]
    strict = [sys.executable, "-X", "dev", "-W", "error", *COMMAND[1:]]
    done = subprocess.run([*strict, *words.split()], input=data, capture_output=True, cwd=tmp_path)
    fits = data[:2] == (b"\x1f\x8b" if "gunzip" in words else b"PK")
    assert done.returncode == (0 if fits else 1)
    assert done.stderr.count(b"\n") == (0 if fits else 1), done.stderr
