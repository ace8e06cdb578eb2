# SPDX-License-Identifier: MIT
"""The command line's copy."""

from __future__ import annotations

import json
import os
import stat

import pytest
from cli_help import bad, good

import pyio_chunked

pytestmark = pytest.mark.once


def test_copy_file_with_mode_and_times(tmp_path):
    source = tmp_path / "source"
    source.write_bytes(os.urandom(100_000))
    source.chmod(0o640)
    os.utime(source, ns=(10**18, 10**18 + 123_456_789))
    assert good("copy", source, tmp_path / "target") == b""
    target = tmp_path / "target"
    assert target.read_bytes() == source.read_bytes()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert target.stat().st_mtime_ns == 10**18 + 123_456_789


def test_copy_into_a_folder(tmp_path):
    (tmp_path / "source").write_bytes(b"data")
    (tmp_path / "folder").mkdir()
    good("copy", tmp_path / "source", tmp_path / "folder")
    assert (tmp_path / "folder" / "source").read_bytes() == b"data"


def test_overwriting_asks_for_force(tmp_path):
    (tmp_path / "source").write_bytes(b"new")
    (tmp_path / "target").write_bytes(b"old")
    assert "--force" in bad("copy", tmp_path / "source", tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"old"
    good("copy", "--force", tmp_path / "source", tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"new"


@pytest.mark.parametrize("target", ["tree", "tree/inner", "tree/sub/inner", "link/inner"])
def test_a_folder_is_not_copied_into_itself(tmp_path, target):
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    (tmp_path / "tree" / "file").write_bytes(b"data")
    (tmp_path / "link").symlink_to("tree")
    before = sorted(tmp_path.rglob("*"))
    assert "itself" in bad("copy", "--force", tmp_path / "tree", tmp_path / target)
    assert sorted(tmp_path.rglob("*")) == before
    good("copy", tmp_path / "tree", tmp_path / "treetop")  # only begins with its name


def test_copy_onto_itself_keeps_the_file(tmp_path):
    (tmp_path / "file").write_bytes(b"data")
    bad("copy", "--force", tmp_path / "file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"data"


def test_copy_json_is_the_transfer(tmp_path):
    (tmp_path / "source").write_bytes(b"x" * 5000)
    row = json.loads(good("copy", "--json", tmp_path / "source", tmp_path / "target"))
    assert row["count"] == 5000
    assert row["method"] in ("reflink", "copy_file_range", "sendfile", "mapped", "chunked")
    assert set(row) == {"source", "target", *pyio_chunked.Transfer._fields}


def test_copy_standard_streams(tmp_path):
    data = os.urandom(300_000)
    (tmp_path / "source").write_bytes(data)
    assert good("copy", tmp_path / "source", "-") == data
    assert good("copy", "-", "-", data=data) == data
    good("copy", "-", tmp_path / "target", data=data)
    assert (tmp_path / "target").read_bytes() == data


def test_copy_folder(tmp_path):
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    (tmp_path / "tree" / "sub" / "file").write_bytes(b"deep")
    good("copy", tmp_path / "tree", tmp_path / "new")
    assert (tmp_path / "new" / "sub" / "file").read_bytes() == b"deep"
    (tmp_path / "there").mkdir()
    good("copy", tmp_path / "tree", tmp_path / "there")
    assert (tmp_path / "there" / "tree" / "sub" / "file").read_bytes() == b"deep"
    assert "--force" in bad("copy", tmp_path / "tree", tmp_path / "there")
    good("copy", "--force", tmp_path / "tree", tmp_path / "there")


def test_copy_folder_names_each_file_that_failed(tmp_path):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "good").write_bytes(b"data")
    for name in ("one", "two"):
        (tmp_path / "tree" / name).symlink_to("nowhere")
    lines = bad("copy", tmp_path / "tree", tmp_path / "new").splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"pyio-chunked: {tmp_path}/tree/") for line in lines)
    assert (tmp_path / "new" / "good").read_bytes() == b"data"
    assert "one file" in bad("copy", "--atomic", tmp_path / "tree", tmp_path / "other", code=2)


def test_copy_to_and_from_devices(tmp_path):
    (tmp_path / "source").write_bytes(b"data")
    good("copy", tmp_path / "source", os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    bad("copy", "/dev/zero", tmp_path / "target")
    assert not (tmp_path / "target").exists(), "endless: refused before anything is made"


def test_copy_to_a_full_device(tmp_path):
    (tmp_path / "source").write_bytes(b"data" * 1000)
    assert "No space left" in bad("copy", tmp_path / "source", "/dev/full")
