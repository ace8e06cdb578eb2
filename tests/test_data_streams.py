# SPDX-License-Identifier: MIT
"""Typed data streams as file objects: targets, sources, positions, life."""

from __future__ import annotations

import gc
import gzip
import io
import os
import pickle
import shutil
import socket
import struct
import subprocess
import sys
import weakref
from contextlib import contextmanager

import pytest

import pyio_chunked
from pyio_chunked import DataReader, DataWriter, ShortReadError, _core

# ------------------------------------------------------------------- targets


@contextmanager
def target_of(kind, path):
    """A target and a function that gives the bytes it got."""
    if kind == "path":
        yield path, path.read_bytes
    elif kind == "bytes path":
        yield os.fsencode(path), path.read_bytes
    elif kind == "fd":
        fd = os.open(path, os.O_WRONLY | os.O_CREAT)
        yield fd, path.read_bytes
        os.close(fd)  # what was given stays open
    elif kind in ("raw", "buffered", "random"):
        mode = {"raw": ("wb", 0), "buffered": ("wb",), "random": ("w+b",)}[kind]
        with open(path, *mode) as f:
            yield f, path.read_bytes
            assert not f.closed
    elif kind == "File":
        with pyio_chunked.open(path, "wb") as f:
            yield f, path.read_bytes
            assert not f.closed
    elif kind == "BytesIO":
        target = io.BytesIO()
        yield target, target.getvalue
    elif kind == "list":
        pieces = []

        class Duck:
            def write(self, data):
                pieces.append(bytes(data))

        yield Duck(), lambda: b"".join(pieces)
    else:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            yield ours, lambda: theirs.recv(1 << 16)


TARGETS = ["path", "bytes path", "fd", "raw", "buffered", "random", "File", "BytesIO", "list", "socket"]


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("size", [0, 64, 65536])
def test_every_target_gets_the_bytes(kind, size, tmp_path):
    want = struct.pack(">i3sd", 7, b"abc", 1.5) * 20
    with target_of(kind, tmp_path / "file") as (target, content):
        with DataWriter(target, buffer_size=size) as w:
            for _ in range(20):
                w.write_int32(7)
                w.write_bytes(b"abc")
                w.write_float64(1.5)
            assert w.tell() == len(want)
            w.flush()
        assert content() == want
        assert w.closed


@pytest.mark.parametrize("size", [0, 64, 65536])
def test_every_source_gives_them(size, tmp_path):
    data = struct.pack(">i3sd", 7, b"abc", 1.5) * 20
    path = tmp_path / "file"
    path.write_bytes(data)

    def check(source):
        with DataReader(source, buffer_size=size) as r:
            for _ in range(20):
                assert (r.read_int32(), r.read_bytes(3), r.read_float64()) == (7, b"abc", 1.5)
            assert r.at_eof()

    for source in (path, str(path), data, bytearray(data), memoryview(data), io.BytesIO(data)):
        check(source)
    with open(path, "rb") as f:
        check(f)
        assert not f.closed
    with pyio_chunked.open(path, "rb") as f:
        check(f)
        f.seek(0)
        r = DataReader(f)
        r.read_int32()
        assert r.detach() is f and f.tell() == 4
    with open(path, "rb", buffering=0) as f:
        check(f)
        f.seek(0)
        check(f.fileno())
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(data))
    with gzip.open(packed) as f:
        check(f)

    class OnlyRead:
        def __init__(self):
            self.below = io.BytesIO(data)

        def read(self, n):
            return self.below.read(min(n, 5))

    check(OnlyRead())
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        check(ours)


def test_what_can_t_be_a_stream(tmp_path):
    path = tmp_path / "text"
    path.write_text("text")
    with open(path) as text:
        for make in (DataReader, DataWriter):
            with pytest.raises(TypeError, match="text"):
                make(text)
    with pytest.raises(IsADirectoryError):
        DataReader(tmp_path)
    with pytest.raises(IsADirectoryError):
        DataWriter(tmp_path)
    with pytest.raises(FileNotFoundError) as caught:
        DataReader(tmp_path / "nothing")
    assert caught.value.filename == str(tmp_path / "nothing")
    for make in (DataReader, DataWriter):
        with pytest.raises(TypeError):
            make()
        with pytest.raises(ValueError, match="byteorder"):
            make(io.BytesIO(), "middle")
        with pytest.raises(ValueError, match="buffer_size"):
            make(io.BytesIO(), buffer_size=-1)
        with pytest.raises(TypeError):
            make(io.BytesIO(), "big", 5)
        with pytest.raises(OSError):
            make(123456)
    with pytest.raises(BufferError):
        DataReader(memoryview(b"abcdef")[::2])


def test_byteorder_is_told():
    for given, want in [
        ("big", "big"),
        (">", "big"),
        ("little", "little"),
        ("<", "little"),
        ("=", sys.byteorder),
    ]:
        for make in (DataReader, DataWriter):
            with make(io.BytesIO(), given) as stream:
                assert stream.byteorder == want


# ---------------------------------------------------------------- one write


@pytest.mark.parametrize("kind", ["path", "raw", "fd"])
def test_unbuffered_is_one_system_call_per_value(kind, tmp_path):
    numpy = pytest.importorskip("numpy")
    calls = [
        lambda w: w.write_int32(1),
        lambda w: w.write_int64(-1),
        lambda w: w.write_float16(1),
        lambda w: w.write_uvarint(2**60),
        lambda w: w.write_str("text"),
        lambda w: w.write_str("x" * 100_000, "uvarint"),
        lambda w: w.write_cstr("y" * 70_000),
        lambda w: w.write_mutf8("é" * 20_000),
        lambda w: w.write_mutf8("e" * 20_000),
        lambda w: w.write_bytes(b"z" * 200_000),
        lambda w: w.write_array(numpy.arange(50_000, dtype=">i4")),
        lambda w: w.write_array(numpy.arange(50_000, dtype="<i4")),
        lambda w: w.write_struct(">ihd", 1, 2, 3),
        lambda w: w.write_struct("3s5p", b"abc", b"d"),
        lambda w: w.write_struct("9000x"),
        lambda w: w.align(65536),
        lambda w: w.write(b"as they are"),
    ]
    with target_of(kind, tmp_path / "file") as (target, content), DataWriter(target, buffer_size=0) as w:
        for k, call in enumerate(calls):
            _core._fault_clear()
            _core._fault_count()
            before = w.tell()
            lseeks = _core._fault_calls()["lseek"]
            call(w)
            counted = _core._fault_calls()
            assert counted.get("write", 0) == 1, k
            assert set(counted) <= {"write", "lseek", "malloc", "calloc"}
            assert counted["lseek"] == lseeks + (1 if k == 15 else 0), k
            assert len(content()) == w.tell() > before
        _core._fault_clear()


def test_unbuffered_is_one_write_of_an_object():
    class Sink:
        def __init__(self):
            self.pieces = []

        def write(self, data):
            self.pieces.append(bytes(data))

    sink = Sink()
    with DataWriter(sink, buffer_size=0) as w:
        w.write_int16(1)
        w.write_str("ab", "uint8")
        w.write_struct("hh", 1, 2)
        w.write_bytes(b"")
    assert sink.pieces == [b"\0\1", b"\2ab", b"\0\1\0\2"]


def test_one_write_per_full_buffer(tmp_path):
    with DataWriter(tmp_path / "file", buffer_size=8192) as w:
        _core._fault_count()
        for n in range(2048 * 5):
            w.write_int32(n)
        assert _core._fault_calls().get("write", 0) == 4
        w.write_int32(0)
        assert _core._fault_calls()["write"] == 5
        _core._fault_clear()


# ---------------------------------------------------------- position, seeking


@pytest.mark.parametrize("size", [0, 64, 65536])
@pytest.mark.parametrize("kind", ["memory", "BytesIO", "path", "raw", "buffered"])
def test_seek_tell_peek_skip_align_as_a_file(kind, size, tmp_path, rng):
    data = rng.randbytes(200_000)
    path = tmp_path / "file"
    path.write_bytes(data)
    opened = {"memory": data, "BytesIO": io.BytesIO(data), "path": path}
    if kind in ("raw", "buffered"):
        opened[kind] = open(path, "rb", 0 if kind == "raw" else -1)
    model = io.BytesIO(data)
    with DataReader(opened[kind], buffer_size=size) as r:
        assert r.seekable() and r.readable() and not r.writable()
        for _ in range(300):
            n = rng.choice([0, 1, 3, 63, 64, 65, 4096, 70_000, 250_000])
            match rng.randrange(12):
                case 0:
                    to = rng.randrange(len(data) + 50)
                    assert r.seek(to) == model.seek(to)
                case 1:
                    to = max(-model.tell(), rng.randrange(-70_000, 70_000))
                    assert r.seek(to, 1) == model.seek(to, 1)
                case 2:
                    to = rng.randrange(-len(data), 10)
                    assert r.seek(to, 2) == model.seek(to, 2)
                case 3:
                    here = model.tell()
                    assert r.peek(n) == model.read(n)[: len(data)] if n else True
                    model.seek(here)
                case 4:
                    if model.tell() + n <= len(data):
                        r.skip(n)
                        model.seek(n, 1)
                    elif n:
                        with pytest.raises(ShortReadError):
                            r.skip(n)
                case 5:
                    pad = -model.tell() % (n or 1)
                    if model.tell() + pad <= len(data):
                        r.align(n or 1)
                        model.seek(pad, 1)
                case 6:
                    assert r.read(n) == model.read(n)
                case 7:
                    piece = r.read1(n)
                    assert piece == model.read(len(piece)) and (piece or not n or model.read(1) == b"")
                case 8:
                    buffer, want = bytearray(n), bytearray(n)
                    assert r.readinto(buffer) == model.readinto(want) and buffer == want
                case 9:
                    buffer = bytearray(n)
                    got = r.readinto1(buffer)
                    assert buffer[:got] == model.read(got)
                case 10:
                    if model.tell() + 8 <= len(data):
                        assert r.read_uint64() == int.from_bytes(model.read(8), "big")
                case _:
                    assert r.at_eof() == (model.tell() >= len(data))
            assert r.tell() == model.tell()
        r.seek(5)
        assert r.readline() == (model.seek(5), model.readline())[1]
        for bad in (-1, -(2**62)):
            with pytest.raises(ValueError):
                r.seek(bad)
        with pytest.raises(ValueError):
            r.seek(0, 7)
        with pytest.raises(ValueError):
            r.align(0)
        with pytest.raises(ValueError):
            r.skip(-1)
        assert r.seek(0) == 0 and r.read() == data
    if kind in ("raw", "buffered"):
        opened[kind].close()


def test_skip_and_seek_of_a_pipe():
    read, write = os.pipe()
    os.write(write, b"0123456789")
    os.close(write)
    with DataReader(read) as r:
        assert not r.seekable()
        with pytest.raises(io.UnsupportedOperation):
            r.seek(2)
        r.skip(2)
        assert r.peek(3) == b"234" and r.peek()[:1] == b"2"
        r.align(4)
        assert r.tell() == 4
        with pytest.raises(ShortReadError) as caught:
            r.skip(7)
        assert (caught.value.partial, r.tell()) == (b"456789", 4)
        with pytest.raises(io.UnsupportedOperation, match="6 bytes"):
            r.detach()
        assert r.read() == b"456789" and r.detach() == read
    os.close(read)


def test_the_writer_s_position_is_the_target_s(tmp_path):
    with open(tmp_path / "file", "w+b") as f:
        f.write(b"header")
        with DataWriter(f) as w:
            assert w.tell() == 6
            w.write_int32(1)
            w.align(16)
            assert w.tell() == 16
            w.align(16)
            w.align(1)
            assert w.tell() == 16
            assert not w.seekable() and w.writable() and not w.readable()
            with pytest.raises(io.UnsupportedOperation):
                w.seek(0)
            with pytest.raises(io.UnsupportedOperation):
                w.read(1)
            with pytest.raises(ValueError):
                w.align(0)
        f.flush()
        assert (tmp_path / "file").read_bytes() == b"header\0\0\0\1" + bytes(6)
    with open(tmp_path / "file", "ab") as f, DataWriter(f) as w:
        assert w.tell() == 16
        w.write_int8(5)
    assert (tmp_path / "file").stat().st_size == 17
    read, write = os.pipe()
    with DataWriter(write) as w:
        w.write_int32(0)
        w.flush()
        w.write_int32(0)
        assert w.tell() == 8
    os.close(read)
    os.close(write)


def test_align_across_the_buffer(tmp_path):
    for size in (0, 64, 65536):
        with DataWriter(tmp_path / "file", buffer_size=size) as w:
            w.write_int8(1)
            w.align(300_000)
            w.write_int8(2)
        assert (tmp_path / "file").read_bytes() == b"\1" + bytes(299_999) + b"\2"


def test_detach_and_fileno_put_the_source_where_the_stream_is(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 1000)
    for size in (0, 64, 65536):
        r = DataReader(path, buffer_size=size)
        r.read_int32()
        assert os.lseek(r.fileno(), 0, os.SEEK_CUR) == 4
        r.read_int32()
        fd = r.detach()
        assert os.read(fd, 2) == b"\x08\x09"
        os.close(fd)
        for opened in (open(path, "rb"), open(path, "rb", buffering=0), io.BytesIO(path.read_bytes())):
            with opened:
                r = DataReader(opened, buffer_size=size)
                r.read_int32()
                if not isinstance(opened, io.BytesIO):
                    assert r.fileno() == opened.fileno()
                else:
                    with pytest.raises(io.UnsupportedOperation):
                        r.fileno()
                assert r.detach() is opened and opened.read(2) == b"\4\5"
                for call in (r.read_int32, r.tell, r.detach, r.fileno, lambda r=r: r.closed):
                    with pytest.raises(ValueError, match="detached"):
                        call()
                r.close()
    w = DataWriter(path)
    w.write_int32(1)
    assert os.fstat(w.fileno()).st_size == 4
    w.write_int32(2)
    fd = w.detach()
    os.write(fd, b"tail")
    os.close(fd)
    assert path.read_bytes() == b"\0\0\0\1\0\0\0\2tail"
    with pytest.raises(ValueError, match="detached"):
        w.write_int32(1)


def test_unbuffered_reads_nothing_ahead(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(100)))
    with open(path, "rb", buffering=0) as f, DataReader(f, buffer_size=0) as r:
        r.read_int16()
        assert f.tell() == 2
        f.seek(50)
        assert r.tell() == 50 and r.read_uint8() == 50 and f.tell() == 51
        assert r.read_struct("2s") == (b"\x33\x34",) and f.tell() == 53
    read, write = os.pipe()
    os.write(write, struct.pack(">I", 2) + b"ab" + b"rest")
    with DataReader(read, buffer_size=0) as r:
        assert r.read_str() == "ab"
        assert os.read(read, 10) == b"rest"
    os.close(read)
    os.close(write)


# ------------------------------------------------------- as others' file


def test_pickle_and_shutil_and_numpy_use_the_streams(tmp_path):
    numpy = pytest.importorskip("numpy")
    value = {"a": list(range(1000)), "b": bytearray(200_000), "c": numpy.arange(50_000)}
    path = tmp_path / "file"
    with DataWriter(path) as w:
        pickle.dump(value, w, protocol=5)
        w.write_int32(7)
        shutil.copyfileobj(io.BytesIO(b"x" * 300_000), w)
        numpy.save(w, value["c"])
        w.writelines([b"one\n", bytearray(b"two\n")])
        text = io.TextIOWrapper(w, encoding="utf-8")
        text.write("text é\n")
        assert text.detach() is w
    with DataReader(path) as r:
        again = pickle.load(r)
        assert again["a"] == value["a"] and again["b"] == value["b"] and (again["c"] == value["c"]).all()
        assert r.read_int32() == 7 and r.read_bytes(300_000) == b"x" * 300_000
        assert (numpy.load(r) == value["c"]).all()
        assert list(r) == [b"one\n", b"two\n", "text é\n".encode()]
    with DataReader(path) as r, open(tmp_path / "copy", "wb") as copy:
        shutil.copyfileobj(r, copy)
    assert (tmp_path / "copy").read_bytes() == path.read_bytes()
    for make in (DataReader, DataWriter):
        with make(io.BytesIO()) as stream, pytest.raises(TypeError):
            pickle.dumps(stream)


def test_they_are_buffered_file_objects(tmp_path):
    for make in (DataReader, DataWriter):
        stream = make(tmp_path / "file") if make is DataWriter else make(b"data")
        with stream:
            assert isinstance(stream, io.BufferedIOBase) and isinstance(stream, io.IOBase)
            stream.size, stream.more = 5, "attribute"
            assert stream.__dict__ == {"size": 5, "more": "attribute"}
            assert weakref.ref(stream)() is stream
            assert make.__module__ == "pyio_chunked"
        assert stream.closed and not stream.isatty() if not stream.closed else True
        for call in (
            stream.flush,
            stream.tell,
            stream.fileno,
            stream.readable,
            stream.__enter__,
            stream.writable,
        ):
            if make is DataReader and call == stream.flush:
                continue
            with pytest.raises(ValueError, match="closed"):
                call()
    with DataWriter(tmp_path / "file") as w:
        assert w.name == str(tmp_path / "file")
    with open(tmp_path / "file", "rb") as f, DataReader(f) as r:
        assert r.name == f.name
    for method in ("write_int32", "write_str", "read_int32", "read_array", "write_struct"):
        owner = DataWriter if method.startswith("write") else DataReader
        assert getattr(owner, method).__doc__


def test_subclasses_and_cycles(tmp_path):
    class Log(DataWriter):
        def __init__(self, path):
            super().__init__(path, "little")
            self.me = self

        def record(self, n):
            self.write_int32(n)

    log = Log(tmp_path / "file")
    log.record(5)
    log.close()
    assert (tmp_path / "file").read_bytes() == b"\5\0\0\0"
    ref = weakref.ref(log)
    del log
    gc.collect()
    assert ref() is None

    class Forgets(DataReader):
        def __init__(self):
            pass

    empty = Forgets()
    for call in (empty.read_int32, empty.tell, empty.read, lambda: empty.name, lambda: empty.closed):
        with pytest.raises(ValueError, match="uninitialized"):
            call()
    empty.close()
    r = DataReader(b"abc")
    with pytest.raises(ValueError, match="already"):
        r.__init__(b"def")
    assert r.read() == b"abc"


def test_a_dropped_writer_flushes_and_warns(tmp_path):
    target = io.BytesIO()
    with pytest.warns(ResourceWarning, match="unclosed data writer"):
        DataWriter(target).write_int32(7)
        gc.collect()
    assert target.getvalue() == b"\0\0\0\7"
    path = tmp_path / "file"
    with pytest.warns(ResourceWarning, match="unclosed"):
        DataWriter(path)
        gc.collect()
    w = DataWriter(path)
    w.write_int32(1)
    w.me = w
    with pytest.warns(ResourceWarning):
        del w
        gc.collect()
    assert path.read_bytes() == b"\0\0\0\1"
    with pytest.warns(ResourceWarning, match="unclosed data reader"):
        DataReader(path)
        gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    DataReader(b"data").read_int8()
    w = DataWriter(io.BytesIO())
    w.write_int8(1)
    w.flush()
    del w
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_dropped_writer_whose_target_fails_says_so(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda about: seen.append(type(about.exc_value)))
    with pytest.warns(ResourceWarning):
        DataWriter("/dev/full").write_int32(7)
        gc.collect()
    assert seen == [OSError]


# ------------------------------------------------------------------- names


def test_the_import_is_light():
    script = """if True:
        import sys
        import pyio_chunked
        assert pyio_chunked.DataWriter and pyio_chunked.ShortReadError
        assert not {"struct", "array", "numpy"} & (set(sys.modules) - before)
    """
    subprocess.run([sys.executable, "-c", "import sys; before = set(sys.modules)\n" + script], check=True)


def test_names():
    assert pyio_chunked.DataReader is DataReader
    assert issubclass(ShortReadError, EOFError)
    error = ShortReadError("text")
    assert (error.expected, error.partial, error.offset) == (0, b"", 0)
