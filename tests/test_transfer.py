# SPDX-License-Identifier: MIT
"""transfer: every method, ranges and positions, one file on both sides."""

from __future__ import annotations

import errno
import io
import os
import shutil
import sys

import pytest
from transfer_help import CHUNK, FILE_METHODS, counted, fault, file_of, noise

import pyio_chunked
from pyio_chunked import Transfer, probe, transfer

DATA = noise(3 * CHUNK + 77)


@pytest.fixture
def source(tmp_path):
    return file_of(tmp_path / "source", DATA)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "target"


# ------------------------------------------------------------------ methods


@pytest.mark.parametrize("method", FILE_METHODS)
def test_each_method_is_forced(source, target, method):
    result = transfer(source, target, method=method)
    assert result == Transfer(len(DATA), method, 0, ())
    assert target.read_bytes() == DATA


def test_auto_says_what_it_did(source, target):
    result = transfer(source, target)
    assert target.read_bytes() == DATA
    assert result.count == len(DATA)
    assert result.method in probe(source, target)
    tried = [name for name, _ in result.fallbacks]
    assert tried == list(probe(source, target))[: len(tried)]


@pytest.mark.parametrize("size", [0, 1, 8191, 8192, 8193, 65535, 65536, CHUNK - 1, CHUNK, CHUNK + 1])
@pytest.mark.parametrize("method", ["auto", *FILE_METHODS])
def test_lengths_at_bounds(tmp_path, target, method, size):
    data = noise(size)
    source = file_of(tmp_path / "source", data)
    result = transfer(source, target, method=method)
    assert (result.count, target.read_bytes()) == (size, data)
    assert method in ("auto", result.method)


@pytest.mark.parametrize("size", [(8 << 20) - 1, 8 << 20, (8 << 20) + 1])
@pytest.mark.parametrize("method", FILE_METHODS)
def test_lengths_around_a_slice(tmp_path, target, method, size):
    data = noise(4096) * (size // 4096 + 1)
    source = file_of(tmp_path / "source", data[:size])
    assert transfer(source, target, method=method) == (size, method, 0, ())
    assert target.read_bytes() == data[:size]


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_mapped_from_its_threshold_on_where_direct_is_refused(tmp_path, more):
    """An append-mode target takes nothing but write(2)."""
    data = noise(100_000 + more)
    source = file_of(tmp_path / "source", data)
    with open(tmp_path / "target", "ab") as target:
        result = transfer(source, target, threshold=100_000)
    assert result == (len(data), "chunked" if more < 0 else "mapped", 0, ())
    assert (tmp_path / "target").read_bytes() == data


def test_append_errors_tell_the_position_in_the_file(source, target):
    target.write_bytes(b"old")
    with open(target, "ab") as file, fault("write", error=errno.ENOSPC, first=2):
        with pytest.raises(OSError) as caught:
            transfer(source, file, chunk_size=1000)
    assert (caught.value.transferred, caught.value.source_offset) == (1000, 1000)
    assert caught.value.target_offset == 1003


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_mapped_from_its_threshold_on_where_direct_fails(tmp_path, target, more):
    data = noise(100_000 + more)
    source = file_of(tmp_path / "source", data)
    for call in ("clone", "copy_file_range", "sendfile"):
        pyio_chunked._core._fault_add(call, error=errno.EXDEV, times=100)
    result = transfer(source, target, threshold=100_000)
    assert result.method == ("chunked" if more < 0 else "mapped")
    assert (result.count, target.read_bytes()) == (len(data), data)


def test_the_process_threshold_is_the_default(tmp_path):
    source = file_of(tmp_path / "source", noise(5000))
    before = pyio_chunked.thresholds()
    try:
        for value, method in ((5000, "mapped"), (5001, "chunked"), (sys.maxsize, "chunked")):
            assert pyio_chunked.set_thresholds(mapped=value).mapped == value
            with open(tmp_path / f"target{value}", "ab") as target:
                assert transfer(source, target).method == method
    finally:
        assert pyio_chunked.set_thresholds(**before._asdict()) == before


def test_forced_method_that_cannot_be_had(source, target, tmp_path):
    with pytest.raises(io.UnsupportedOperation, match="splice"):
        transfer(source, target, method="splice")
    assert not target.exists()
    with pytest.raises(io.UnsupportedOperation, match="mapped"):
        transfer(io.BytesIO(DATA), target, method="mapped")
    with open(tmp_path / "append", "ab") as append, pytest.raises(io.UnsupportedOperation):
        transfer(source, append, method="copy_file_range")
    with pytest.raises(ValueError, match="method"):
        transfer(source, target, method="magic")
    assert not target.exists()


@pytest.mark.parametrize("method", FILE_METHODS)
def test_forced_method_never_gives_way(source, target, method):
    call = {"mapped": "mmap", "chunked": "pread"}.get(method, method)
    with fault(call, error=errno.EXDEV), pytest.raises(OSError) as caught:
        transfer(source, target, method=method)
    assert caught.value.errno == errno.EXDEV
    assert (caught.value.filename, caught.value.filename2) == (str(source), str(target))
    assert not target.exists()


# --------------------------------------------------------------- ranges


@pytest.mark.parametrize("method", ["auto", *FILE_METHODS])
@pytest.mark.parametrize("given", ["path", "fd", "file"])
def test_ranges_on_both_sides(source, target, method, given):
    target.write_bytes(b"." * 1000)
    if given == "path":
        result = transfer(source, target, 5000, source_offset=4097, target_offset=501, method=method)
    else:
        with open(source, "rb") as one, open(target, "r+b") as two:
            one.seek(11)
            two.seek(22)
            ends = (one.fileno(), two.fileno()) if given == "fd" else (one, two)
            result = transfer(*ends, 5000, source_offset=4097, target_offset=501, method=method)
            # With an offset the own position stays where it is.
            assert (one.tell(), two.tell()) == (11, 22)
            assert os.lseek(two.fileno(), 0, os.SEEK_CUR) == 22
    assert result.count == 5000
    assert target.read_bytes() == b"." * 501 + DATA[4097 : 4097 + 5000]


@pytest.mark.parametrize("method", ["auto", *FILE_METHODS])
def test_positions_end_behind_the_last_byte(source, target, method):
    with open(source, "rb", buffering=0) as one, open(target, "w+b", buffering=0) as two:
        one.seek(100)
        two.write(b"head")
        assert transfer(one, two, 1000, method=method).count == 1000
        assert (one.tell(), two.tell()) == (1100, 1004)
        assert transfer(one.fileno(), two.fileno(), method=method).count == len(DATA) - 1100
        assert (one.tell(), two.tell()) == (len(DATA), 4 + len(DATA) - 100)
    assert target.read_bytes() == b"head" + DATA[100:]


@pytest.mark.parametrize("method", ["auto", *FILE_METHODS])
def test_buffers_of_file_objects_are_honoured(source, target, method):
    with open(source, "rb") as one, open(target, "wb") as two:
        head = one.read(10)  # has read ahead
        two.write(b"pending ")
        assert transfer(one, two, 1000, method=method).count == 1000
        assert (one.tell(), two.tell()) == (1010, 1008)
        assert one.read(5) == DATA[1010:1015]
        two.write(b"!")
        assert transfer(one, two, method=method).count == len(DATA) - 1015
    assert target.read_bytes() == b"pending " + DATA[10:1010] + b"!" + DATA[1015:]
    assert head == DATA[:10]


def test_buffers_of_our_own_file(source, target):
    with pyio_chunked.open(source) as one, pyio_chunked.open(target, "wb") as two:
        assert one.read(10) == DATA[:10]
        two.write(b"pending ")
        assert transfer(one, two, 1000).count == 1000
        assert (one.tell(), two.tell()) == (1010, 1008)
        assert one.read(5) == DATA[1010:1015]
        two.write(b"!")
        assert transfer(one, two).count == len(DATA) - 1015
    assert target.read_bytes() == b"pending " + DATA[10:1010] + b"!" + DATA[1015:]


def test_random_access_file_on_both_sides(tmp_path):
    path = file_of(tmp_path / "both", DATA)
    with open(path, "r+b") as file:
        file.seek(5)
        file.write(b"new")
        file.seek(0)
        out = io.BytesIO()
        assert transfer(file, out, 10).count == 10
        assert out.getvalue() == DATA[:5] + b"new" + DATA[8:10]
        assert transfer(io.BytesIO(b"abc"), file).count == 3
        assert file.tell() == 13
        assert file.read(1) == DATA[13:14]
    assert path.read_bytes() == DATA[:5] + b"new" + DATA[8:10] + b"abc" + DATA[13:]


def test_a_count_beyond_the_end_stops_at_the_end(source, target):
    assert transfer(source, target, 10 * len(DATA)).count == len(DATA)
    assert transfer(source, target, 10, source_offset=len(DATA) + 5).count == 0
    assert target.read_bytes() == b""
    assert transfer(source, target, 0).count == 0


def test_target_offset_keeps_what_is_around(source, target):
    target.write_bytes(b"x" * 100)
    transfer(source, target, 10, target_offset=50)
    assert target.read_bytes() == b"x" * 50 + DATA[:10] + b"x" * 40
    transfer(source, target, 3, target_offset=200)
    assert target.read_bytes()[100:] == bytes(100) + DATA[:3]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"count": -1}, ValueError),
        ({"source_offset": -1}, ValueError),
        ({"target_offset": -1}, ValueError),
        ({"count": 2**63}, OverflowError),
        ({"source_offset": 2**63 - 1, "count": 2}, OverflowError),
        ({"target_offset": 2**63 - 1, "count": 2}, OverflowError),
        ({"chunk_size": 0}, ValueError),
        ({"chunk_size": -1}, ValueError),
        ({"threshold": -1}, ValueError),
        ({"sparse": "maybe"}, ValueError),
        ({"count": 1.5}, TypeError),
        ({"progress": 5}, TypeError),
        ({"wrong": 5}, TypeError),
    ],
)
def test_arguments_are_refused_before_anything_happens(source, target, arguments, error):
    with counted() as calls, pytest.raises(error):
        transfer(source, target, **arguments)
    assert calls.get("openat", 0) == 0
    assert not target.exists()


@pytest.mark.parametrize("chunk_size", [1, 7, 4096, CHUNK, 1 << 40])
def test_chunk_size(tmp_path, target, chunk_size):
    source = file_of(tmp_path / "source", DATA[:5000])
    with counted() as calls:
        assert transfer(source, target, method="chunked", chunk_size=chunk_size).count == 5000
    assert target.read_bytes() == DATA[:5000]
    assert calls["pwrite"] == -(-5000 // chunk_size)


# ------------------------------------------------------------------ one file


def test_one_path_twice_is_refused(source, tmp_path):
    os.link(source, tmp_path / "hard")
    os.symlink(source, tmp_path / "soft")
    for other in (source, tmp_path / "hard", tmp_path / "soft"):
        with pytest.raises(shutil.SameFileError):
            transfer(source, other)
        with pytest.raises(shutil.SameFileError):
            transfer(source, other, target_offset=5)
    assert source.read_bytes() == DATA


def test_two_descriptors_of_one_file(source):
    with open(source, "rb") as one, open(source, "r+b") as two:
        with pytest.raises(shutil.SameFileError):
            transfer(one, two)
        assert source.read_bytes() == DATA


@pytest.mark.parametrize("method", ["auto", *FILE_METHODS])
def test_ranges_of_one_descriptor(source, method):
    with open(source, "r+b") as file:
        for offset, to, count in ((0, 10, 11), (10, 0, 11), (0, 0, None), (0, 100, None), (5, 5, 1)):
            with pytest.raises(ValueError, match="overlap"):
                transfer(file, file, count, source_offset=offset, target_offset=to, method=method)
        assert source.read_bytes() == DATA
        # Side by side is fine, and a copy behind the end does not follow its own growth.
        assert transfer(file, file, 10, source_offset=0, target_offset=10, method=method).count == 10
        end = len(DATA)
        result = transfer(file, file, source_offset=100, target_offset=end, method=method)
        assert result.count == end - 100
    wanted = DATA[:10] + DATA[:10] + DATA[20:]
    assert source.read_bytes() == wanted + wanted[100:]


def test_append_to_itself_ends(source):
    with open(source, "ab") as target:
        assert transfer(source, target).count == len(DATA)
    assert source.read_bytes() == DATA + DATA
