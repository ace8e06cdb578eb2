# SPDX-License-Identifier: MIT
"""Typed data streams beside what Python has: ratios of the same run.

    python -m pytest benchmarks/test_data.py -s

Each line is measured in turn with its peer (A B A B ...), best of the rounds
each; what is printed is time per value and how many times faster ours is. The
floor of a scalar write is an empty METH_O method, compiled when it runs.
"""

from __future__ import annotations

import array
import io
import os
import random
import shutil
import struct
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from itertools import repeat
from pathlib import Path

import pytest

from pyio_chunked import DataReader, DataWriter
from pyio_chunked.java import DataInput, DataOutput

N = 50_000
ROUNDS = int(os.environ.get("PYIO_BENCH_ROUNDS", "15"))
RNG = random.Random(1)
INTS = [RNG.randrange(-(2**31), 2**31) for _ in range(N)]
FLOATS = [RNG.random() for _ in range(N)]

EMPTY = r"""
#include <Python.h>
static PyObject *empty(PyObject *self, PyObject *value) { Py_RETURN_NONE; }
static PyMethodDef methods[] = {{"empty", empty, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, NULL}};
static PyType_Spec spec = {"floor_of_calls.Floor", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, slots};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "floor_of_calls", NULL, -1, NULL};
PyMODINIT_FUNC PyInit_floor_of_calls(void)
{
    PyObject *m = PyModule_Create(&module), *type = PyType_FromSpec(&spec);
    if (m == NULL || type == NULL || PyModule_AddObject(m, "Floor", type) < 0) return NULL;
    return m;
}
"""


def in_turn(*calls: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """Best seconds of each, measured one after the other in every round."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


@pytest.fixture
def show(capsys):
    def line(case: str, ours: float, peer: float, per: int, bar: str) -> None:
        with capsys.disabled():
            print(
                f"{case:58} ours {ours / per * 1e9:9.2f} ns, peer {peer / per * 1e9:9.2f} ns:"
                f" {peer / ours:6.2f}x (at least {bar})",
                flush=True,
            )

    print()
    return line


def each(call: Callable[[object], object], values: list) -> None:
    for value in values:
        call(value)


# ------------------------------------------------------------------ writing


def test_write_int32(show, tmp_path):
    pack = struct.Struct(">i").pack

    def ours_memory():
        with DataWriter(io.BytesIO()) as w:
            each(w.write_int32, INTS)

    def peer_memory():
        write = io.BytesIO().write
        for value in INTS:
            write(pack(value))

    def ours_file():
        with DataWriter(tmp_path / "ours") as w:
            each(w.write_int32, INTS)

    def peer_file():
        with open(tmp_path / "peer", "wb") as f:
            write = f.write
            for value in INTS:
                write(pack(value))

    ours, peer, ours_f, peer_f = in_turn(ours_memory, peer_memory, ours_file, peer_file)
    show("write_int32 into BytesIO / Struct.pack + write", ours, peer, N, "3x")
    show("write_int32 into a file / Struct.pack + write", ours_f, peer_f, N, "5x")


def test_write_int32_unbuffered_file(show, tmp_path):
    pack = struct.Struct(">i").pack
    few = INTS[:10_000]

    def ours():
        with open(tmp_path / "ours", "wb", buffering=0) as f, DataWriter(f) as w:
            each(w.write_int32, few)

    def peer():
        with open(tmp_path / "peer", "wb", buffering=0) as f:
            write = f.write
            for value in few:
                write(pack(value))

    def illness():
        with open(tmp_path / "ill", "wb", buffering=0) as f:
            write = f.write
            for value in few:
                a, b, c, d = pack(value)
                write(bytes((a,)))
                write(bytes((b,)))
                write(bytes((c,)))
                write(bytes((d,)))

    def one_call_each():
        with DataWriter(tmp_path / "each", buffer_size=0) as w:
            each(w.write_int32, few)

    a, b, c, d = in_turn(ours, peer, illness, one_call_each, rounds=5)
    show("write_int32 into an unbuffered file / pack + write", a, b, len(few), "20x")
    show("... / four one-byte writes per value", a, c, len(few), "30x")
    show("... buffer_size=0 / pack + write", d, b, len(few), "-")


@pytest.fixture(scope="module")
def floor(tmp_path_factory):
    """An object whose method `empty` takes a value and does nothing."""
    folder = tmp_path_factory.mktemp("floor")
    source, target = folder / "floor_of_calls.c", folder / "floor_of_calls.so"
    source.write_text(EMPTY)
    cc = os.environ.get("CC", "cc")
    subprocess.run(
        [cc, "-O2", "-shared", "-fPIC", "-I", sysconfig.get_path("include"), str(source), "-o", str(target)],
        check=True,
    )
    spec = spec_from_file_location("floor_of_calls", target)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Floor()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("int32", INTS),
        ("int16", [v >> 16 for v in INTS]),
        ("int64", INTS),
        ("float64", FLOATS),
        ("float32", FLOATS),
    ],
)
def test_scalar_write_beside_an_empty_method(show, floor, name, values, capsys):
    with DataWriter(io.BytesIO(), buffer_size=1 << 20) as w:
        write = getattr(w, f"write_{name}")

        def ours():
            each(write, values)

        ours_s, floor_s = in_turn(ours, lambda: each(floor.empty, values))
    with capsys.disabled():
        print(
            f"{'write_' + name + ' / an empty METH_O method':58} ours {ours_s / N * 1e9:9.2f} ns,"
            f" peer {floor_s / N * 1e9:9.2f} ns: {ours_s / floor_s:6.2f} of its time (at most 1.3)",
            flush=True,
        )


# ------------------------------------------------------------------ reading


@pytest.mark.parametrize(("name", "code", "values"), [("int32", "i", INTS), ("float64", "d", FLOATS)])
def test_scalar_read(show, name, code, values):
    data = struct.pack(f">{N}{code}", *values)
    unpack, size = struct.Struct(">" + code).unpack, struct.calcsize(">" + code)
    f = io.BytesIO(data)
    r = DataReader(data)

    def peer_bound():
        f.seek(0)
        read = f.read
        for _ in repeat(None, N):
            unpack(read(size))

    def peer():
        f.seek(0)
        for _ in repeat(None, N):
            unpack(f.read(size))

    def ours_bound():
        r.seek(0)
        read = getattr(r, f"read_{name}")
        for _ in repeat(None, N):
            read()

    def ours_int32():
        r.seek(0)
        for _ in repeat(None, N):
            r.read_int32()

    def ours_float64():
        r.seek(0)
        for _ in repeat(None, N):
            r.read_float64()

    ours = ours_int32 if name == "int32" else ours_float64
    a, b, c, d = in_turn(ours_bound, peer_bound, ours, peer)
    show(f"read_{name}, bound / unpack(read(n)), bound", a, b, N, "2.3x")
    show(f"read_{name}, bound / unpack(f.read(n))", a, d, N, "2.8x")
    show(f"r.read_{name}() / unpack(f.read(n))", c, d, N, "2.3x")


# ------------------------------------------------------------------- arrays


def test_arrays(show, tmp_path):
    numpy = pytest.importorskip("numpy")
    values = numpy.random.default_rng(1).random(1_000_000)
    data = values.astype(">f8").tobytes()
    n = len(values)
    out = numpy.empty(n)
    path = tmp_path / "array"
    path.write_bytes(data)

    def ours_memory():
        with DataWriter(io.BytesIO()) as w:
            w.write_array(values)

    def peer_memory():
        io.BytesIO().write(values.astype(">f8").tobytes())

    def ours_file():
        with DataWriter(tmp_path / "ours") as w:
            w.write_array(values)

    def peer_file():
        with open(tmp_path / "peer", "wb") as f:
            f.write(values.astype(">f8").tobytes())

    def peer_read():
        with open(path, "rb") as f:
            numpy.frombuffer(f.read(8 * n), ">f8").astype("f8")

    def ours_read_out():
        with DataReader(path) as r:
            r.read_array("float64", n, out=numpy.empty(n))

    def ours_read_reused():
        with DataReader(path) as r:
            r.read_array("float64", n, out=out)

    def ours_read_array():
        with DataReader(path) as r:
            r.read_array("float64", n)

    def peer_bytes():
        numpy.frombuffer(data, ">f8").astype("f8")

    def ours_bytes():
        DataReader(data).read_array("float64", n, out=numpy.empty(n))

    # Read whole and from its start, BytesIO gives its bytes away uncopied.
    def peer_whole():
        numpy.frombuffer(io.BytesIO(data).read(8 * n), ">f8").astype("f8")

    def ours_whole():
        DataReader(io.BytesIO(data)).read_array("float64", n, out=numpy.empty(n))

    with_header = io.BytesIO(bytes(16) + data)

    def peer_header():
        with_header.seek(16)
        numpy.frombuffer(with_header.read(8 * n), ">f8").astype("f8")

    def ours_header():
        with_header.seek(16)
        DataReader(with_header).read_array("float64", n, out=numpy.empty(n))

    a, b, c, d = in_turn(ours_memory, peer_memory, ours_file, peer_file)
    show("write_array, 1M float64 swapped, BytesIO / numpy", a, b, n, "1x")
    show("write_array, 1M float64 swapped, file / numpy", c, d, n, "1x")
    a, b, c, d = in_turn(ours_read_out, ours_read_array, ours_read_reused, peer_read)
    show("read_array, 1M float64 swapped, file, new numpy / numpy", a, d, n, "1x")
    show("read_array, 1M float64 swapped, file, array.array / numpy", b, d, n, "1x")
    show("read_array, 1M float64 swapped, file, reused out / numpy", c, d, n, "1x")
    a, b, c, d, e, f = in_turn(ours_bytes, peer_bytes, ours_header, peer_header, ours_whole, peer_whole)
    show("read_array, 1M float64 swapped, bytes / numpy", a, b, n, "1x")
    show("read_array, 1M float64 swapped, BytesIO, header / numpy", c, d, n, "1x")
    show("read_array, 1M float64 swapped, BytesIO whole / numpy", e, f, n, "-")
    assert out.tobytes() == values.tobytes()
    assert DataReader(data).read_array("float64", n) == array.array("d", values.tobytes())


# ---------------------------------------------------------- records and text


def test_structs(show):
    records = [(v, v & 0x7FFF, f) for v, f in zip(INTS, FLOATS, strict=True)]
    pack = struct.Struct(">ihd").pack
    unpack = struct.Struct(">ihd").unpack
    data = b"".join(pack(*r) for r in records)

    def ours():
        with DataWriter(io.BytesIO()) as w:
            write = w.write_struct
            for a, b, c in records:
                write(">ihd", a, b, c)

    def peer():
        write = io.BytesIO().write
        for a, b, c in records:
            write(pack(a, b, c))

    def ours_read():
        read = DataReader(data).read_struct
        for _ in repeat(None, N):
            read(">ihd")

    def peer_read():
        read = io.BytesIO(data).read
        for _ in repeat(None, N):
            unpack(read(14))

    def ours_iter():
        for _ in DataReader(data).iter_struct(">ihd"):
            pass

    def peer_iter():
        for _ in struct.iter_unpack(">ihd", data):
            pass

    a, b, c, d, e, f = in_turn(ours, peer, ours_read, peer_read, ours_iter, peer_iter)
    show('write_struct(">ihd") / Struct.pack + write', a, b, N, "1.3x")
    show('read_struct(">ihd") / Struct.unpack(read)', c, d, N, "-")
    show('iter_struct(">ihd") / struct.iter_unpack (in memory)', e, f, N, "-")


def test_mutf8(show):
    mutf8 = pytest.importorskip("mutf8")
    pack = struct.Struct(">H").pack
    for kind, text in [
        ("ASCII", "a name in a class file"),
        ("mixed", "naïve café, 日本語 😀 \0"),
        ("long ASCII", "x" * 4000),
        ("long mixed", "naïve café, 日本語 😀 " * 180),
    ]:
        n = 20_000 if len(text) < 100 else 1_000

        def ours(n=n, text=text):
            with DataWriter(io.BytesIO()) as w:
                write = w.write_mutf8
                for _ in repeat(None, n):
                    write(text)

        def peer(n=n, text=text):
            write, encode = io.BytesIO().write, mutf8.encode_modified_utf8
            for _ in repeat(None, n):
                data = encode(text)
                write(pack(len(data)))
                write(data)

        def peer_alone(n=n, text=text):
            encode = mutf8.encode_modified_utf8
            for _ in repeat(None, n):
                encode(text)

        a, b, c = in_turn(ours, peer, peer_alone)
        show(f"write_mutf8, {kind} / mutf8 package + write", a, b, n, "2x")
        show(f"write_mutf8, {kind} / mutf8 package, encoding alone", a, c, n, "-")


# --------------------------------------------------------------------- Java


def test_java_names(show, capsys):
    text = "a name in a class file"
    data = struct.pack(f">{N}i", *INTS)
    w, j = DataWriter(io.BytesIO(), buffer_size=1 << 22), DataOutput(io.BytesIO(), buffer_size=1 << 22)
    r, i = DataReader(data), DataInput(data)

    def text_each(write):
        for _ in repeat(None, N):
            write(text)
        return None

    def read_each(stream, read):
        for _ in repeat(None, N):
            read()

    def fresh_reads(make, name):
        read = getattr(make(data), name)
        for _ in repeat(None, N):
            read()

    results = [
        (
            "writeInt / write_int32",
            *in_turn(lambda: each(j.writeInt, INTS), lambda: each(w.write_int32, INTS)),
        ),
        ("writeUTF / write_mutf8", *in_turn(lambda: text_each(j.writeUTF), lambda: text_each(w.write_mutf8))),
        (
            "readInt / read_int32",
            *in_turn(
                lambda: fresh_reads(DataInput, "readInt"), lambda: fresh_reads(DataReader, "read_int32")
            ),
        ),
    ]
    for stream in (w, j, r, i):
        stream.close()
    with capsys.disabled():
        for case, ours, peer in results:
            print(
                f"java.{case:53} ours {ours / N * 1e9:9.2f} ns, peer {peer / N * 1e9:9.2f} ns:"
                f" {ours / peer:6.2f} of its time (at most 1.3)",
                flush=True,
            )


ORIGIN = {  # µs for 4096 bytes before and after, as published with JDK-8254078
    ("array", "int"): (52.9, 15.7), ("array", "short"): (49.0, 29.7), ("array", "char"): (50.3, 29.3),
    ("buffered", "int"): (58.4, 15.2), ("buffered", "short"): (57.9, 28.9), ("buffered", "char"): (58.3, 28.9),
    ("raw", "int"): (3062, 862), ("raw", "short"): (2987, 1731), ("raw", "char"): (3053, 1705),
}  # fmt: skip


def test_the_table_of_the_origin(tmp_path, capsys):
    """4096 bytes of int, short, char into three sinks; Java with its one write
    per value, ours with its buffer (and, for the raw file, without)."""
    java = {}
    if program := shutil.which("java"):
        done = subprocess.run(
            [program, str(Path(__file__).parent / "java" / "Streams.java"), str(tmp_path)],
            capture_output=True, text=True,
        )  # fmt: skip
        for line in done.stdout.splitlines():
            sink, kind, us = line.split()
            java[sink, kind] = float(us)
    rows = []
    for sink in ("array", "buffered", "raw"):
        for kind, name, count in (
            ("int", "writeInt", 1024),
            ("short", "writeShort", 2048),
            ("char", "writeChar", 2048),
        ):
            values = list(range(count))

            mode = -1 if sink == "buffered" else 0
            with open(tmp_path / "a", "wb", mode) as a, open(tmp_path / "b", "wb", mode) as b:
                outs = {65536: DataOutput(a), 0: DataOutput(b, buffer_size=0)}

                def body(size, sink=sink, name=name, values=values, outs=outs):
                    if sink == "array":
                        with DataOutput(io.BytesIO(), buffer_size=size) as out:
                            each(getattr(out, name), values)
                    else:
                        each(getattr(outs[size], name), values)
                        outs[size].flush()

                buffered, single = in_turn(
                    lambda body=body: [body(65536) for _ in range(20)],
                    lambda body=body: [body(0) for _ in range(20)],
                    rounds=7,
                )
                for out in outs.values():
                    out.close()
            rows.append((sink, kind, buffered / 20 * 1e6, single / 20 * 1e6))
    with capsys.disabled():
        print("\nµs for 4096 bytes   ours   one write per value   Java here   JDK-8254078 before -> after")
        for sink, kind, ours, single in rows:
            here = f"{java[sink, kind]:9.1f}" if java else "        -"
            before, after = ORIGIN[sink, kind]
            print(f"{sink:9}{kind:6} {ours:9.1f} {single:21.1f} {here} {before:16.1f} -> {after}")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-s", "-q"]))
