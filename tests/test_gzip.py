# SPDX-License-Identifier: MIT
"""GzipFile, InflateReader, gzip_open and open(compression=) beside gzip.

Length: one model of sources and streams serves all of it.
"""

from __future__ import annotations

import array
import contextlib
import gzip
import io
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
import zipfile
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inflate_help import BOUNDS, WBITS, bgzf, pack, text

import pyio_chunked
from pyio_chunked import GzipFile, InflateReader, LimitError, gzip_open, pool

DATA = text(700_000)
PACKED = gzip.compress(DATA)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "data.gz"
    path.write_bytes(PACKED)
    return path


def member(data: bytes, flags: int = 0, mtime: int = 7, extra: bytes = b"extra") -> bytes:
    head = b"\x1f\x8b\x08" + bytes([flags]) + struct.pack("<I", mtime) + b"\x00\xff"
    if flags & 4:
        head += struct.pack("<H", len(extra)) + extra
    if flags & 8:
        head += b"name\0"
    if flags & 16:
        head += b"comment\0"
    if flags & 2:
        head += struct.pack("<H", zlib.crc32(head) & 0xFFFF)
    return head + pack(data, "raw") + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)


class Raw(io.RawIOBase):
    """A source that gives at most `most` bytes a call."""

    def __init__(self, data: bytes, most: int = 1 << 30) -> None:
        self.inner, self.most = io.BytesIO(data), most

    def readable(self):
        return True

    def readinto(self, buffer):
        piece = self.inner.read(min(self.most, len(buffer)))
        buffer[: len(piece)] = piece
        return len(piece)


class OnlyRead:
    def __init__(self, data: bytes) -> None:
        self.inner = io.BytesIO(data)

    def read(self, size=-1):
        return self.inner.read(size)


@contextlib.contextmanager
def as_source(kind: str, data: bytes, folder):
    """The data as a source of each kind."""
    place = folder / "source"
    place.write_bytes(data)
    feeder = None
    with contextlib.ExitStack() as stack:
        if kind == "path":
            yield place
        elif kind == "bytes path":
            yield os.fsencode(place)
        elif kind == "fd":
            fd = os.open(place, os.O_RDONLY)
            stack.callback(os.close, fd)
            yield fd
        elif kind == "FileIO":
            yield stack.enter_context(open(place, "rb", buffering=0))
        elif kind == "BufferedReader":
            yield stack.enter_context(open(place, "rb"))
        elif kind == "File":
            yield stack.enter_context(pyio_chunked.open(place))
        elif kind == "BytesIO":
            yield io.BytesIO(data)
        elif kind == "raw, 1000 bytes a call":
            yield stack.enter_context(Raw(data, 1000))
        elif kind == "read() alone":
            yield OnlyRead(data)
        elif kind in ("pipe", "socket"):
            if kind == "pipe":
                read_end, write_end = os.pipe()
                stack.callback(os.close, read_end)
                target = open(write_end, "wb")
                source = read_end
            else:
                a, b = socket.socketpair()
                stack.enter_context(a)
                target, source = b.makefile("wb"), a
                b.close()

            def feed():
                with contextlib.suppress(BrokenPipeError, ConnectionError), target:
                    target.write(data)

            feeder = threading.Thread(target=feed)
            feeder.start()
            stack.callback(feeder.join)
            yield source


KINDS = ["path", "bytes path", "fd", "FileIO", "BufferedReader", "File", "BytesIO", "raw, 1000 bytes a call",
         "read() alone", "pipe", "socket"]  # fmt: skip
SEEKABLE = {"path", "bytes path", "fd", "FileIO", "BufferedReader", "File", "BytesIO"}


# ---------------------------------------------------------------- sources


@pytest.mark.parametrize("format", WBITS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_source(kind, format, tmp_path):
    with as_source(kind, pack(DATA, format), tmp_path) as source, InflateReader(source, format) as reader:
        assert reader.read(10) == DATA[:10]
        buffer = bytearray(100_000)
        assert reader.readinto(buffer) == 100_000
        assert buffer == DATA[10:100_010]
        assert reader.tell() == 100_010
        assert reader.read() == DATA[100_010:]
        assert reader.read() == reader.read(5) == reader.read1() == b""
        assert reader.seekable() == (kind in SEEKABLE)
        if kind in SEEKABLE:
            assert reader.seek(5) == 5
            assert reader.read(1000) == DATA[5:1005]
        else:
            with pytest.raises(io.UnsupportedOperation):
                reader.seek(5)
    with as_source(kind, pack(DATA, format), tmp_path) as source, InflateReader(source) as reader:
        assert b"".join(iter(lambda: reader.read1(8192), b"")) == DATA


def test_what_was_given_stays_open_and_a_path_is_closed(path, tmp_path):
    with open(path, "rb") as file:
        GzipFile(fileobj=file).close()
        assert not file.closed
    fd = os.open(path, os.O_RDONLY)
    InflateReader(fd).close()
    os.close(fd)
    before = set(os.listdir("/proc/self/fd"))
    reader = GzipFile(path)
    assert not os.get_inheritable(reader.source_fileno())
    reader.close()
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("by", ["object", "descriptor"])
def test_a_pipe_is_not_waited_for_without_need(by):
    read_end, write_end = os.pipe()
    packer = zlib.compressobj(wbits=31)
    with open(read_end, "rb", buffering=0) as source, open(write_end, "wb", buffering=0) as target:
        reader = InflateReader(source if by == "object" else read_end)
        target.write(packer.compress(b"first ") + packer.flush(zlib.Z_SYNC_FLUSH))
        assert reader.read1(100) == b"first "
        target.write(packer.compress(b"second\n") + packer.flush(zlib.Z_SYNC_FLUSH))
        assert reader.peek() == b"second\n"
        assert reader.readline() == b"second\n"
        target.write(packer.compress(b"third") + packer.flush(zlib.Z_SYNC_FLUSH))
        assert reader.readinto1(bytearray(100)) == 5


def test_nothing_there_from_a_non_blocking_source():
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    with open(read_end, "rb", buffering=0), open(write_end, "wb", buffering=0) as target:
        reader = InflateReader(read_end, "gzip")
        with pytest.raises(BlockingIOError):
            reader.read(10)
        target.write(PACKED[:2000])
        first = reader.read(100_000)
        assert DATA.startswith(first)
        assert 1000 < len(first) < 100_000
        with pytest.raises(BlockingIOError):
            reader.read(10)
        target.write(PACKED[2000:4000])
        second = reader.read()
        assert second
        assert DATA.startswith(first + second)


def test_socket_timeout():
    a, b = socket.socketpair()
    with a, b:
        a.settimeout(0.05)
        reader = InflateReader(a, "gzip")
        with pytest.raises(TimeoutError):
            reader.read(10)
        b.sendall(PACKED[:5000])
        assert reader.read(10) == DATA[:10]


def test_position_that_is_not_zero(tmp_path):
    place = tmp_path / "place"
    place.write_bytes(b"head" + PACKED)
    for source in (io.BytesIO(b"head" + PACKED), open(place, "rb"), open(place, "rb", buffering=0)):
        with source:
            source.seek(4)
            reader = GzipFile(fileobj=source)
            assert reader.read(5) == DATA[:5]
            assert reader.read() == DATA[5:]
            reader.rewind()
            assert reader.read() == DATA
    fd = os.open(place, os.O_RDONLY)
    os.lseek(fd, 4, os.SEEK_SET)
    with InflateReader(fd) as reader:
        assert reader.read() == DATA
        assert reader.seek(3) == 3
        assert reader.read(5) == DATA[3:8]
    os.close(fd)


@pytest.mark.parametrize("wrong", [-1, 1 << 40, None, "text", b"x"])
def test_a_source_that_lies(wrong):
    class Liar(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, buffer):
            return wrong

    with pytest.raises((OSError, TypeError, ValueError)):
        InflateReader(Liar()).read()


def test_wrong_sources(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        GzipFile(tmp_path / "none.gz")
    assert caught.value.filename == str(tmp_path / "none.gz")
    with pytest.raises(IsADirectoryError):
        InflateReader(tmp_path)
    for endless in ("/dev/zero", "/dev/urandom"):
        with pytest.raises(ValueError, match="no end"):
            InflateReader(endless)
    with pytest.raises(TypeError):
        InflateReader(io.StringIO("text"))
    with pytest.raises(TypeError):
        InflateReader(object())
    with pytest.raises(TypeError):
        GzipFile()
    with pytest.raises(ValueError, match="chunk_size"):
        InflateReader(io.BytesIO(), chunk_size=0)


def test_a_source_that_raises():
    class Failing(Raw):
        fails = False

        def readinto(self, buffer):
            if self.fails:
                raise KeyError("no more")
            return super().readinto(buffer)

    source = Failing(PACKED, 100_000)
    reader = InflateReader(source)
    assert reader.read(10) == DATA[:10]
    source.fails = True
    with pytest.raises(KeyError):
        reader.read()
    source.fails = False
    assert reader.tell() == 10
    assert reader.read() == DATA[10:]  # nothing is lost


@pytest.mark.parametrize("position", [-5, 2**70, "text", None, RuntimeError("tell"), OSError("tell")])
def test_a_source_that_does_not_know_where_it_is(position):
    """It is read on, as gzip does; only going back is refused."""

    class Odd(io.BytesIO):
        def tell(self):
            if isinstance(position, Exception):
                raise position
            return position

    with GzipFile(fileobj=Odd(PACKED)) as reader:
        assert reader.read() == DATA
        with pytest.raises(io.UnsupportedOperation):
            reader.seek(0)

    class Interrupted(io.BytesIO):
        def tell(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), GzipFile(fileobj=Interrupted(PACKED)) as reader:
        reader.read()


def test_reentrant_source():
    class Nosy(Raw):
        def readinto(self, buffer):
            reader.read(1)

    reader = InflateReader(Nosy(PACKED))
    with pytest.raises(RuntimeError, match="reentrant call"):
        reader.read(1)


@pytest.mark.parametrize("chunk", [1, 2, 17, 4096, 1 << 30])
def test_chunk_sizes(chunk):
    data = DATA[:3000]
    for format in WBITS:
        assert InflateReader(io.BytesIO(pack(data, format)), format, chunk_size=chunk).read() == data


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize("size", BOUNDS)
def test_every_length(size, tmp_path):
    data, place = text(size), tmp_path / "data.gz"
    place.write_bytes(gzip.compress(data))
    with GzipFile(place) as reader:
        assert reader.read() == data
        reader.seek(0)
        assert reader.read(size) == data
        assert reader.read(1) == b""
        reader.rewind()
        assert reader.read(size + 1) == data
        reader.rewind()
        assert b"".join(iter(lambda: reader.read(65536), b"")) == data
        reader.rewind()
        assert b"".join(reader) == data
        reader.rewind()
        buffer = bytearray(size + 1)
        assert reader.readinto(buffer) == size
        assert buffer == data + b"\0"


@settings(max_examples=60)
@given(st.data())
def test_reading_model(draw):
    """Against BytesIO of the plain data, any calls in any order."""
    data = draw.draw(st.sampled_from([b"", b"a", b"line\n" * 30, DATA[:70_000], DATA]))
    cut = draw.draw(st.integers(0, len(data)))
    packed = gzip.compress(data[:cut]) + bytes(draw.draw(st.integers(0, 5))) + gzip.compress(data[cut:])
    source = draw.draw(st.sampled_from([io.BytesIO, Raw]))(packed)
    ours, theirs = GzipFile(fileobj=source), io.BytesIO(data)
    sizes = st.one_of(st.integers(-1, 40), st.sampled_from([8192, 65535, 65536, 70_000, 300_000, 2**40]))
    for _ in range(draw.draw(st.integers(1, 12))):
        call = draw.draw(
            st.sampled_from(["read", "readline", "readinto", "read1", "peek", "seek", "next", "tell"])
        )
        size = draw.draw(sizes)
        if call in ("read", "readline"):
            assert getattr(ours, call)(size) == getattr(theirs, call)(size)
        elif call == "readinto":
            a, b = (bytearray(max(0, min(size, 400_000))) for _ in "ab")
            assert ours.readinto(a) == theirs.readinto(b)
            assert a == b
        elif call in ("read1", "peek"):
            at = theirs.tell()
            got = getattr(ours, call)(size)
            assert data.startswith(got, at)
            assert got or at >= len(data) or size == 0
            assert size < 0 or call == "peek" or len(got) <= size
            theirs.seek(at + len(got) * (call == "read1"))
        elif call == "seek" and isinstance(source, io.BytesIO):
            at = max(0, min(size, len(data)))
            whence = draw.draw(st.integers(0, 2))
            if whence == 0:
                assert ours.seek(at) == theirs.seek(at)
            elif whence == 1:
                step = draw.draw(st.integers(-20, 20))
                to = max(0, min(theirs.tell() + step, len(data)))
                assert ours.seek(step, 1) == theirs.seek(to)
            else:
                assert ours.seek(-min(at, len(data)), 2) == theirs.seek(len(data) - min(at, len(data)))
        elif call == "next":
            assert next(ours, b"") == next(theirs, b"")
        assert ours.tell() == theirs.tell()


def test_memory_follows_the_data():
    packed = gzip.compress(b"x" * 100_000)
    for size in (2**40, 2**62):
        assert len(GzipFile(fileobj=io.BytesIO(packed)).read(size)) == 100_000
        assert len(GzipFile(fileobj=io.BytesIO(packed)).readline(size)) == 100_000
    with pytest.raises(OverflowError):
        GzipFile(fileobj=io.BytesIO(packed)).read(2**64)
    with pytest.raises(ValueError):
        GzipFile(fileobj=io.BytesIO(packed)).read(-2)


def test_buffers():
    reader = GzipFile(fileobj=io.BytesIO(PACKED))
    with pytest.raises((TypeError, BufferError)):
        reader.readinto(b"read-only")
    ints = array.array("i", [0] * 25)
    assert reader.readinto(ints) == 100
    assert ints.tobytes() == DATA[:100]
    assert reader.readinto(bytearray()) == 0
    assert reader.readinto1(memoryview(bytearray(5))) == 5
    assert reader.tell() == 105


# ---------------------------------------------------------------- the format


@pytest.mark.parametrize("flags", range(32))
def test_header_fields(flags, tmp_path):
    data = text(1000)
    packed = member(data, flags) + bytes(3) + member(data, flags, mtime=9)
    for piece in (1 << 30, 1, 3):
        reader = GzipFile(fileobj=Raw(packed, piece))
        assert reader.mtime is None
        assert reader.read(5) == data[:5]
        assert reader.mtime == 7
        assert reader.read() == data[5:] + data
        assert reader.mtime == 9
    if flags & 2:
        bad = bytearray(member(data, flags))
        bad[4] ^= 1
        with pytest.raises(gzip.BadGzipFile, match="Header CRC check failed 0x"):
            GzipFile(fileobj=io.BytesIO(bad)).read()


@pytest.mark.parametrize("bit", [0x20, 0x40, 0x80])
def test_reserved_flags(bit):
    with pytest.raises(gzip.BadGzipFile, match="Reserved"):
        GzipFile(fileobj=io.BytesIO(member(b"x", bit))).read()


def test_a_name_of_64_mib_takes_no_memory():
    class Endless(io.RawIOBase):
        left = 64 << 20

        def readable(self):
            return True

        def readinto(self, buffer):
            if not self.left:
                return 0
            n = min(len(buffer), self.left)
            buffer[:n] = b"n" * n
            if self.left == 64 << 20:
                buffer[:10] = b"\x1f\x8b\x08\x08" + bytes(6)
            self.left -= n
            return n

    reader = GzipFile(fileobj=Endless())
    before = pool.stats().in_use
    with pytest.raises(EOFError):
        reader.read(1)
    assert pool.stats().in_use - before < 1 << 20


def test_padding_garbage_and_empty_members():
    empty = gzip.compress(b"")
    data = text(300)
    for packed in (empty, empty * 50, empty + bytes(100) + gzip.compress(data) + empty, b""):
        for piece in (1, 100, 1 << 30):
            assert (
                GzipFile(fileobj=Raw(packed, piece)).read()
                == gzip.GzipFile(fileobj=io.BytesIO(packed)).read()
            )
    reader = GzipFile(fileobj=io.BytesIO(gzip.compress(data) + b"garbage"))
    assert reader.read(300) == data
    for _ in range(2):
        with pytest.raises(gzip.BadGzipFile, match=r"Not a gzipped file \(b'ga'\)"):
            reader.read(1)
    for first in (b"x", b"\0", b"\x1f", b"BZh9"):
        with pytest.raises(gzip.BadGzipFile):
            GzipFile(fileobj=io.BytesIO(first)).read()


def test_cut_at_every_byte():
    data = text(700)
    packed = member(data, 31) + bytes(2) + gzip.compress(data)
    first = len(member(data, 31))
    for cut in range(1, len(packed)):
        for piece in (1, 50, 1 << 30):
            reader = GzipFile(fileobj=Raw(packed[:cut], piece))
            if first <= cut <= first + 2:
                assert reader.read() == data
                continue
            with pytest.raises((EOFError, gzip.BadGzipFile)):
                reader.read()
            # What came before is not lost, and never taken for the whole.
            got = b""
            while True:
                try:
                    got += reader.read1()
                except (EOFError, gzip.BadGzipFile):
                    break
            assert (data + data).startswith(got)


@pytest.mark.parametrize("format", ["zlib", "raw"])
def test_cut_streams(format):
    packed = pack(text(500), format)
    for cut in range(len(packed)):
        with pytest.raises(EOFError):
            InflateReader(io.BytesIO(packed[:cut]), format).read()


def test_wrong_trailers():
    for at in range(1, 9):
        bad = bytearray(PACKED)
        bad[-at] ^= 0x10
        reader = GzipFile(fileobj=io.BytesIO(bad))
        with pytest.raises(gzip.BadGzipFile, match="Incorrect length" if at <= 4 else "CRC check failed"):
            reader.read()
        reader.seek(0)
        assert reader.read(len(DATA) - 1) == DATA[:-1]
        with pytest.raises(gzip.BadGzipFile):
            reader.read()
    with pytest.raises(zlib.error, match="incorrect data check"):
        InflateReader(io.BytesIO(pack(DATA, "zlib")[:-1] + b"!")).read()


def test_errors_name_file_member_and_offset(path):
    path.write_bytes(PACKED + PACKED[:-8] + b"12345678")
    with GzipFile(path) as reader, pytest.raises(gzip.BadGzipFile) as caught:
        reader.read()
    for part in ("CRC check failed 0x", "compressed byte", "member 2", "data.gz"):
        assert part in str(caught.value)


@pytest.mark.parametrize("format", WBITS)
def test_max_size(format):
    packed = pack(DATA, format)
    with InflateReader(io.BytesIO(packed), format, max_size=len(DATA)) as reader:
        assert reader.read() == DATA
    reader = InflateReader(io.BytesIO(packed), format, max_size=1000)
    assert reader.read(1000) == DATA[:1000]
    for _ in range(2):
        with pytest.raises(LimitError) as caught:
            reader.read(1)
    assert (caught.value.limit, caught.value.allowed) == ("max_size", 1000)
    assert isinstance(caught.value, gzip.BadGzipFile) == (format == "gzip")
    with pytest.raises(LimitError):
        InflateReader(io.BytesIO(packed), format, max_size=len(DATA) - 1).read()
    with pytest.raises(LimitError):
        GzipFile(fileobj=io.BytesIO(PACKED), max_size=0).read()


# ---------------------------------------------------------------- BGZF


@pytest.mark.parametrize("threads", [1, 2, 3, None])
@pytest.mark.parametrize("size", [0, 1, 65280, 65281, 700_000, 6_000_000])
def test_bgzf(size, threads, tmp_path):
    data, place = text(size), tmp_path / "data.bgz"
    packed = bgzf(data)
    place.write_bytes(packed)
    for source in (place, io.BytesIO(packed), Raw(packed, 5000), Raw(packed, 1 << 30)):
        options = {"fileobj": source} if source is not place else {"filename": source}
        with GzipFile(**options, threads=threads) as reader:
            assert reader.read(7) == data[:7]
            assert reader.read() == data[7:]
    with GzipFile(place, threads=threads) as reader:
        assert b"".join(iter(lambda: reader.read(100_000), b"")) == data
        assert reader.seek(size // 2) == size // 2
        assert reader.read(10) == data[size // 2 : size // 2 + 10]
        reader.seek(0)
        assert b"".join(reader) == data
    with GzipFile(place, threads=threads, max_size=size) as reader:
        assert reader.read() == data
    if size:
        with GzipFile(place, threads=threads, max_size=size - 1) as reader, pytest.raises(LimitError):
            reader.read()


@pytest.mark.parametrize("threads", [1, 2])
def test_bgzf_that_is_damaged_or_mixed(threads, tmp_path):
    data = text(1_000_000)
    packed = bgzf(data)
    place = tmp_path / "data.bgz"
    for at in (30, len(packed) // 2, len(packed) - 40):
        bad = bytearray(packed)
        bad[at] ^= 0x55
        place.write_bytes(bad)
        with (
            GzipFile(place, threads=threads) as reader,
            pytest.raises((gzip.BadGzipFile, zlib.error, EOFError)),
        ):
            reader.read()
    for cut in (5, 17, 18, 20000, len(packed) - 28, len(packed) - 1):
        place.write_bytes(packed[:cut])
        with GzipFile(place, threads=threads) as reader:
            if cut == len(packed) - 28:  # the empty block at the end
                assert reader.read() == data
            else:
                with pytest.raises(EOFError):
                    reader.read()
    for mixed in (packed + PACKED, packed + bytes(9) + packed, packed + PACKED * 3 + packed):
        place.write_bytes(mixed)
        with GzipFile(place, threads=threads) as reader:
            assert reader.read() == gzip.decompress(mixed)
    lying = bytearray(packed)
    struct.pack_into("<H", lying, 16, 60_000)  # a wrong block size
    place.write_bytes(lying)
    with GzipFile(place, threads=threads) as reader:
        assert reader.read() == data
    with pytest.raises(ValueError, match="threads"):
        GzipFile(place, threads=0)


# ---------------------------------------------------------------- drop-in


def test_names_modes_and_attributes(path, tmp_path):
    for options, name in (
        ({"filename": path}, str(path)),
        ({"filename": os.fsencode(path)}, os.fsencode(path)),
        ({"fileobj": io.BytesIO(PACKED)}, ""),
        ({"filename": "given", "fileobj": io.BytesIO(PACKED)}, "given"),
    ):
        theirs = gzip.GzipFile(mode="rb", **options)
        with GzipFile(mode="rb", **options) as ours:
            assert ours.name == theirs.name == name
            assert ours.mode == "rb"
            assert (ours.readable(), ours.writable(), ours.closed) == (True, False, False)
            assert isinstance(ours, io.BufferedIOBase)
            ours.size, ours.name = 5, "other"  # as fsspec does
            assert (ours.size, ours.name) == (5, "other")
            assert weakref.ref(ours)() is ours
            assert repr(ours).startswith("<pyio_chunked.GzipFile")
        theirs.close()
    with open(path, "rb") as file:
        assert GzipFile(fileobj=file).name == str(path)
    for mode in ("w", "wb", "a", "x", "xb"):
        with pytest.raises(ValueError, match=r"gzip\.GzipFile"):
            GzipFile(tmp_path / "new.gz", mode)
    assert not (tmp_path / "new.gz").exists()
    for mode in ("rt", "U", "z", ""):
        with pytest.raises(ValueError, match="Invalid mode"):
            GzipFile(path, mode)
    with open(tmp_path / "writing", "wb") as file, pytest.raises(ValueError, match=r"gzip\.GzipFile"):
        GzipFile(fileobj=file)


def test_descriptor_of_decoded_data_is_refused(path):
    with GzipFile(path) as reader:
        with pytest.raises(io.UnsupportedOperation, match="source_fileno"):
            reader.fileno()
        assert os.fstat(reader.source_fileno()).st_size == len(PACKED)
        assert not reader.isatty()
        with pytest.raises(io.UnsupportedOperation):
            reader.write(b"x")
        with pytest.raises(TypeError):
            pickle.dumps(reader)
        reader.read(10)
        assert 0 < reader.fileobj.tell() <= len(PACKED)
        assert reader.fileobj.name == str(path)
        reader.read()
        assert reader.fileobj.tell() == len(PACKED)
        view = reader.fileobj
    assert view.closed
    assert reader.fileobj is None


def test_closed(path):
    reader = GzipFile(path)
    reader.read(5)
    reader.close()
    reader.close()
    assert reader.closed
    for call in (reader.read, reader.readline, reader.peek, reader.tell, reader.readable, reader.seekable,
                 reader.source_fileno, reader.__enter__, lambda: next(reader), lambda: reader.seek(0),
                 lambda: reader.readinto(bytearray(1)), lambda: reader.read1(1)):  # fmt: skip
        with pytest.raises(ValueError, match="closed file"):
            call()


def test_dropped_open_warns_for_what_we_opened(path):
    with pytest.warns(ResourceWarning, match="unclosed file"):
        GzipFile(path)
    reader = GzipFile(fileobj=io.BytesIO(PACKED))
    reader.read(5)
    before = pool.stats().in_use
    del reader
    assert pool.stats().in_use < before


def test_subclasses(path):
    calls = []

    class Mine(GzipFile):
        def close(self):
            calls.append("close")
            super().close()

        def read(self, size=-1):
            return super().read(size).upper()

    with Mine(path) as mine:
        assert mine.read(5) == DATA[:5].upper()
    assert calls == ["close"]
    assert mine.closed


def test_gzip_open(path):
    with gzip_open(path) as file:
        assert type(file) is GzipFile
        assert file.read() == DATA
    with gzip_open(str(path), "rt", encoding="ascii", newline="") as file:
        assert isinstance(file, io.TextIOWrapper)
        assert file.read() == DATA.decode()
    with gzip_open(io.BytesIO(PACKED), "r", threads=2, compresslevel=3) as file:
        assert file.read() == DATA
    for mode, options, error in (
        ("rbt", {}, ValueError),
        ("rb", {"encoding": "ascii"}, ValueError),
        ("rb", {"newline": ""}, ValueError),
        ("wb", {}, ValueError),
        ("wt", {}, ValueError),
        ("rb", {"nonsense": 1}, TypeError),
    ):
        with pytest.raises(error):
            gzip_open(path, mode, **options)
    with pytest.raises(TypeError):
        gzip_open(123)
    with gzip.open(path, "rt") as theirs, gzip_open(path, "rt") as ours:
        assert list(ours) == list(theirs)


def test_open_with_compression(path, tmp_path):
    plain, as_zlib, one, two = (tmp_path / name for name in ("plain.gz", "data.zz", "one.zip", "two.zip"))
    plain.write_bytes(DATA)
    as_zlib.write_bytes(zlib.compress(DATA))
    for place, count in ((one, 1), (two, 2)):
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
            for k in range(count):
                archive.writestr(f"{k}", DATA)
    with pyio_chunked.open(path, compression="infer") as file:
        assert isinstance(file, GzipFile)
        assert file.name == str(path)
        assert file.read() == DATA
    with pyio_chunked.open(plain, compression="infer") as file:
        assert isinstance(file, pyio_chunked.File)
        assert file.read() == DATA
    with pyio_chunked.open(path, compression="gzip") as file:
        assert file.read(3) == DATA[:3]
        assert file.seek(0) == 0
        assert file.read() == DATA
    with pyio_chunked.open(as_zlib, compression="zlib") as file:
        assert file.read() == DATA
    with pyio_chunked.open(as_zlib, compression="infer") as file:
        assert file.read() == zlib.compress(DATA)  # zlib's two bytes prove nothing
    with pyio_chunked.open(path, "rt", compression="infer", encoding="ascii") as file:
        assert file.read() == DATA.decode()
    with pyio_chunked.open(os.open(path, os.O_RDONLY), compression="infer") as file:
        assert file.read() == DATA
    with pyio_chunked.open(one, compression="infer") as file:
        assert file.read() == DATA
    with pytest.raises(ValueError, match="2 members"):
        pyio_chunked.open(two, compression="infer")
    fd = os.open(one, os.O_RDONLY)
    with pyio_chunked.open(fd, "rt", compression="infer", encoding="ascii") as file:
        assert file.read() == DATA.decode()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)  # it was ours
    fd = os.open(two, os.O_RDONLY)
    with pytest.raises(ValueError, match="2 members"):
        pyio_chunked.open(fd, compression="infer")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)  # as builtins.open, when it fails behind the opening
    fd = os.open(two, os.O_RDONLY)
    with pytest.raises(ValueError, match="compression"):
        pyio_chunked.open(fd, compression="bz2")
    os.close(fd)  # refused before it was ours
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    keeper = os.open(fifo, os.O_RDWR)
    try:
        os.write(keeper, one.read_bytes()[:100])
        with pytest.raises(ValueError, match="not seekable"):
            pyio_chunked.open(fifo, compression="infer")
    finally:
        os.close(keeper)
    with pytest.raises(gzip.BadGzipFile), pyio_chunked.open(plain, compression="gzip") as file:
        file.read()
    for mode in ("wb", "ab", "xb", "r+b", "wt"):
        with pytest.raises(ValueError, match=r"gzip\.open"):
            pyio_chunked.open(path, mode, compression="infer")
    with pytest.raises(ValueError, match="compression"):
        pyio_chunked.open(path, compression="bz2")
    empty = tmp_path / "empty"
    empty.touch()
    with pyio_chunked.open(empty, compression="infer") as file:
        assert file.read() == b""


def test_opening_is_audited(path, tmp_path):
    code = """
import sys
seen = []
sys.addaudithook(lambda name, args: seen.append(args) if name == "open" else None)
import pyio_chunked
pyio_chunked.gzip_open, pyio_chunked._inflate
for call in (pyio_chunked.GzipFile, pyio_chunked.InflateReader, pyio_chunked.gzip_open,
             lambda path: pyio_chunked.open(path, compression="gzip")):
    seen.clear()
    with call(sys.argv[1]):
        print([args[:2] for args in seen] == [(sys.argv[1], "r")] or seen)
"""
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert {line[:4] for line in done.stdout.splitlines()} <= {"True", "[('/"}, done.stderr
    assert done.stdout.count("\n") == 4, done.stderr


# ---------------------------------------------------------------- threads, signals, fork


def test_threads_share_a_reader(path):
    with GzipFile(path) as reader:
        pieces = []

        def read():
            while piece := reader.read(1000):
                pieces.append(piece)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(map(len, pieces)) == len(DATA)
    assert sorted(pieces) == sorted(DATA[i : i + 1000] for i in range(0, len(DATA), 1000))


def test_close_while_another_thread_waits_for_data():
    read_end, write_end = os.pipe()
    with open(write_end, "wb", buffering=0) as target, open(read_end, "rb", buffering=0):
        reader, results = InflateReader(read_end, "gzip"), []

        def read():
            try:
                results.append(reader.read())
            except Exception as error:
                results.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        time.sleep(0.1)
        start = time.monotonic()
        reader.close()
        assert time.monotonic() - start < 5
        assert reader.closed
        target.write(gzip.compress(b"data"))
        target.close()
        thread.join()
        assert results == [b"data"] or isinstance(results[0], (ValueError, OSError))


@contextlib.contextmanager
def alarms(handler, first: float, every: float = 0.0):
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, first, every)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Stop(Exception):
    pass


def test_a_signal_interrupts_and_nothing_is_lost(tmp_path):
    data = text(1000) * 60_000
    place = tmp_path / "large.gz"
    place.write_bytes(gzip.compress(data, 1))

    def handler(*_):
        raise Stop

    with GzipFile(place) as reader:
        got, stops = [], 0
        while True:
            try:
                with alarms(handler, 0.002):
                    piece = reader.read()
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Stop:
                stops += 1
                if stops > 3:
                    reader.seek(0)
                    got.append(reader.read())
                    break
                assert reader.tell() in (0, len(data))  # before, or behind the read
                reader.seek(0)
            else:
                got.append(piece)
                break
        assert b"".join(got) == data
    with GzipFile(place) as reader, alarms(lambda *_: None, 0.001, 0.001):
        assert reader.read() == data


def test_a_signal_interrupts_a_wait():
    read_end, write_end = os.pipe()

    def handler(*_):
        raise Stop

    with open(read_end, "rb", buffering=0), open(write_end, "wb", buffering=0) as target:
        reader = InflateReader(read_end, "gzip")
        target.write(PACKED[:5000])
        with alarms(handler, 0.05), pytest.raises(Stop):
            reader.read()
        got = reader.read1()
        assert got
        assert DATA.startswith(got)


def test_endless_empty_members_are_interruptible():
    block = gzip.compress(b"") * 10_000

    class Endless(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, buffer):
            n = len(buffer) // len(block) * len(block)
            buffer[:n] = block * (n // len(block))
            return n

    def handler(*_):
        raise Stop

    with alarms(handler, 0.05), pytest.raises(Stop):
        GzipFile(fileobj=Endless()).read(1)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_parent_and_child_read_on_after_fork(path):
    with GzipFile(path) as reader:
        assert reader.read(1000) == DATA[:1000]
        pid = os.fork()
        if pid == 0:
            try:
                os._exit(0 if reader.read() == DATA[1000:] and pool.stats().held >= 0 else 1)
            except BaseException:
                os._exit(2)
        assert reader.read() == DATA[1000:]
        assert os.waitpid(pid, 0)[1] == 0


def test_reentrant_handler_is_refused(path):
    read_end, write_end = os.pipe()
    seen = []
    with open(read_end, "rb", buffering=0), open(write_end, "wb", buffering=0) as target:
        reader = InflateReader(read_end, "gzip")

        def handler(*_):
            with contextlib.suppress(RuntimeError):
                reader.read(1)
                seen.append("read")
            seen.append("refused")
            target.write(gzip.compress(DATA[:1000]))
            target.close()

        with alarms(handler, 0.05):
            assert len(reader.read(1000)) == 1000
    assert seen == ["refused"]


# ---------------------------------------------------------------- leases, faults


@pytest.mark.parametrize(("threads", "most"), [(1, 1 << 20), (2, 8 << 20)])
def test_memory_of_streaming(threads, most, tmp_path):
    place = tmp_path / "large.bgz"
    place.write_bytes(bgzf(text(1_000_000)) * 15)
    code = """
import sys, pyio_chunked
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024
buffer = bytearray(65536)
before = peak()
with pyio_chunked.GzipFile(sys.argv[1], threads=int(sys.argv[2])) as reader:
    while reader.readinto(buffer):
        pass
print(peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", code, place, str(threads)], capture_output=True, text=True)
    # The sanitizer's own memory isn't ours.
    assert int(done.stdout) <= most or os.environ.get("PYIO_TEST_BUILD") == "sanitize", done.stderr


def answers_nowait(place):
    if pyio_chunked.build_info()["portable"]:
        return False
    with open(place, "rb") as file:
        try:
            return os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT) >= 0
        except OSError:
            return False


@pytest.mark.parametrize("size", [0, 1, 20_000, 3_000_000])
def test_small_files_are_read_without_waiting(size, tmp_path):
    """By preadv2(RWF_NOWAIT); where that is refused, or brings less, as any other file."""
    core = pyio_chunked._core
    data = text(size) if size < 1_000_000 else bytes(size)  # 3 kB packed
    place = tmp_path / "small.gz"
    place.write_bytes(gzip.compress(data))
    refusals = [
        {"max_nbytes": 1 << 20},
        {"error": 11},
        {"error": 95},
        {"error": 11, "first": 2},
        {"max_nbytes": 7},
        {"max_nbytes": 1},
    ]
    for refused in refusals:
        for threads in (1, 2):
            core._fault_add("pread_nowait", **{"first": 1, "times": 1 << 30, **refused})
            try:
                with GzipFile(place, threads=threads) as reader:
                    assert reader.read(10) == data[:10]
                    assert reader.read() == data[10:]
                    reader.seek(0)
                    assert reader.read() == data
                    if refused.get("error") != 95:
                        assert core._fault_calls()["pread_nowait"] > 0
                with GzipFile(place, max_size=size) as reader:
                    assert reader.read() == data
                if size:
                    with GzipFile(place, max_size=size - 1) as reader, pytest.raises(LimitError):
                        reader.read()
            finally:
                core._fault_clear()
    core._fault_count()
    try:
        with GzipFile(place) as reader:
            assert reader.read() == data
        calls = core._fault_calls()
        assert calls["pread_nowait"] > 0
        # Where the file system knows it, no other: one is ISIZE, for the first guess. Much data is no small work.
        assert size > 65536 or calls.get("pread", 0) <= 1 or not answers_nowait(place)
    finally:
        core._fault_clear()
    place.write_bytes(gzip.compress(data)[:-3])
    with GzipFile(place) as reader, pytest.raises(EOFError):
        reader.read()


def test_streams_hold_nothing_before_and_behind(path):
    before = pool.stats().in_use
    idle = [GzipFile(path) for _ in range(100)]
    assert pool.stats().in_use == before
    for reader in idle:
        reader.read()
        assert pool.stats().in_use == before
        reader.close()
    with GzipFile(path) as reader:
        reader.read(10)
        assert 0 < pool.stats().in_use - before <= 1 << 20
        reader.seek(0)
    assert pool.stats().in_use == before
    bad = GzipFile(fileobj=io.BytesIO(PACKED[:1000]))
    with pytest.raises(EOFError):
        bad.read()
    with pytest.raises(EOFError):
        while True:
            bad.read1()
    bad.close()
    assert pool.stats().in_use == before


@pytest.mark.parametrize("call", ["pread", "read"])
def test_faults_of_reading(call, path):
    core = pyio_chunked._core

    def readers():
        if call == "pread":
            yield GzipFile(path)
        else:
            fd = os.open(path, os.O_RDONLY)
            try:
                yield InflateReader(fd)
            finally:
                os.close(fd)

    for error, first in ((5, 1), (5, 2), (4, 1), (4, 3)):
        for reader in readers():
            with reader:
                core._fault_add(call, error=error, first=first, times=1)
                if error == 4:  # EINTR: go on
                    assert reader.read() == DATA
                else:
                    try:
                        got = reader.read()
                    except OSError as failure:
                        assert failure.errno == 5
                        got = reader.read()
                    assert got == DATA
                core._fault_clear()
    for piece in (1, 1000):
        for reader in readers():
            with reader:
                core._fault_add(call, max_nbytes=piece, first=1, times=1 << 30)
                assert reader.read(2000) == DATA[:2000]
                core._fault_clear()


@pytest.mark.parametrize("call", ["malloc", "calloc", "realloc", "allow_result", "openat", "fstat", "lseek"])
def test_faults_of_everything_else(call, path):
    core = pyio_chunked._core
    for k in range(1, 8):
        for threads in (1, 2):
            pool.trim()
            before = pool.stats().in_use
            core._fault_add(call, error=12, first=k)
            try:
                with GzipFile(path, threads=threads) as reader:
                    try:
                        assert reader.read(100_000) == DATA[:100_000]
                    except MemoryError:
                        assert reader.tell() == 0
                        assert reader.read(100_000) == DATA[:100_000]
                    try:
                        assert reader.read() == DATA[100_000:]
                    except MemoryError:
                        core._fault_clear()
                        assert reader.read() == DATA[100_000:]
            except OSError as failure:
                assert failure.errno == 12
            finally:
                core._fault_clear()
            assert pool.stats().in_use == before


@pytest.mark.heavy
def test_more_than_4_gib():
    zeros = bytes(1 << 20)
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    packed = b"".join(packer.compress(zeros) for _ in range(4100)) + packer.flush()
    reader, total = GzipFile(fileobj=io.BytesIO(packed)), 0
    while piece := reader.read(1 << 20):
        total += len(piece)
    assert total == 4100 << 20
