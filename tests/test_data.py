# SPDX-License-Identifier: MIT
"""Typed data streams: values against the struct module."""

from __future__ import annotations

import io
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyio_chunked import DataReader, DataWriter, ShortReadError

INTS = {
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H",
    "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q",
}  # fmt: skip
FLOATS = {"float16": "e", "float32": "f", "float64": "d"}
CODES = {"bool": "?", **INTS, **FLOATS}
SIGNS = {"big": ">", "little": "<", ">": ">", "<": "<", "=": "="}


def bounds(name: str) -> tuple[int, int]:
    bits = int(name.lstrip("uint"))
    return (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def values(name: str) -> st.SearchStrategy:
    if name == "bool":
        return st.booleans()
    if name in INTS:
        low, high = bounds(name)
        return st.integers(low, high)
    return st.floats(width=int(name[5:]))


def value_lists() -> st.SearchStrategy:
    one = st.sampled_from(sorted(CODES)).flatmap(lambda name: st.tuples(st.just(name), values(name)))
    return st.lists(one, max_size=60)


def same(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return a == b and type(a) is type(b) and math.copysign(1, a) == math.copysign(1, b)


@given(value_lists(), st.sampled_from(sorted(SIGNS)), st.sampled_from([0, 1, 64, 100, 65536]))
def test_values_as_struct(pairs, order, size):
    want = b"".join(
        struct.pack(SIGNS[order] + CODES[name], value)
        for name, value in pairs
        if not (isinstance(value, float) and math.isnan(value))
    )
    pairs = [(n, v) for n, v in pairs if not (isinstance(v, float) and math.isnan(v))]
    target = io.BytesIO()
    with DataWriter(target, order, buffer_size=size) as w:
        for name, value in pairs:
            getattr(w, f"write_{name}")(value)
            assert w.tell() <= len(want)
    assert target.getvalue() == want
    for source in (want, io.BytesIO(want), bytearray(want)):
        with DataReader(source, order, buffer_size=size) as r:
            for name, value in pairs:
                assert same(getattr(r, f"read_{name}")(), value)
            assert r.at_eof() and r.tell() == len(want)


@pytest.mark.parametrize("name", INTS)
def test_out_of_range_is_overflow_and_writes_nothing(name):
    low, high = bounds(name)
    target = io.BytesIO()
    with DataWriter(target) as w:
        for bad in (low - 1, high + 1, 2**80, -(2**80)):
            with pytest.raises(OverflowError, match=name):
                getattr(w, f"write_{name}")(bad)
        for bad in ("1", 1.0, None, b"1"):
            with pytest.raises(TypeError):
                getattr(w, f"write_{name}")(bad)
        assert w.tell() == 0
        getattr(w, f"write_{name}")(low)
        getattr(w, f"write_{name}")(high)
    assert target.getvalue() == struct.pack(f">2{INTS[name]}", low, high)


def test_a_short_read_leaves_the_position():
    for make in (bytes, io.BytesIO):
        for size in (0, 65536):
            source = make(b"abc")
            r = DataReader(source, buffer_size=size)
            with pytest.raises(ShortReadError) as caught:
                r.read_int32()
            error = caught.value
            assert (error.expected, error.partial, error.offset) == (4, b"abc", 0)
            assert isinstance(error, EOFError) and r.tell() == 0
            assert r.read_int16() == 0x6162
            assert r.detach() is source
