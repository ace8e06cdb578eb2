# SPDX-License-Identifier: MIT
"""transfer: every kind of end: pipes, sockets, devices, Python objects."""

from __future__ import annotations

import bz2
import errno
import fcntl
import gzip
import io
import os
import socket
import threading
from pathlib import Path

import pytest
from terminal_help import open_terminal
from transfer_help import CHUNK, KERNEL, Pipe, file_of, noise

import pyio_chunked
from pyio_chunked import Transfer, transfer

DATA = noise(3 * CHUNK + 77)


@pytest.fixture
def source(tmp_path):
    return file_of(tmp_path / "source", DATA)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "target"


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
    primary, secondary = open_terminal()
    import tty

    tty.setraw(secondary)
    os.write(primary, b"typed")
    assert transfer(secondary, target, 5).count == 5
    assert target.read_bytes() == b"typed"
    assert transfer(target, secondary).count == 5
    assert os.read(primary, 10) == b"typed"
    os.close(primary)
    os.close(secondary)


@pytest.mark.parametrize(
    "path", ["/proc/version", "/proc/self/status", "/sys/kernel/mm/transparent_hugepage/enabled"]
)
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
@pytest.mark.parametrize(
    "make", [io.BytesIO, Reader, lambda data: gzip.open(io.BytesIO(gzip.compress(data, 1)))]
)
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


@pytest.mark.parametrize(
    "answer", [lambda n: n, lambda n: None, lambda n: min(n, 100), lambda n: max(n // 2, 1)]
)
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
            return 2 if self.tell() == 0 and self.seek(5) == 5 else 0

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
    before = pyio_chunked.pool.stats().in_use
    with pytest.raises(BufferError):
        transfer(source, keeper)
    keeper.view.release()
    assert pyio_chunked.pool.stats().in_use == before, "what the keeper has isn't the pool's"


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


def test_our_file_closed_by_another_thread(tmp_path, target):
    """The number can't be taken by another file while bytes move."""
    source = file_of(tmp_path / "source", noise(1 << 20) * 20)
    file = pyio_chunked.open(source)
    other = []

    def progress(done, total):
        if not other:
            file.close()
            other.append(os.open("/dev/null", os.O_RDONLY))

    with pytest.raises(ValueError, match="closed"):  # its position can't be set any more
        transfer(file, target, progress=progress)
    assert target.read_bytes() == source.read_bytes()
    os.close(other[0])


@pytest.mark.parametrize("kind", ["fd", "raw", "buffered", "File"])
@pytest.mark.parametrize("at", [0, 5])
def test_a_source_open_for_appending_is_read_where_it_stands(source, tmp_path, kind, at):
    """O_APPEND is about writes."""
    fd = os.open(source, os.O_RDWR | os.O_APPEND)
    if kind == "fd":
        file, end = fd, lambda: os.lseek(fd, 0, os.SEEK_CUR)
        os.lseek(fd, at, os.SEEK_SET)
    else:
        if kind == "File":
            os.close(fd)
            file = pyio_chunked.open(source, "a+b")
        else:
            file = open(fd, "a+b", buffering=0 if kind == "raw" else -1)
        file.seek(at)
        end = file.tell
    for count, out in ((100, DATA[at : at + 100]), (None, DATA[at + 100 :])):
        target = tmp_path / f"target-{count}"
        assert transfer(file, target, count).count == len(out)
        assert target.read_bytes() == out
        assert end() == (at + 100 if count else len(DATA))
    assert transfer(file, target, 7, source_offset=3).count == 7
    assert target.read_bytes() == DATA[3:10]
    os.close(fd) if kind == "fd" else file.close()
