# SPDX-License-Identifier: MIT
"""What ZipFile.open returns: a full io.BufferedIOBase, against io.BytesIO and zipfile's own."""

from __future__ import annotations

import array
import csv
import gc
import hashlib
import io
import json
import pickle
import random
import shutil
import weakref
import zipfile
import zlib

import pytest
from hostile_build import DEFLATED, STORED, M, archive
from zip_help import BOUNDS, pack, text

import pyio_chunked
from pyio_chunked import ZipFile

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

SIZES = (0, 1, 500, 20_000, 262_144, 262_145, 900_000)


@pytest.fixture(scope="module")
def zf(tmp_path_factory):
    members = [
        M(f"{kind}{size}", text(size, size), method)
        for size in SIZES
        for kind, method in (("s", STORED), ("d", DEFLATED))
    ]
    path = tmp_path_factory.mktemp("stream") / "a.zip"
    path.write_bytes(archive(members))
    with ZipFile(path) as zf:
        yield zf


@pytest.fixture(scope="module")
def from_object(zf):
    with open(zf.filename, "rb") as file:
        data = file.read()
    with ZipFile(io.BytesIO(data)) as other:
        yield other


@pytest.fixture
def lean():
    """No room for whole members and fast engines: streams keep the least."""
    pool = pyio_chunked.pool
    limit = pool.stats().limit
    pool.set_limit(0)
    yield
    pool.set_limit(limit)


NAMES = [f"{kind}{size}" for size in SIZES for kind in "sd"]
operations = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["read", "read1", "peek", "readline", "readinto", "readinto1"]),
                  st.sampled_from([0, 1, 7, 100, 511, 4096, 8192, 65536, 262_144, 300_000, 1 << 40])),
        st.tuples(st.just("read"), st.sampled_from([-1, None, -5])),
        st.tuples(st.just("seek"), st.integers(-1000, 1_000_000), st.sampled_from([0, 1, 2])),
    ),
    max_size=25,
)  # fmt: skip


def check_model(member, model, size, steps):
    for name, *arguments in steps:
        at = model.tell()
        assert member.tell() == at
        (n, *rest) = arguments
        if name == "seek":
            whence = rest[0]
            base = (0, at, size)[whence]
            wanted = min(max(base + n, 0), size)  # zipfile clips
            assert member.seek(n, whence) == wanted
            model.seek(wanted)
        elif name in ("readinto", "readinto1"):
            buffer = bytearray(min(n, 400_000))
            got = getattr(member, name)(buffer)
            if name == "readinto":
                assert got == min(len(buffer), size - at)
            else:
                assert 0 < got <= len(buffer) or at == size or not buffer
            assert buffer[:got] == model.read(got)
        elif name == "peek":
            seen = member.peek(n)
            assert seen == model.read(len(seen))
            assert seen or at == size
            model.seek(at)
        elif name == "read1":
            got = member.read1(n)
            assert got == model.read(len(got))
            assert len(got) <= n
            assert got or at == size or n == 0
        else:
            assert getattr(member, name)(n) == getattr(model, name)(n)
    assert member.tell() == model.tell()


@pytest.mark.parametrize("name", NAMES)
@given(steps=operations)
def test_model(zf, name, steps):
    size = int(name[1:])
    with zf.open(name) as member:
        check_model(member, io.BytesIO(text(size, size)), size, steps)


@pytest.mark.parametrize("name", ["s900000", "d900000", "d20000"])
@given(steps=operations)
def test_model_over_an_object(from_object, name, steps):
    size = int(name[1:])
    with from_object.open(name) as member:
        check_model(member, io.BytesIO(text(size, size)), size, steps)


@pytest.mark.parametrize("name", ["d1", "d20000", "d262145", "d900000", "s900000"])
@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@given(steps=operations)
def test_model_of_lean_streams(zf, lean, name, steps):
    size = int(name[1:])
    # As many as use up what even a pool without memory grants.
    held = [zf.open("d900000") for _ in range(4)]
    for one in held:
        one.read(10)
    with zf.open(name) as member:
        check_model(member, io.BytesIO(text(size, size)), size, steps)
    for one in held:
        assert one.read() == text(900_000, 900_000)[10:]
        one.close()


@pytest.mark.parametrize("step", [1, 10, 100, 8191, 8192, 8193, 65536, 262_143, 262_144, 262_145])
@pytest.mark.parametrize("name", ["s20000", "d20000", "s900000", "d900000", "d262144"])
def test_pieces_of_every_size(zf, name, step):
    size = int(name[1:])
    expected = text(size, size)
    if size // step > 5000:
        expected = expected[: step * 5000]
    with zf.open(name) as member:
        out = b"".join(iter(lambda: member.read(step) if member.tell() < len(expected) else b"", b""))
    assert out[: len(expected)] == expected


def test_attributes(zf):
    member = zf.open("d500")
    assert isinstance(member, io.BufferedIOBase)
    assert not isinstance(member, io.RawIOBase)
    assert (member.name, member.mode, member.closed) == ("d500", "rb", False)
    assert member.readable()
    assert member.seekable()
    assert not member.writable()
    assert not member.isatty()
    assert "'d500'" in repr(member)
    assert "deflate" in repr(member)
    member.size = 500  # as fsspec does
    member.name = "other"
    assert (member.size, member.name) == (500, "other")
    seen = weakref.ref(member)
    for name, arguments in {
        "fileno": (),
        "detach": (),
        "truncate": (),
        "write": (b"x",),
        "writelines": ([b"x"],),
    }.items():
        with pytest.raises(io.UnsupportedOperation):
            getattr(member, name)(*arguments)
    member.flush()
    member.close()
    member.close()
    assert member.closed
    assert "[closed]" in repr(member)
    del member
    assert seen() is None
    with pytest.raises(TypeError):
        pyio_chunked._core.ZipMember()


def test_after_close(zf):
    member = zf.open("d500")
    member.close()
    for call in (member.read, member.read1, member.peek, member.readline, member.readlines, member.tell,
                 member.readable, member.seekable, member.writable, member.fileno, member.__enter__,
                 lambda: member.readinto(bytearray(5)), lambda: member.readinto1(bytearray(5)),
                 member.flush, lambda: iter(member),
                 lambda: member.seek(0), lambda: next(member), lambda: list(member)):  # fmt: skip
        with pytest.raises(ValueError, match="closed"):
            call()


def test_wrong_arguments(zf):
    with zf.open("d500") as member:
        for call in (lambda: member.read("x"), lambda: member.read(1, 2), lambda: member.read(1.5),
                     lambda: member.readinto(b"readonly"), lambda: member.readinto(5), lambda: member.seek(),
                     lambda: member.seek("x"), lambda: member.seek(0, 1, 2)):  # fmt: skip
            with pytest.raises((TypeError, BufferError)):
                call()
        with pytest.raises(ValueError, match="whence"):
            member.seek(0, 5)
        assert member.seek(-5, 0) == 0
        assert member.seek(2**62, 0) == 500
        assert member.seek(-(2**62), 1) == 0
        assert member.seek(2**70) == 500 and member.seek(-(2**70), 1) == 0  # as zipfile
        with pytest.raises(OverflowError):
            member.read(2**70)


def test_buffers_of_every_kind(zf):
    numpy = pytest.importorskip("numpy")
    expected = text(20_000, 20_000)
    for buffer in (bytearray(1000), memoryview(bytearray(1000)), array.array("i", bytes(1000)),
                   numpy.zeros(500, "u2"), pickle.PickleBuffer(bytearray(1000))):  # fmt: skip
        with zf.open("d20000") as member:
            assert member.readinto(buffer) == 1000
            assert memoryview(buffer).cast("B").tobytes() == expected[:1000]
    with zf.open("d20000") as member:
        for fill in (member.readinto, member.readinto1):
            for buffer in (numpy.zeros((10, 10), "u1")[:, ::2], b"read-only", "text"):
                with pytest.raises(TypeError, match=fill.__name__):  # as io
                    fill(buffer)
    with zf.open("d20000") as member:
        assert member.readinto(bytearray()) == 0


def test_lines(zf):
    for name in ("s20000", "d20000", "d900000", "s900000"):
        size = int(name[1:])
        data = text(size, size).replace(b"a", b"\n")
        packed = ZipFile(io.BytesIO(archive([M("lines", data)])))
        with packed.open("lines") as member:
            assert list(member) == data.splitlines(keepends=True)
        with packed.open("lines") as member:
            assert member.readlines(1000) == io.BufferedReader(io.BytesIO(data)).readlines(1000)
        with packed.open("lines") as member:
            for n in (0, 1, 2, 5, 100, -1):
                line = member.readline(n)
                assert len(line) <= n or n < 0  # where zipfile slips
    one_line = b"x" * 700_000
    packed = ZipFile(io.BytesIO(archive([M("line", one_line + b"\nend")])))
    with packed.open("line") as member:
        assert member.readline(2**40) == one_line + b"\n"
        assert member.readline() == b"end"
        assert member.readline() == b""


def test_what_callers_do(zf, tmp_path):
    expected = text(900_000, 900_000)
    with zf.open("d900000") as member:
        assert hashlib.file_digest(member, "sha256").digest() == hashlib.sha256(expected).digest()
    with zf.open("d900000") as member, open(tmp_path / "out", "wb") as out:
        shutil.copyfileobj(member, out)
    assert (tmp_path / "out").read_bytes() == expected
    rows = [[str(i), "a" * (i % 7), "é"] for i in range(30_000)]
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    objects = {"rows": rows, "none": None}
    nested = io.BytesIO(archive([M("inner", b"found")]))
    packed = ZipFile(
        io.BytesIO(
            archive(
                [
                    M("t.csv", buffer.getvalue().encode()),
                    M("p", pickle.dumps(objects)),
                    M("j", json.dumps(objects).encode()),
                    M("n.zip", nested.getvalue()),
                ]
            )
        )
    )
    with packed.open("t.csv") as member, io.TextIOWrapper(member, "utf-8", newline="") as lines:
        assert list(csv.reader(lines)) == rows
    with packed.open("p") as member:
        assert pickle.load(member) == objects
    with packed.open("j") as member:
        assert json.load(member) == objects
    for reader in (zipfile.ZipFile, ZipFile):
        with packed.open("n.zip") as member, reader(member) as inner:
            assert inner.read("inner") == b"found"


def test_members_outlive_their_archive(tmp_path):
    path = pack(tmp_path / "a.zip", {"a": text(900_000), "b": b"small"})
    zf = ZipFile(path)
    a, b = zf.open("a"), zf.open("b")
    assert a.read(10) == text(900_000)[:10]
    zf.close()
    assert a.read() == text(900_000)[10:]
    assert b.read() == b"small"
    a.close()
    b.close()


def test_an_unclosed_member_warns(tmp_path):
    with ZipFile(pack(tmp_path / "a.zip", {"a": b"x"})) as zf:
        member = zf.open("a")
        with pytest.warns(ResourceWarning, match="unclosed archive member"):
            del member
            gc.collect()


def test_the_crc_is_compared_when_the_end_is_reached(tmp_path):
    for size in (100, 300_000):
        for method in (STORED, DEFLATED):
            body = text(size, size)
            zf = ZipFile(io.BytesIO(archive([M("a", body, method, crc=zlib.crc32(body) ^ 1)])))
            with zf.open("a") as member:
                if size > 262_144:
                    assert member.read(10) == body[:10]  # not there yet
                with pytest.raises(zipfile.BadZipFile, match="Bad CRC-32"):
                    member.read()
                with pytest.raises(zipfile.BadZipFile, match="Bad CRC-32"):
                    member.read()  # nothing is handed out later either
    body = text(300_000)
    zf = ZipFile(io.BytesIO(archive([M("a", body, STORED, crc=1)])))
    with zf.open("a") as member:  # as zipfile: jumping over bytes of a stored one ends the comparison
        member.seek(100)
        assert member.read() == body[100:]


def test_seek_back_checks_again(zf):
    for name in ("d900000", "s900000", "d20000"):
        expected = text(int(name[1:]), int(name[1:]))
        with zf.open(name) as member:
            for _ in range(3):
                assert member.read() == expected
                assert member.read() == b""
                assert member.seek(0) == 0


def test_subclass_of_the_stream_type(zf):
    class Mine(pyio_chunked._core.ZipMember):
        pass

    with pytest.raises(TypeError):
        Mine()


@pytest.mark.parametrize("size", BOUNDS)
def test_bounds(size):
    body = text(size, size)
    zf = ZipFile(io.BytesIO(archive([M("s", body, STORED), M("d", body)])))
    for name in "sd":
        for n in (1, size - 1, size, size + 1):
            with zf.open(name) as member:
                assert member.read(max(n, 0)) + member.read() == body
        with zf.open(name) as member:
            assert member.peek(1)[:1] == body[:1]
            assert member.read() == body


def test_random_access_against_zipfile(zf, rng: random.Random):
    for name in ("d900000", "s900000", "d262144"):
        with zipfile.ZipFile(zf.filename) as other, other.open(name) as theirs, zf.open(name) as ours:
            for _ in range(40):
                where, n = rng.randrange(-1000, 1_000_000), rng.randrange(3000)
                assert ours.seek(where) == theirs.seek(where)
                assert ours.read(n) == theirs.read(n)
                assert ours.tell() == theirs.tell()
