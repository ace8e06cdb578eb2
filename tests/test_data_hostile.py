# SPDX-License-Identifier: MIT
"""Typed data streams used against their grain: constructors that fail and are
called again, targets that refuse half a value, iterators shared by threads."""

from __future__ import annotations

import io
import mmap
import os
import signal
import struct
import threading
import time

import pytest

import pyio_chunked
from pyio_chunked import DataReader, DataWriter, ShortReadError
from pyio_chunked.java import DataInput, DataOutput

# ------------------------------------------------------- half a value refused


class Full:
    """Takes one byte a call up to `budget`, then raises."""

    def __init__(self):
        self.got, self.budget = bytearray(), 1

    def write(self, data):
        if len(self.got) >= self.budget:
            raise OSError(28, "no space")
        self.got += data[:1]
        return 1


WRITES = {
    "int8": lambda w: w.write_int8(7),
    "bool": lambda w: w.write_bool(True),
    "int64": lambda w: w.write_int64(7),
    "float64": lambda w: w.write_float64(7.0),
    "uvarint": lambda w: w.write_uvarint(2**63),
    "str": lambda w: w.write_str("text"),
    "mutf8": lambda w: w.write_mutf8("\u00e9"),
    "bytes": lambda w: w.write_bytes(b"bytes"),
    "array": lambda w: w.write_array(memoryview(b"12345678").cast("q")),
    "struct": lambda w: w.write_struct("<hq", 1, 2),
    "write": lambda w: w.write(b"more"),
}


@pytest.mark.parametrize("name", WRITES)
def test_unbuffered_nothing_is_stored_behind_what_was_refused(name):
    """The rest of a value waits; until it is out, no value is accepted."""
    target = Full()
    w = DataWriter(target, buffer_size=0)
    with pytest.raises(OSError) as caught:
        w.write_int32(5)
    assert caught.value.transferred == 1
    for _ in range(5000):
        with pytest.raises(OSError):
            WRITES[name](w)
    assert w.tell() == 4
    target.budget = 10**9
    WRITES[name](w)
    plain = io.BytesIO()
    WRITES[name](DataWriter(plain, buffer_size=0))
    assert bytes(target.got) == b"\0\0\0\5" + plain.getvalue()
    w.close()


def test_unbuffered_java_stores_nothing_behind_what_was_refused():
    target = Full()
    out = DataOutput(target, buffer_size=0)
    with pytest.raises(OSError):
        out.writeLong(1)
    for _ in range(5000):
        for write in (lambda: out.writeInt(2), lambda: out.writeUTF("\u00e9"), lambda: out.writeByte(1)):
            with pytest.raises(OSError):
                write()
    assert out.size() == 8
    target.budget = 10**9
    out.writeInt(2)
    out.close()
    assert bytes(target.got) == struct.pack(">qi", 1, 2)


# ------------------------------------------------------ constructors, again


def test_a_constructor_that_failed_leaves_nothing_to_the_next(tmp_path):
    """Neither its buffer, of another size, nor its descriptor."""
    target = io.BytesIO()
    w = DataWriter.__new__(DataWriter)
    with pytest.raises(OSError):
        w.__init__(tmp_path / "none" / "file", buffer_size=64)
    w.__init__(target, buffer_size=1 << 22)
    for n in range(100_000):
        w.write_int64(n)
    w.close()
    assert target.getvalue() == struct.pack(">100000q", *range(100_000))

    class Once:
        """A path the first time that it is asked."""

        def __init__(self, path):
            self.path, self.asked = path, 0

        def __fspath__(self):
            self.asked += 1
            if self.asked == most:
                raise ZeroDivisionError
            return str(self.path)

    path = tmp_path / "file"
    path.write_bytes(b"\0\0\0\1")
    descriptors = len(os.listdir("/proc/self/fd"))
    for make in (DataWriter, DataReader, DataOutput, DataInput):
        for most in (1, 2, 3):
            stream = make.__new__(make)
            try:
                stream.__init__(Once(path))
            except ZeroDivisionError:
                stream.__init__(path)
            stream.close()
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_constructor_inside_its_own_arguments():
    class Size:
        def __index__(self):
            stream.__init__(b"\0\0\0\1" if isinstance(stream, DataReader) else io.BytesIO(), buffer_size=64)
            return 1 << 22

    for make, source in ((DataWriter, io.BytesIO()), (DataReader, b"")):
        stream = make.__new__(make)
        with pytest.raises(ValueError, match="initialised already"):
            stream.__init__(source, buffer_size=Size())
        if make is DataWriter:
            stream.write_bytes(b"x" * 10_000)
        else:
            assert stream.read_int32() == 1
        stream.close()


def test_with_and_the_finalizer_call_a_subclass_s_close():
    closed = []
    for base, argument in (
        (DataWriter, io.BytesIO()),
        (DataReader, b""),
        (DataOutput, io.BytesIO()),
        (DataInput, b""),
    ):

        class Own(base):
            def close(self):
                closed.append(type(self).__base__)
                super().close()

        with Own(argument):
            pass
        assert closed == [base]
        Own(argument)
        assert closed == [base] * 2
        closed.clear()


# ------------------------------------------------------------------- formats


@pytest.mark.parametrize(
    "format", ["i\0", "\0", "i\0i", b"i\0", b">i\0", "3 i", "5", " <i", "n", b"\xe9", "\u00e9", "\ud800"]
)
def test_formats_that_struct_refuses(format):
    with pytest.raises((struct.error, UnicodeError)):
        DataReader(bytes(100)).read_struct(format)
    with pytest.raises((struct.error, UnicodeError)):
        DataWriter(io.BytesIO()).write_struct(format, 1)


@pytest.mark.parametrize("source", [bytes, io.BytesIO])
@pytest.mark.parametrize("length", [2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1])
def test_lengths_beside_2_to_the_64(length, source):
    """What is expected is told whole, its prefix included."""
    for prefix, head in (("uint64", struct.pack(">Q", length)), ("uvarint", varint(length))):
        data = head + b"abc"
        r = DataReader(source(data))
        with pytest.raises(
            ShortReadError, match=f"expected {len(head) + length} bytes, found {len(data)}"
        ) as caught:
            r.read_str(prefix)
        error = caught.value
        assert (error.expected, error.partial, error.offset) == (len(head) + length, data, 0)
        assert r.tell() == 0


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


# ------------------------------------------------------------------- threads


def test_an_iterator_outlives_the_thread_that_comes_to_the_end():
    """Nothing else holds the reader while several wait in next()."""
    for _ in range(20):
        read, write = os.pipe()
        source = os.fdopen(read, "rb", buffering=0)
        records = DataReader(source, buffer_size=0).iter_struct("i")
        found = []
        threads = [threading.Thread(target=lambda r=records, f=found: f.extend(r)) for _ in range(4)]
        del records
        for thread in threads:
            thread.start()
        os.write(write, struct.pack(">5i", *range(5)))
        time.sleep(0.005)
        os.close(write)
        for thread in threads:
            thread.join()
        assert sorted(found) == [(n,) for n in range(5)]
        source.close()


# ------------------------------------------------------------------- signals


@pytest.mark.parametrize("what", ["align", "array"])
def test_a_handler_stops_what_takes_long(what):
    """Zeros for 16 terabytes, a large array in the other order, to a target
    where no call comes short."""

    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    memory = mmap.mmap(-1, 2 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
    zeros = memoryview(memory).cast("q")  # reading them takes no memory
    before = signal.signal(signal.SIGUSR1, stop)
    fd = os.open("/dev/null", os.O_WRONLY)
    w = DataWriter(fd)
    w.write_int8(1)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        timer.start()
        with pytest.raises(Stop) as caught:
            w.align(1 << 44) if what == "align" else w.write_array(zeros)
        if what == "array":
            assert 0 < caught.value.transferred < zeros.nbytes
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
        w.close()
        os.close(fd)
        zeros.release()
        memory.close()


@pytest.mark.parametrize("seekable", [True, False])
def test_a_skip_that_fails_is_undone_or_says_how_far_it_came(seekable):
    class Source(io.BytesIO):
        fails = 3

        def seekable(self):
            return seekable

        def readinto(self, buffer):
            self.fails -= 1
            if self.fails == 0:
                raise ZeroDivisionError
            return super().readinto(memoryview(buffer)[:100])

    for skip in (lambda: r.skip(1000), lambda: r.align(1001)):
        r = DataReader(Source(bytes(range(256)) * 8), buffer_size=64)
        assert r.read_uint8() == 0
        with pytest.raises(ZeroDivisionError) as caught:
            skip()
        if seekable:
            assert r.tell() == 1
            skip()
        else:
            assert 0 < caught.value.transferred == r.tell() - 1
            r.skip(1001 - r.tell())
        assert r.tell() == 1001 and r.read_uint8() == 1001 % 256


# --------------------------------------------------------- as file objects


def test_a_target_closed_before_an_empty_writer_is_no_error(tmp_path):
    """As io.TextIOWrapper has it; the finalizer too says nothing."""
    for make in (DataWriter, DataOutput):
        for opened in (
            io.BytesIO(),
            open(tmp_path / "file", "wb"),
            open(tmp_path / "file", "wb", buffering=0),
            pyio_chunked.open(tmp_path / "file", "wb"),
        ):
            first, second, third = make(opened), make(opened), make(opened)
            first.write(b"abc")
            first.flush()
            third.write(b"abc")
            opened.close()
            first.close()
            del second
            with pytest.raises(ValueError, match="closed"):
                third.close()
            assert first.closed and third.closed


def test_classes_of_errors_are_those_of_io():
    for bad in (b"bytes", memoryview(bytearray(8))[::2], "text", None):
        r = DataReader(bytes(10))
        for call in (r.readinto, r.readinto1):
            with pytest.raises(TypeError, match=r"readinto1?\(\) argument must be"):
                call(bad)
    for bad in (b"bytes", memoryview(bytearray(8))[::2]):
        source = DataInput(bytes(10))
        for call in (source.readFully, source.read):
            with pytest.raises(TypeError):
                call(bad)
    r.close()
    with pytest.raises(ValueError, match="closed"):
        r.flush()


def test_positions_end_at_2_to_the_63():
    class Far(io.BytesIO):
        def tell(self):
            return 2**63 - 3

    r = DataReader(Far(bytes(100)))
    assert r.read_int16() == 0
    with pytest.raises(ShortReadError):
        r.read_int8()
    w = DataWriter(Far())
    w.write_int16(0)
    assert w.tell() == 2**63 - 1
    w.write_int16(0)
    for call in (w.tell, lambda: w.align(8)):
        with pytest.raises(OverflowError):
            call()
    w.close()
