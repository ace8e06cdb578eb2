# SPDX-License-Identifier: MIT
"""transfer: every kind of end, every method, positions, progress, refusals."""

from __future__ import annotations

import bz2
import errno
import fcntl
import gzip
import io
import os
import pickle
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from transfer_help import CHUNK, FILE_METHODS, KERNEL, Pipe, counted, fault, file_of, noise

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
            if given == "fd":
                ends = (one.fileno(), two.fileno())
            else:
                ends = (one, two)
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


# ---------------------------------------------------------------- other ends


def test_append_target(source, target):
    target.write_bytes(b"old ")
    with open(target, "ab") as file:
        file.write(b"pending ")
        assert transfer(source, file).count == len(DATA)
        assert file.tell() == len(DATA) + 12
        file.write(b" tail")
        with pytest.raises(ValueError, match="append"):
            transfer(source, file, target_offset=0)
    assert target.read_bytes() == b"old pending " + DATA + b" tail"


@pytest.mark.parametrize("method", ["auto", "splice", "chunked"])
def test_pipe_to_file(target, method):
    if method == "splice" and not KERNEL:
        pytest.skip("the portable build has no splice")
    pipe = Pipe(feed=DATA)
    result = transfer(pipe.r, target, method=method)
    pipe.done()
    assert (result.count, target.read_bytes()) == (len(DATA), DATA)
    assert result.method == (method if method != "auto" else "splice" if KERNEL else "chunked")


@pytest.mark.parametrize("method", ["auto", "splice", "sendfile", "chunked"])
def test_file_to_pipe(source, method):
    if method in ("splice", "sendfile") and not KERNEL:
        pytest.skip("the portable build has no splice")
    pipe = Pipe()
    result = transfer(source, pipe.w, method=method)
    assert (result.count, pipe.done()) == (len(DATA), DATA)
    assert result.method == (method if method != "auto" else "splice" if KERNEL else "chunked")


def test_pipe_to_pipe_and_counts(source):
    feeder, drain = Pipe(feed=DATA), Pipe()
    assert transfer(feeder.r, drain.w, 1000).count == 1000
    assert transfer(feeder.r, drain.w).count == len(DATA) - 1000
    feeder.done()
    assert drain.done() == DATA


def test_offsets_on_a_pipe_are_refused(source, target):
    r, w = os.pipe()
    with pytest.raises(OSError) as caught:
        transfer(r, target, 5, source_offset=1)
    assert caught.value.errno == errno.ESPIPE
    with pytest.raises(OSError) as caught:
        transfer(source, w, 5, target_offset=1)
    assert caught.value.errno == errno.ESPIPE
    os.close(r)
    os.close(w)


def test_buffered_pipe_reader_gives_what_it_read_ahead(target):
    pipe = Pipe(feed=DATA)
    with open(pipe.r, "rb", closefd=False) as file:
        assert file.read(10) == DATA[:10]
        assert transfer(file, target).count == len(DATA) - 10
    pipe.done()
    assert target.read_bytes() == DATA[10:]


def test_buffered_pipe_writer(source):
    pipe = Pipe()
    with open(pipe.w, "wb", closefd=False) as file:
        file.write(b"first ")
        assert transfer(source, file).count == len(DATA)
        file.write(b" last")
    assert pipe.done() == b"first " + DATA + b" last"


@pytest.mark.parametrize("timeout", [None, 10.0])
def test_sockets(source, target, timeout):
    one, two = socket.socketpair()
    one.settimeout(timeout)
    two.settimeout(timeout)

    def send() -> None:
        sent.append(transfer(source, one))
        one.close()

    sent: list[Transfer] = []
    thread = threading.Thread(target=send)
    thread.start()
    got = transfer(two, target)
    thread.join()
    two.close()
    assert (sent[0].count, got.count) == (len(DATA), len(DATA))
    assert sent[0].method == ("sendfile" if KERNEL else "chunked")
    assert got.method == "chunked"
    assert target.read_bytes() == DATA


def test_socket_timeout_and_non_blocking(tmp_path, target):
    source = file_of(tmp_path / "big", noise(8 << 20))
    one, two = socket.socketpair()
    one.settimeout(0.05)
    with pytest.raises(TimeoutError) as caught:
        transfer(source, one)
    sent = caught.value.transferred
    assert 0 < sent < 8 << 20
    assert caught.value.source_offset == sent
    assert caught.value.target_offset is None
    one.settimeout(0)
    with pytest.raises(BlockingIOError) as blocked:
        transfer(source, one)
    assert blocked.value.transferred == 0
    one.close()
    two.settimeout(5)
    assert transfer(two, target).count == sent
    assert target.read_bytes() == source.read_bytes()[:sent]
    two.close()


def test_quiet_socket_source_times_out(target):
    one, two = socket.socketpair()
    two.settimeout(0.05)
    one.sendall(b"abc")
    with pytest.raises(TimeoutError) as caught:
        transfer(two, target)
    assert caught.value.transferred == 3
    assert target.read_bytes() == b"abc"
    one.close()
    two.close()


def test_non_blocking_pipe(target):
    r, w = os.pipe()
    os.set_blocking(r, False)
    with pytest.raises(BlockingIOError) as caught:
        transfer(r, target)
    assert caught.value.transferred == 0
    assert not target.exists()
    os.write(w, b"some")
    with pytest.raises(BlockingIOError) as caught:
        transfer(r, target)
    assert caught.value.transferred == 4
    assert target.read_bytes() == b"some"
    os.close(r)
    os.close(w)


def test_devices(source, target):
    assert transfer(source, "/dev/null").count == len(DATA)
    assert transfer("/dev/null", target).count == 0
    assert transfer("/dev/zero", target, 1_000_000).count == 1_000_000
    assert target.read_bytes() == bytes(1_000_000)
    for name in ("/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"):
        with pytest.raises(ValueError, match="count"):
            transfer(name, target.with_name("none"))
        fd = os.open(name, os.O_RDONLY)
        with pytest.raises(ValueError, match="count"):
            transfer(fd, target.with_name("none"))
        os.close(fd)
    assert not target.with_name("none").exists()
    with pytest.raises(OSError) as caught:
        transfer(source, "/dev/full")
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.transferred == 0
    assert os.path.exists("/dev/full")


def test_terminal(tmp_path, target):
    primary, secondary = os.openpty()
    import tty

    tty.setraw(secondary)
    os.write(primary, b"typed")
    assert transfer(secondary, target, 5).count == 5
    assert target.read_bytes() == b"typed"
    assert transfer(target, secondary).count == 5
    assert os.read(primary, 10) == b"typed"
    os.close(primary)
    os.close(secondary)


@pytest.mark.parametrize("path", ["/proc/version", "/proc/self/status", "/sys/kernel/mm/transparent_hugepage/enabled"])
@pytest.mark.parametrize("method", ["auto", "chunked"])
def test_files_whose_size_is_a_lie(target, path, method):
    if not os.path.exists(path):
        pytest.skip("no such file here")
    result = transfer(path, target, method=method)
    assert result.count == target.stat().st_size > 0
    if path == "/proc/version":
        assert target.read_bytes() == Path(path).read_bytes()


def test_memfd_and_sealed_memfd(source):
    if not hasattr(os, "memfd_create"):
        pytest.skip("no memfd here")
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    assert transfer(source, fd).count == len(DATA)
    assert os.pread(fd, len(DATA) + 1, 0) == DATA
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    os.lseek(fd, 0, os.SEEK_SET)
    with pytest.raises(PermissionError):
        transfer(source, fd)
    os.close(fd)


def test_directory(tmp_path, target):
    with pytest.raises(IsADirectoryError) as caught:
        transfer(tmp_path, target)
    assert caught.value.filename == str(tmp_path)
    fd = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(IsADirectoryError):
        transfer(fd, target)
    os.close(fd)
    assert not target.exists()
    with pytest.raises(IsADirectoryError) as caught:
        transfer(file_of(tmp_path / "s", b"x"), tmp_path)
    assert caught.value.filename == str(tmp_path)


def test_missing_paths(source, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        transfer(tmp_path / "none", tmp_path / "target")
    assert caught.value.filename == str(tmp_path / "none")
    assert not (tmp_path / "target").exists()
    with pytest.raises(FileNotFoundError) as caught:
        transfer(source, tmp_path / "none" / "target")
    assert caught.value.filename == str(tmp_path / "none" / "target")


# ------------------------------------------------------------ Python objects


class Reader:
    """Only read, at most `step` at a time."""

    def __init__(self, data: bytes, step: int = 1000) -> None:
        self.file, self.step = io.BytesIO(data), step

    def read(self, size: int = -1) -> bytes:
        return self.file.read(min(size, self.step) if size >= 0 else self.step)


class Writer:
    """Only write; counts as told."""

    def __init__(self, answer) -> None:
        self.data, self.answer = bytearray(), answer

    def write(self, view):
        n = self.answer(len(view))
        self.data += view[: len(view) if n is None else n]
        return n


@pytest.mark.parametrize("to", ["path", "bytesio", "object", "pipe"])
@pytest.mark.parametrize("make", [io.BytesIO, Reader, lambda data: gzip.open(io.BytesIO(gzip.compress(data, 1)))])
def test_object_sources(target, make, to):
    source = make(DATA)
    if to == "path":
        result, got = transfer(source, target), target.read_bytes()
    elif to == "bytesio":
        out = io.BytesIO()
        result, got = transfer(source, out), out.getvalue()
    elif to == "object":
        writer = Writer(lambda n: None)
        result, got = transfer(source, writer), bytes(writer.data)
    else:
        pipe = Pipe()
        result, got = transfer(source, pipe.w), pipe.done()
    assert result == (len(DATA), "chunked", 0, ())
    assert got == DATA


@pytest.mark.parametrize("answer", [lambda n: n, lambda n: None, lambda n: min(n, 100), lambda n: max(n // 2, 1)])
def test_object_targets_and_short_writes(source, answer):
    writer = Writer(answer)
    assert transfer(source, writer).count == len(DATA)
    assert writer.data == DATA


@pytest.mark.parametrize("answer", [lambda n: n + 1, lambda n: -1, lambda n: "all", lambda n: 0])
def test_object_targets_that_lie(source, answer):
    writer = Writer.__new__(Writer)
    writer.data, writer.answer = bytearray(), answer
    writer.write = lambda view: answer(len(view))
    with pytest.raises(OSError) as caught:
        transfer(source, writer)
    assert caught.value.transferred == 0


def test_raw_object_that_would_block(source, target):
    class Raw(io.RawIOBase):
        def readable(self):
            return True

        def writable(self):
            return True

        def readinto(self, view):
            return None

        def write(self, data):
            return None

    with pytest.raises(BlockingIOError):
        transfer(Raw(), target)
    with pytest.raises(BlockingIOError):
        transfer(source, Raw())


def test_count_is_never_overread():
    source = io.BytesIO(DATA)
    out = io.BytesIO()
    assert transfer(source, out, 10).count == 10
    assert source.tell() == 10
    reader = Reader(DATA)
    assert transfer(reader, out, 1500).count == 1500
    assert reader.file.tell() == 1500
    assert out.getvalue() == DATA[:10] + DATA[:1500]


def test_bytesio_positions_and_offsets():
    source, out = io.BytesIO(DATA), io.BytesIO(b"." * 50)
    source.seek(7)
    out.seek(3)
    assert transfer(source, out, 10, source_offset=100, target_offset=20).count == 10
    assert (source.tell(), out.tell()) == (7, 3)
    assert out.getvalue() == b"." * 20 + DATA[100:110] + b"." * 20
    assert transfer(source, out, 5).count == 5
    assert (source.tell(), out.tell()) == (12, 8)
    source.write(b"still writable")  # no view is left behind
    source.truncate(0)
    assert transfer(source, out).count == 0


def test_compressed_bytes_are_never_copied_raw(tmp_path):
    for module, name in ((gzip, "a.gz"), (bz2, "a.bz2")):
        with module.open(tmp_path / name, "wb") as file:
            file.write(DATA)
        with module.open(tmp_path / name) as file:
            out = io.BytesIO()
            assert transfer(file, out).count == len(DATA)
            assert out.getvalue() == DATA
        with module.open(tmp_path / name, "wb") as file:
            assert transfer(io.BytesIO(DATA), file).count == len(DATA)
        with module.open(tmp_path / name) as file:
            assert file.read() == DATA


def test_lying_fileno_is_not_used(tmp_path):
    lie = open(file_of(tmp_path / "lie", b"wrong bytes"), "rb")

    class Liar(io.BytesIO):
        def fileno(self):
            return lie.fileno()

    out = io.BytesIO()
    assert transfer(Liar(DATA), out).count == len(DATA)
    assert out.getvalue() == DATA

    class Doubled(io.BufferedReader):
        def readinto(self, view):
            view[:2] = b"!!"
            return 2 if not self.tell() and not self.seek(5) == 0 else 0

    with Doubled(io.FileIO(tmp_path / "lie")) as file:
        out = io.BytesIO()
        transfer(file, out)
        assert out.getvalue() == b"!!"
    lie.close()


def test_fileno_alone_is_used(source, target):
    class Only:
        def __init__(self, fd):
            self.fd = fd

        def fileno(self):
            return self.fd

    with open(source, "rb") as one, open(target, "wb") as two:
        assert transfer(Only(one.fileno()), Only(two.fileno())).count == len(DATA)
    assert target.read_bytes() == DATA


def test_text_is_refused(source, target):
    with open(source, encoding="latin-1") as text:
        with pytest.raises(TypeError):
            transfer(text, target)
    with pytest.raises(TypeError):
        transfer(io.StringIO("x"), target)
    assert not target.exists()
    with open(target, "w") as text:
        with pytest.raises(TypeError):
            transfer(source, text)

    class Strings:
        def read(self, size=-1):
            return "text"

    with pytest.raises(TypeError):
        transfer(Strings(), io.BytesIO())


def test_wrong_direction(source, target):
    with open(target, "wb") as writer, open(source, "rb") as reader:
        with pytest.raises(io.UnsupportedOperation):
            transfer(writer, io.BytesIO())
        with pytest.raises(io.UnsupportedOperation):
            transfer(io.BytesIO(b"x"), reader)
    with open(target, "wb", buffering=0) as raw, pytest.raises(io.UnsupportedOperation):
        transfer(raw, io.BytesIO())
    closed = open(source, "rb")
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        transfer(closed, target)
    with pytest.raises(OSError):
        transfer(999_999, io.BytesIO())


def test_a_view_that_is_kept_is_an_error(source):
    class Keeper:
        def write(self, view):
            self.view = memoryview(view)
            return len(view)

    keeper = Keeper()
    with pytest.raises(BufferError):
        transfer(source, keeper)
    keeper.view.release()


def test_what_the_object_raises_propagates_with_progress(source):
    class Full(Exception):
        pass

    class Target:
        taken = 0

        def write(self, view):
            if self.taken >= CHUNK:
                raise Full
            self.taken += len(view)
            return len(view)

    with open(source, "rb") as file:
        with pytest.raises(Full) as caught:
            transfer(file, Target())
        assert caught.value.transferred == CHUNK
        assert caught.value.source_offset == CHUNK
        assert caught.value.target_offset is None
        assert file.tell() == CHUNK


# ------------------------------------------------------ progress, interruption


@pytest.mark.parametrize("method", FILE_METHODS)
def test_progress_ends_with_the_total(source, target, method):
    seen = []
    transfer(source, target, method=method, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(DATA), len(DATA))
    assert seen == sorted(seen)


def test_progress_without_a_known_total(target):
    pipe = Pipe(feed=DATA)
    seen = []
    transfer(pipe.r, target, progress=lambda done, total: seen.append((done, total)))
    pipe.done()
    assert seen[-1] == (len(DATA), None)
    seen.clear()
    out = io.BytesIO()
    transfer(Reader(DATA), out, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(DATA), None)
    seen.clear()
    transfer(io.BytesIO(DATA), out, 1000, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (1000, 1000)


@pytest.mark.parametrize("method", FILE_METHODS)
def test_progress_that_raises(tmp_path, target, method):
    source = file_of(tmp_path / "big", noise(1 << 20) * 40)

    def stop(done, total):
        reported.append(done)
        if done < total:
            raise KeyError("enough")

    reported: list[int] = []
    with pytest.raises(KeyError, match="enough") as caught:
        transfer(source, target, method=method, progress=stop)
    # What was moved is there, no more and no less.
    assert reported == [caught.value.transferred]
    assert caught.value.source_offset == caught.value.target_offset == reported[0]
    assert target.read_bytes() == source.read_bytes()[: reported[0]]


def test_progress_true_is_tqdm(source, target, capsys):
    pytest.importorskip("tqdm")
    assert transfer(source, target, progress=True).count == len(DATA)


@pytest.mark.parametrize("method", ["auto", *FILE_METHODS])
def test_signal_handler_that_raises_stops_in_time(tmp_path, method):
    """64 MiB at a time, until the handler's exception comes."""
    source = file_of(tmp_path / "big", noise(1 << 20) * 64)

    class Stop(Exception):
        pass

    def handler(*_):
        fired.append(time.monotonic())
        raise Stop

    fired: list[float] = []
    before = signal.signal(signal.SIGALRM, handler)
    try:
        with open(source, "rb") as one, tempfile.TemporaryFile(dir=tmp_path) as two:
            signal.setitimer(signal.ITIMER_REAL, 0.03)
            moved = 0
            with pytest.raises(Stop) as caught:
                while True:
                    moved = transfer(one, two, source_offset=0, target_offset=0, method=method).count
            del moved
            if hasattr(caught.value, "transferred"):
                n = caught.value.transferred
                assert 0 <= n <= 64 << 20
                assert os.pread(two.fileno(), n, 0) == source.read_bytes()[:n]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(fired) == 1


def test_signal_handler_that_returns_changes_nothing(tmp_path, target):
    source = file_of(tmp_path / "big", noise(1 << 20) * 64)
    fired = []
    before = signal.signal(signal.SIGALRM, lambda *_: fired.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        for method in ("auto", *FILE_METHODS):
            assert transfer(source, target, method=method).count == 64 << 20
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert fired
    assert target.read_bytes() == source.read_bytes()


@pytest.mark.parametrize("kind", ["pipe", "socket", "object"])
def test_signal_in_a_blocked_transfer(tmp_path, kind):
    """Nobody reads: the handler still gets through, and the count is right."""
    source = file_of(tmp_path / "big", noise(4 << 20))

    class Stop(Exception):
        pass

    def handler(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, handler)
    r, w = os.pipe() if kind != "socket" else (s.detach() for s in socket.socketpair())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        with pytest.raises(Stop) as caught:
            if kind == "object":
                transfer(io.BytesIO(source.read_bytes()), w)
            else:
                transfer(source, w)
        signal.setitimer(signal.ITIMER_REAL, 0)
        sent = caught.value.transferred
        assert 0 < sent < 4 << 20
        os.close(w)
        w = -1
        with open(r, "rb", closefd=False) as rest:
            assert rest.read() == source.read_bytes()[:sent]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        os.close(r)
        if w >= 0:
            os.close(w)


def test_bytes_read_from_a_pipe_are_not_lost(tmp_path):
    """What a pipe gave and the target didn't take is on the exception."""
    pipe = Pipe(feed=DATA[:50_000])
    pipe.thread.join()
    with fault("pwrite", error=errno.ENOSPC, first=1), pytest.raises(OSError) as caught:
        transfer(pipe.r, tmp_path / "target", method="chunked")
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.transferred == 0
    assert caught.value.source_offset is None
    assert caught.value.partial + os.read(pipe.r, 65536) == DATA[:50_000]
    pipe.done()


# ------------------------------------------------------------------ the rest


def test_memory_is_one_chunk(tmp_path, target):
    import tracemalloc

    source = file_of(tmp_path / "big", noise(1 << 20) * 32)
    pyio_chunked._core._fault_count()
    transfer(source, target, method="chunked")
    transfer(Reader(source.read_bytes(), 1 << 20), io.BytesIO())
    calls = pyio_chunked._core._fault_calls()
    assert calls.get("malloc", 0) <= 2  # one buffer, and it is reused
    tracemalloc.start()
    try:
        with open(source, "rb") as one:
            transfer(one, target, method="chunked")
        assert tracemalloc.get_traced_memory()[1] < 256 * 1024
    finally:
        tracemalloc.stop()


def test_audit_events_and_close_on_exec(source, target):
    events = []
    inheritable = []

    def hook(name, args):
        if active and name == "open":
            events.append((args[0], args[1], args[2] & ~os.O_CLOEXEC))

    active = True
    sys.addaudithook(hook)
    try:
        transfer(
            source,
            target,
            progress=lambda *_: inheritable.extend(
                fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 2 and _is_inheritable(fd)
            ),
        )
    finally:
        active = False
    assert (str(source), "r", os.O_RDONLY) in events
    assert (str(target), "w", os.O_WRONLY | os.O_CREAT | os.O_TRUNC) in events
    assert inheritable == []


def _is_inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:
        return False


def test_probe(source, target, tmp_path):
    before = sorted(tmp_path.iterdir())
    direct = ("reflink", "copy_file_range", "sendfile") if KERNEL else ()
    assert probe(source, target) == (*direct, "chunked")
    big = tmp_path / "big"
    with open(big, "wb") as file:
        file.truncate(pyio_chunked.thresholds().mapped if pyio_chunked.thresholds().mapped < 1 << 40 else 0)
    with open(tmp_path / "append", "ab") as file:
        assert probe(source, file) == ("chunked",)
    r, w = os.pipe()
    assert probe(r, target) == (("splice", "chunked") if KERNEL else ("chunked",))
    assert probe(source, w) == (("splice", "sendfile", "chunked") if KERNEL else ("chunked",))
    os.close(r)
    os.close(w)
    assert probe(io.BytesIO(), target) == ("chunked",)
    with pytest.raises(FileNotFoundError):
        probe(tmp_path / "none", target)
    with pytest.raises(IsADirectoryError):
        probe(tmp_path, target)
    assert not target.exists()
    assert sorted(tmp_path.iterdir()) == sorted([*before, big, tmp_path / "append"])


def test_result_is_a_named_tuple(source, target):
    result = transfer(source, target, method="chunked")
    assert result._fields == ("count", "method", "holes", "fallbacks")
    assert repr(result) == f"Transfer(count={len(DATA)}, method='chunked', holes=0, fallbacks=())"
    assert pickle.loads(pickle.dumps(result)) == result
    assert result._replace(count=1).count == 1
    assert Transfer.__module__ == "pyio_chunked"


def test_four_gibibytes_by_every_method(tmp_path):
    """Past 2**32, of a sparse file; only the tail is data."""
    size = (4 << 30) + 12345
    source = tmp_path / "huge"
    with open(source, "wb") as file:
        file.truncate(size)
        file.seek(size - 5)
        file.write(b"tail!")
    for method in FILE_METHODS:
        target = tmp_path / method
        result = transfer(source, target, method=method, sparse="auto")
        assert result.count == size == target.stat().st_size
        assert result.method == method
        with open(target, "rb") as file:
            file.seek(-8, os.SEEK_END)
            assert file.read() == b"\0\0\0tail!"
        # And a range that crosses 2**32 itself.
        result = transfer(
            source, target, 20000, source_offset=size - 20000, target_offset=(1 << 32) - 10000, method=method
        )
        assert result.count == 20000
        with open(target, "rb") as file:
            file.seek((1 << 32) + 10000 - 5)
            assert file.read(5) == b"tail!"
        target.unlink()
