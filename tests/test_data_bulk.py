# SPDX-License-Identifier: MIT
"""Typed data streams: arrays, lengths that lie, every bound, by every kind of source."""

from __future__ import annotations

import array
import io
import os
import struct
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress

import pytest
from data_help import Drip

from pyio_chunked import DataReader, DataWriter, ShortReadError

# -------------------------------------------------------------------- arrays


def test_arrays_by_the_order_they_say_they_have():
    numpy = pytest.importorskip("numpy")
    for order, sign in (("big", ">"), ("little", "<")):
        for kind in ("i2", "u4", "i8", "f2", "f4", "f8", "c8", "c16", "u1", "?"):
            for own in "<>":
                values = numpy.arange(7).astype(own + kind if kind != "?" else kind)
                target = io.BytesIO()
                with DataWriter(target, order) as w:
                    w.write_array(values)
                want = values.astype(sign + kind if kind != "?" else kind).tobytes()
                assert target.getvalue() == want
                if kind[0] == "c" or kind == "?":
                    continue
                name = {"i": "int", "u": "uint", "f": "float"}[kind[0]] + str(8 * int(kind[1:]))
                out = numpy.empty(7, own + kind)
                r = DataReader(want, order)
                assert r.read_array(name, 7, out=out) is out and (out == values).all()
    strings = numpy.array(["ab", "é😀"])
    target = io.BytesIO()
    with DataWriter(target) as w:
        w.write_array(strings)
        w.write_array(numpy.array([b"ab", b"c"]))
        w.write_array(numpy.arange(6, dtype="i2").reshape(2, 3))
        for bad in (
            numpy.zeros(2, "i4,f8"),
            numpy.zeros((3, 3))[:, 1],
            numpy.array([object()]),
            numpy.zeros(2, "g"),
        ):
            with pytest.raises((TypeError, ValueError, BufferError)):
                w.write_array(bad)
    assert target.getvalue() == strings.astype(">U2").tobytes() + b"abc\0" + struct.pack(">6h", *range(6))


@pytest.mark.parametrize("size", [0, 64, 4096, 65536])
@pytest.mark.parametrize("kind", ["memory", "BytesIO", "drip", "path", "raw", "pipe"])
def test_arrays_of_every_length_from_every_source(size, kind, tmp_path, open_source):
    lengths = [0, 1, 63, 64, 65, 4096, 8191, 8192, 65535, 65536, 65537, 262143, 262144, 262145, 600_000]
    for name, code in (("float64", "d"), ("int16", "h"), ("uint8", "B")):
        width = struct.calcsize(code)
        for nbytes in lengths if code == "d" else lengths[1::4]:
            if kind == "drip" and nbytes > 9000:
                continue
            n = -(-nbytes // width)
            values = array.array(code, list(range(251)) * (n // 251 + 1))[:n]
            swapped = array.array(code, values)
            if sys.byteorder == "little":
                swapped.byteswap()
            data = b"xyz" + swapped.tobytes() + b"end"
            with open_source(kind, data) as source, DataReader(source, buffer_size=size) as r:
                r.read_bytes(3)
                assert r.read_array(name, n) == values
                assert r.read() == b"end"
            with open_source(kind, data) as source, DataReader(source, buffer_size=size) as r:
                r.read_bytes(3)
                out = bytearray(n * width)
                assert r.read_array(name, n, out=out) is out and out == values.tobytes()
                with pytest.raises(ShortReadError) as caught:
                    r.read_array(name, n + 7)
                assert caught.value.partial == b"end" and caught.value.expected == (n + 7) * width
                assert r.tell() == len(data) - 3 and r.read() == b"end"
            with open_source(kind, data) as source, DataReader(source, buffer_size=size) as r:
                for target in (None, bytearray((n + 7) * width)):
                    with pytest.raises(ShortReadError) as caught:
                        r.read_array(name, n + 7, out=target)
                    assert caught.value.partial == data[: (n + 7) * width][:65536]
                    assert r.tell() == 0
                assert r.read() == data


@pytest.fixture
def open_source(tmp_path):
    @contextmanager
    def make(kind, data):
        if kind == "memory":
            yield data
        elif kind == "BytesIO":
            yield io.BytesIO(data)
        elif kind == "drip":
            yield Drip(data)
        elif kind == "path":
            (tmp_path / "source").write_bytes(data)
            yield tmp_path / "source"
        elif kind == "raw":
            (tmp_path / "source").write_bytes(data)
            with open(tmp_path / "source", "rb", buffering=0) as f:
                yield f
        else:
            read, write = os.pipe()
            feeder = threading.Thread(target=feed, args=(write, data))
            feeder.start()
            yield read
            os.close(read)
            feeder.join()

    def feed(fd, data):
        with suppress(BrokenPipeError), open(fd, "wb", buffering=0) as f:
            view = memoryview(data)
            while view:
                view = view[f.write(view) :]

    return make


def test_out_must_fit(tmp_path):
    data = bytes(64)
    r = DataReader(data)
    for out, error in [
        (bytearray(7), ValueError), (array.array("i", [0] * 4), ValueError), (array.array("q", [0] * 4), ValueError),
        (bytes(64), BufferError), (memoryview(bytearray(64))[::2], BufferError), (5, TypeError),
    ]:  # fmt: skip
        with pytest.raises(error):
            r.read_array("float64", 2, out=out)
    for bad in ("float128", "char", "", None, 3):
        with pytest.raises(ValueError, match="type"):
            r.read_array(bad, 1)
    with pytest.raises(ValueError, match="float16"):
        r.read_array("float16", 1)
    with pytest.raises(ValueError):
        r.read_array("int8", -1)
    for n in (2**63, 2**61, 2**60):
        with pytest.raises((OverflowError, ShortReadError)):
            r.read_array("int64", n)
    assert r.tell() == 0
    out = array.array("d", [1.0] * 8)
    assert r.read_array("float64", 3, out=out) is out and list(out) == [0.0] * 3 + [1.0] * 5
    assert DataReader(b"\0\5\1").read_array("bool", 3) == array.array("B", [0, 1, 1])


# ------------------------------------------------------- lengths that lie


@pytest.mark.parametrize("kind", ["memory", "BytesIO", "path", "pipe"])
def test_a_length_of_4_gib_allocates_nothing(kind, open_source):
    script = """if True:
        import io, os, resource, sys
        from pyio_chunked import DataReader, ShortReadError
        kind, data = sys.argv[1], b"\\xff\\xff\\xff\\xffab"
        if kind == "memory": source = data
        elif kind == "BytesIO": source = io.BytesIO(data)
        elif kind == "path":
            source = sys.argv[2]
            open(source, "wb").write(data)
        else:
            source, write = os.pipe()
            os.write(write, data)
            os.close(write)
        import array
        limit = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + (8 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        with DataReader(source) as r:
            for read in (r.read_str, lambda: r.read_array("int64", 1 << 50), lambda: r.read_bytes(1 << 62),
                         lambda: r.read_str("uint32"), lambda: r.skip(1 << 40), r.read_int64):
                try:
                    read()
                except ShortReadError as error:
                    assert (error.partial, error.offset, r.tell()) == (data, 0, 0), error.__dict__
                else:
                    raise AssertionError
            assert r.peek(1 << 40) == data and r.read(1 << 50) == data
    """
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script, kind, os.path.join(folder, "file")], check=True
        )


# ---------------------------------------------------------------- every bound


@pytest.mark.parametrize("size", [0, 64, 8192, 65536])
@pytest.mark.parametrize("kind", ["memory", "BytesIO", "path", "raw", "pipe"])
def test_bytes_and_text_of_every_length(size, kind, open_source, tmp_path):
    lengths = sorted(
        {0, 1, 8191, 8192, 8193, 65535, 65536, 65537, 262144 if size else 0, 1_000_003 if size else 0}
        | {max(0, (size or 4096) + d) for d in (-6, -5, -4, -1, 0, 1)}
    )
    path = tmp_path / "out"
    with DataWriter(path, buffer_size=size) as w:
        for n in lengths:
            w.write_bytes(b"b" * n)
            w.write_str("s" * n)
            w.write_cstr("c" * n)
            w.write_mutf8("m" * min(n, 65535))
            w.write_array(array.array("h", [n % 1000] * n))
    data = path.read_bytes()
    want = b"".join(
        b"b" * n + struct.pack(">I", n) + b"s" * n + b"c" * n + b"\0"
        + struct.pack(">H", min(n, 65535)) + b"m" * min(n, 65535) + struct.pack(">h", n % 1000) * n
        for n in lengths
    )  # fmt: skip
    assert data == want
    with open_source(kind, data) as source, DataReader(source, buffer_size=size) as r:
        for n in lengths:
            assert r.read_bytes(n) == b"b" * n
            assert r.read_str() == "s" * n
            assert r.read_cstr() == "c" * n
            assert r.read_mutf8() == "m" * min(n, 65535)
            assert r.read_array("int16", n) == array.array("h", [n % 1000] * n)
        assert r.at_eof() and r.tell() == len(data)
