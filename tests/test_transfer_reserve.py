# SPDX-License-Identifier: MIT
"""auto asks for the target's blocks before it copies (ext4; others say no):
only where that pays, and nothing of it is left over or changes an outcome."""

from __future__ import annotations

import errno
import os

import pytest
from transfer_help import FILE_METHODS, counted, fault, file_of, noise

from pyio_chunked import _core, copyfile, transfer

LEAST = 2 << 20  # CIO_RESERVE_NBYTES
DATA = noise(1 << 20) * 24


def reservations(work) -> int:
    with counted() as calls:
        work()
    return calls.get("reserve", 0)


def allocated(path) -> int:
    return path.stat().st_blocks * 512


@pytest.mark.parametrize(("size", "n"), [(LEAST - 1, 0), (LEAST, 1), (LEAST + 1, 1)])
@pytest.mark.parametrize("function", [copyfile, transfer])
def test_from_a_size_on(tmp_path, function, size, n):
    source, target = file_of(tmp_path / "source", DATA[:size]), tmp_path / "target"
    with counted() as calls:
        _core._fault_add("clone", error=errno.EOPNOTSUPP)  # btrfs and XFS share instead
        assert function(source, target).count == size
    assert calls.get("reserve", 0) == n
    assert target.read_bytes() == DATA[:size]
    assert allocated(target) < size + 65536


def test_asked_for_once(tmp_path):
    source, target = file_of(tmp_path / "source", DATA), tmp_path / "target"
    with counted() as calls:
        transfer(source, target, LEAST, source_offset=1)  # off the blocks: nothing can be shared
    assert calls["reserve"] == 1
    assert target.read_bytes() == DATA[1 : LEAST + 1]


@pytest.mark.parametrize("method", FILE_METHODS)
def test_not_by_a_method_that_was_asked_for(tmp_path, method):
    source, target = file_of(tmp_path / "source", DATA[:LEAST]), tmp_path / "target"
    assert reservations(lambda: transfer(source, target, method=method)) == 0


@pytest.mark.parametrize("kind", ["log", "file", "descriptor", "range"])
def test_not_where_others_may_write(tmp_path, kind):
    """Only a target that was made or emptied for this; each process may write its part of a file."""
    source, target = file_of(tmp_path / "source", DATA[: LEAST + 1]), tmp_path / "target"
    with open(target, "ab" if kind == "log" else "wb", buffering=0) as file:
        given = {"log": file, "file": file, "descriptor": file.fileno(), "range": target}[kind]
        offset = {"target_offset": 0} if kind == "range" else {}
        _core._fault_add("clone", error=errno.EXDEV)
        assert reservations(lambda: transfer(source, given, **offset)) == 0
    assert target.read_bytes() == DATA[: LEAST + 1]


def test_not_where_holes_are_kept(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    with open(source, "wb") as file:
        file.write(b"d" * 4096)
        file.truncate(64 << 20)
    assert reservations(lambda: copyfile(source, target, reflink="never")) == 0
    assert allocated(target) <= allocated(source)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EINTR, errno.EOPNOTSUPP,
                                   errno.ENOSYS, errno.EPERM, errno.EFBIG])  # fmt: skip
def test_refused(tmp_path, error):
    """Whether the disk is full is the write's to find out."""
    source, target = file_of(tmp_path / "source", DATA), tmp_path / "target"
    with fault("reserve", error=error), fault("clone", error=errno.EXDEV):
        result = copyfile(source, target)
    assert result.count == len(DATA)
    assert all(method == "reflink" for method, _ in result.fallbacks)
    assert target.read_bytes() == DATA


@pytest.mark.parametrize("left", [0, 1, 5000, LEAST + 1])
def test_nothing_is_left_when_the_source_shrinks(tmp_path, left):
    source, target = file_of(tmp_path / "source", DATA), tmp_path / "target"

    def shrink(done, total):
        os.truncate(source, left)

    with fault("clone", error=errno.EXDEV):
        result = transfer(source, target, progress=shrink)
    assert target.stat().st_size == result.count < len(DATA)
    assert allocated(target) < result.count + (1 << 20)  # ext4 may keep the piece that failed
    assert target.read_bytes() == DATA[: result.count]


def test_nothing_is_left_of_a_copy_that_was_stopped(tmp_path):
    source, target = file_of(tmp_path / "source", DATA), tmp_path / "target"

    def stop(done, total):
        raise KeyError

    with fault("clone", error=errno.EXDEV), pytest.raises(KeyError) as caught:
        copyfile(source, target, progress=stop)
    n = caught.value.transferred
    assert 0 < n == target.stat().st_size < len(DATA)
    assert allocated(target) < n + 65536
    assert target.read_bytes() == DATA[:n]


def test_others_who_write_behind_us_lose_nothing(tmp_path):
    source, target = file_of(tmp_path / "source", DATA), tmp_path / "target"

    def write_behind(done, total):
        with open(target, "ab") as other:
            other.truncate(len(DATA))
            other.write(b"theirs")
        raise KeyError

    with fault("clone", error=errno.EXDEV), pytest.raises(KeyError):
        transfer(source, target, progress=write_behind)
    assert target.read_bytes()[len(DATA) :] == b"theirs"
