# SPDX-License-Identifier: MIT
"""Typed data streams: values against the struct module."""

from __future__ import annotations

import array
import io
import math
import pickle
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from data_help import Drip
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


# ------------------------------------------------------------ mixed sequences

ARRAYS = {name: code for name, code in CODES.items() if name not in ("bool", "float16")}
PREFIXES = {
    "uint8": 2**8 - 1,
    "uint16": 2**16 - 1,
    "uint32": 2**32 - 1,
    "uint64": 2**64 - 1,
    "uvarint": 2**64 - 1,
}
PREFIX_CODES = {"uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q"}
texts = st.text(max_size=50) | st.text(alphabet="ab\0é€😀", max_size=300)


def leb128(n: int) -> bytes:
    data = bytearray()
    while n >= 0x80:
        data.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*data, n])


def mutf8(text: str) -> bytes:
    units = text.encode("utf-16-be", "surrogatepass")
    data = bytearray()
    for (unit,) in struct.iter_unpack(">H", units):
        if 0 < unit < 0x80:
            data.append(unit)
        elif unit < 0x800:
            data += bytes([0xC0 | unit >> 6, 0x80 | unit & 0x3F])
        else:
            data += bytes([0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F])
    return bytes(data)


@dataclass
class Step:
    """A write, the bytes it must make, the read that gives `value` back."""

    write: Callable[[DataWriter], object]
    data: Callable[[str], bytes]
    read: Callable[[DataReader], object]
    value: object


def step_scalar(name: str) -> st.SearchStrategy:
    def make(value):
        return Step(
            lambda w: getattr(w, f"write_{name}")(value),
            lambda sign: struct.pack(sign + CODES[name], value),
            lambda r: getattr(r, f"read_{name}")(),
            value,
        )

    return values(name).filter(lambda v: v == v).map(make)


def step_text(prefix: str) -> st.SearchStrategy:
    def make(text):
        data = text.encode()

        def head(sign):
            n = len(data)
            return leb128(n) if prefix == "uvarint" else struct.pack(sign + PREFIX_CODES[prefix], n)

        return Step(
            lambda w: w.write_str(text, prefix),
            lambda sign: head(sign) + data,
            lambda r: r.read_str(prefix=prefix),
            text,
        )

    return texts.filter(lambda t: len(t.encode()) <= PREFIXES[prefix]).map(make)


def step_array(name: str) -> st.SearchStrategy:
    def make(items):
        elements = array.array(ARRAYS[name], items)
        return Step(
            lambda w: w.write_array(elements),
            lambda sign: struct.pack(f"{sign}{len(items)}{ARRAYS[name]}", *items),
            lambda r: r.read_array(name, len(items)),
            elements,
        )

    return st.lists(values(name).filter(lambda v: v == v), max_size=40).map(make)


def step_struct() -> st.SearchStrategy:
    codes = st.sampled_from("?bBhHiIlLqQefdxcs")

    @st.composite
    def draw_one(draw):
        items, format = [], draw(st.sampled_from(["", "<", ">", "!", "="]))
        for code in draw(st.lists(codes, max_size=8)):
            count = draw(st.sampled_from([None, 0, 1, 2, 5]))
            format += draw(st.sampled_from(["", " "])) + ("" if count is None else str(count)) + code
            n = 1 if count is None else count
            if code == "s":
                items.append(draw(st.binary(min_size=n, max_size=n)))
            elif code == "c":
                items += [draw(st.binary(min_size=1, max_size=1)) for _ in range(n)]
            elif code != "x":
                name = {"l": "int32", "L": "uint32"}.get(code) or next(
                    k for k, v in CODES.items() if v == code
                )
                items += [draw(values(name).filter(lambda v: v == v)) for _ in range(n)]
        signed = format[:1] in "<>!=" and format != ""
        return Step(
            lambda w: w.write_struct(format, *items),
            lambda sign: struct.pack(("" if signed else sign) + format, *items),
            lambda r: r.read_struct(format),
            tuple(items),
        )

    return draw_one()


def steps() -> st.SearchStrategy:
    bits = st.integers(0, 2**64 - 1) | st.integers(0, 300)
    signed = st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)
    return st.lists(
        st.one_of(
            st.sampled_from(sorted(CODES)).flatmap(step_scalar),
            st.sampled_from(sorted(PREFIXES)).flatmap(step_text),
            st.sampled_from(sorted(ARRAYS)).flatmap(step_array),
            step_struct(),
            bits.map(
                lambda n: Step(lambda w: w.write_uvarint(n), lambda _: leb128(n), DataReader.read_uvarint, n)
            ),
            signed.map(
                lambda n: Step(
                    lambda w: w.write_svarint(n),
                    lambda _: leb128(2 * n if n >= 0 else -2 * n - 1),
                    DataReader.read_svarint,
                    n,
                )
            ),
            texts.filter(lambda t: "\0" not in t).map(
                lambda t: Step(
                    lambda w: w.write_cstr(t), lambda _: t.encode() + b"\0", DataReader.read_cstr, t
                )
            ),
            (texts | st.text(alphabet="a\ud800\udbffb\udc00\0", max_size=1)).map(
                lambda t: Step(
                    lambda w: w.write_mutf8(t),
                    lambda sign: struct.pack(sign + "H", len(mutf8(t))) + mutf8(t),
                    DataReader.read_mutf8,
                    t,
                )
            ),
            st.binary(max_size=300).map(
                lambda b: Step(lambda w: w.write_bytes(b), lambda _: b, lambda r: r.read_bytes(len(b)), b)
            ),
        ),
        max_size=25,
    )


@given(steps(), st.sampled_from(sorted(SIGNS)), st.sampled_from([0, 1, 64, 100, 65536]))
def test_any_sequence_as_the_model(sequence, order, size):
    sign = {"=": "<" if sys.byteorder == "little" else ">"}.get(order, SIGNS[order])
    pieces = [step.data(sign) for step in sequence]
    target = io.BytesIO()
    with DataWriter(target, order, buffer_size=size) as w:
        at = 0
        for step, piece in zip(sequence, pieces, strict=True):
            step.write(w)
            at += len(piece)
            assert w.tell() == at
    data = b"".join(pieces)
    assert target.getvalue() == data
    for source in (data, io.BytesIO(data), Drip(data)):
        with DataReader(source, order, buffer_size=size) as r:
            at = 0
            for step, piece in zip(sequence, pieces, strict=True):
                assert step.read(r) == step.value
                at += len(piece)
                assert r.tell() == at
            assert r.at_eof()


@given(steps().filter(bool), st.sampled_from([0, 64, 65536]), st.data())
def test_a_cut_anywhere_leaves_the_position_at_the_value(sequence, size, data):
    """Every value, cut inside it: ShortReadError, and what there was of the
    value is still there to be read."""
    pieces = [step.data(">") for step in sequence]
    whole = b"".join(pieces)
    cut = data.draw(st.integers(0, len(whole)))
    for source in (whole[:cut], io.BytesIO(whole[:cut]), Drip(whole[:cut])):
        r = DataReader(source, buffer_size=size)
        at = 0
        for step, piece in zip(sequence, pieces, strict=True):
            if at + len(piece) > cut:
                with pytest.raises(ShortReadError) as caught:
                    step.read(r)
                error = caught.value
                assert error.offset == r.tell() == at
                assert error.partial == whole[at:cut]
                assert len(error.partial) < error.expected
                again = pickle.loads(pickle.dumps(error))
                assert (again.expected, again.partial, again.offset) == (error.expected, error.partial, at)
                assert str(again) == str(error)
                break
            assert step.read(r) == step.value
            at += len(piece)
        assert r.read() == whole[at:cut]
        r.close()


# -------------------------------------------------------------- single cases


def test_nan_payloads_and_negative_zero_survive():
    patterns = {
        "float16": [0x7E01, 0xFE00, 0x7D01, 0x8000, 0x7C00],
        "float32": [0x7FA00001, 0xFFC12345, 0x7F800001, 0x80000000],
        "float64": [0x7FF4000000000001, 0xFFF8000000012345, 0x8000000000000000],
    }
    for name, bits in patterns.items():
        width = int(name[5:]) // 8
        data = b"".join(b.to_bytes(width, "big") for b in bits)
        r, target = DataReader(data), io.BytesIO()
        with DataWriter(target) as w:
            for _ in bits:
                getattr(w, f"write_{name}")(getattr(r, f"read_{name}")())
        assert target.getvalue() == data


def test_floats_out_of_range_and_of_other_types():
    target = io.BytesIO()
    with DataWriter(target) as w:
        for name, value in [
            ("float32", 1e39),
            ("float32", -3.5e38),
            ("float16", 65520.0),
            ("float16", 1e300),
        ]:
            with pytest.raises(OverflowError, match=name):
                getattr(w, f"write_{name}")(value)
        with pytest.raises(TypeError):
            w.write_float64("1")
        with pytest.raises(OverflowError):
            w.write_float64(10**400)
        w.write_float64(3)
        w.write_float32(True)
        w.write_float16(65519.99)
        w.write_float32(math.inf)
    assert target.getvalue() == struct.pack(">dfef", 3.0, 1.0, 65504.0, math.inf)


def test_objects_that_are_numbers_by_their_methods():
    class Index:
        def __index__(self):
            return 7

    class Fails:
        def __index__(self):
            raise LookupError

    target = io.BytesIO()
    with DataWriter(target) as w:
        w.write_int32(Index())
        w.write_int8(True)
        w.write_bool([])
        w.write_bool("x")
        w.write_struct("hI", Index(), True)
        for write in (w.write_int32, w.write_uint64, w.write_uvarint):
            with pytest.raises(LookupError):
                write(Fails())
        with pytest.raises(LookupError):
            w.write_struct("i", Fails())
    assert target.getvalue() == struct.pack(">ib??hI", 7, 1, False, True, 7, 1)


def test_text_too_long_for_its_prefix_writes_nothing():
    target = io.BytesIO()
    with DataWriter(target) as w:
        for text, prefix in [("x" * 256, "uint8"), ("é" * 128, "uint8"), ("x" * 65536, "uint16")]:
            with pytest.raises(OverflowError):
                w.write_str(text, prefix)
        for text in ("x" * 65536, "\0" * 32768, "€" * 21846):
            with pytest.raises(OverflowError, match="65535"):
                w.write_mutf8(text)
        for bad in ("int32", "", None, 4, "UINT8"):
            with pytest.raises(ValueError, match="prefix"):
                w.write_str("x", bad)
        with pytest.raises(ValueError, match="null"):
            w.write_cstr("a\0b")
        with pytest.raises(UnicodeEncodeError):
            w.write_str("\ud800")
        for write in (w.write_str, w.write_cstr, w.write_mutf8):
            with pytest.raises(TypeError):
                write(b"bytes")
        for write in (w.write_bytes, w.write, w.write_array):
            with pytest.raises(TypeError):
                write("text")
        assert w.tell() == 0
        w.write_str("x" * 255, "uint8")
    assert target.getvalue() == b"\xff" + b"x" * 255


def test_text_that_is_not_utf8_leaves_the_position():
    for body in (b"\xff", b"\xed\xa0\x80", b"ok\xc3"):
        for make in (bytes, io.BytesIO, Drip):
            data = struct.pack(">I", len(body)) + body + b"\0tail"
            r = DataReader(make(data), buffer_size=64)
            with pytest.raises(UnicodeDecodeError):
                r.read_str()
            assert r.tell() == 0
            r.skip(4)
            with pytest.raises(UnicodeDecodeError):
                r.read_cstr()
            assert r.tell() == 4 and r.read() == data[4:]
    big = b"a" * 100_000 + b"\xff"
    for make in (bytes, io.BytesIO, Drip):
        r = DataReader(make(struct.pack(">I", len(big)) + big + b"tail"))
        with pytest.raises(UnicodeDecodeError):
            r.read_str()
        assert r.tell() == 0 and r.read_uint32() == len(big) and r.read_bytes(len(big)) == big
        assert r.read() == b"tail"


def test_varints_that_need_more_than_64_bits():
    for data in (b"\xff" * 9 + b"\x02", b"\x80" * 10 + b"\x00", b"\xff" * 20):
        r = DataReader(data)
        for read in (r.read_uvarint, r.read_svarint, lambda r=r: r.read_str("uvarint")):
            with pytest.raises(ValueError, match="64 bits"):
                read()
            assert r.tell() == 0
    with DataWriter(io.BytesIO()) as w:
        for bad in (-1, 2**64):
            with pytest.raises(OverflowError):
                w.write_uvarint(bad)
        for bad in (-(2**63) - 1, 2**63):
            with pytest.raises(OverflowError):
                w.write_svarint(bad)
        assert w.tell() == 0
    assert DataReader(b"\x81\x80\x00").read_uvarint() == 1


def test_struct_errors_are_both_kinds():
    with DataWriter(io.BytesIO()) as w:
        for format, value in [("b", 128), (">H", -1), ("<q", 2**63), ("f", 1e39), ("e", 1e9)]:
            with pytest.raises(struct.error) as caught:
                w.write_struct(format, value)
            assert isinstance(caught.value, OverflowError)
        for format, args in [("i", ()), ("i", (1, 2)), ("i", ("x",)), ("i", (1.5,)), ("d", ("x",)),
                             ("c", (b"ab",)), ("c", ("a",)), ("4s", ("text",)), ("k", (1,)), (">n", (1,)),
                             ("@b", (300,)), ("3", ())]:  # fmt: skip
            with pytest.raises(struct.error):
                w.write_struct(format, *args)
        with pytest.raises(TypeError):
            w.write_struct()
        with pytest.raises(TypeError):
            w.write_struct(5)
        assert w.tell() == 0


@pytest.mark.parametrize(
    "format", ["@bhilqnNPd", "3p", "@", "i" * 40, "300s", ">200i", "99x", b"hh", "20p2h"]
)
def test_formats_by_struct_s_own_hand(format):
    text = format.decode() if isinstance(format, bytes) else format
    full = text if text.startswith("@") else ">" + text.lstrip("<>")
    size = struct.calcsize(full)
    data = bytes(range(1, 120)) * 12
    items = struct.unpack(full, data[:size])
    target = io.BytesIO()
    with DataWriter(target) as w:
        for _ in range(3):
            w.write_struct(format, *items)
    assert target.getvalue() == struct.pack(full, *items) * 3
    r = DataReader(target.getvalue(), buffer_size=64)
    for _ in range(3):
        assert r.read_struct(format) == items
    assert r.at_eof()


def test_iter_struct_stays_with_tell():
    data = struct.pack(">5i", *range(5))
    for make in (bytes, io.BytesIO, Drip):
        for size in (0, 64, 65536):
            r = DataReader(make(data + b"ab"), buffer_size=size)
            records = r.iter_struct("i")
            for n in range(5):
                assert next(records) == (n,) and r.tell() == 4 * (n + 1)
            with pytest.raises(ShortReadError) as caught:
                next(records)
            assert (caught.value.partial, r.tell()) == (b"ab", 20)
            assert r.read() == b"ab"
            assert list(records) == [] and list(r.iter_struct("i")) == []
    r = DataReader(data)
    assert [x for (x,) in r.iter_struct("<i")] == [x for (x,) in struct.iter_unpack("<i", data)]
    with pytest.raises(ValueError):
        r.iter_struct("")
    r.close()
    with pytest.raises(ValueError, match="closed"):
        r.iter_struct("i")
