# SPDX-License-Identifier: MIT
"""Members against zipfile: descriptors, sizes that lie, headers that differ, overlaps."""

from __future__ import annotations

import io
import random
import struct
import zipfile
import zlib

import pytest
from hostile_build import CENTRAL, DEFLATED, MAX32, STORED, M, archive, deflate, zip64_extra
from zip_help import assert_same, pack, text

from pyio_chunked import ZipFile

# ------------------------------------------------------------------ members


@pytest.mark.parametrize("descriptor", ["<I", "s<I", "<Q", "s<Q"])
@pytest.mark.parametrize("method", [STORED, DEFLATED])
def test_data_descriptors(descriptor, method):
    members = [M(str(n), text(n, n), method, descriptor=descriptor) for n in (0, 1, 3000, 300_000)]
    data = archive(members)
    assert_same(io.BytesIO(data), data)


def test_empty_members():
    data = archive(
        [M("stored", b"", STORED), M("deflated", b""), M("nothing", b"", body=b""), M("folder/", b"", STORED)]
    )
    zf = assert_same(io.BytesIO(data), data)
    for name in zf.namelist():
        assert zf.read(name) == b""
        assert zf.readinto(name, bytearray(5)) == 0
    assert zf.testzip() is None


@pytest.mark.parametrize("reader", ["path", "object"])
@pytest.mark.parametrize("size", [100, 20_000, 400_000, 3_000_000])
@pytest.mark.parametrize("method", [STORED, DEFLATED])
@pytest.mark.parametrize(
    "lie",
    ["4 GiB", "2**63", "one less", "one more", "half", "zero", "crc", "crc 0", "csize less", "csize more"],
)
def test_sizes_and_sums_that_lie(tmp_path, lie, method, size, reader):
    """BadZipFile, and never memory by the word of a header."""
    body = text(size, size)
    packed = body if method == STORED else deflate(body, 1)
    member = M("a", body, method, body=packed)
    extra = {"central_extra": zip64_extra(2**63 - 1)} if lie == "2**63" else {}
    central: dict[str, int] = {
        "4 GiB": {"size": MAX32 - 1},
        "2**63": {"size": MAX32},
        "one less": {"size": size - 1},
        "one more": {"size": size + 1},
        "half": {"size": size // 2},
        "zero": {"size": 0},
        "crc": {"crc": zlib.crc32(body) ^ 1},
        "crc 0": {"crc": 0},
        "csize less": {"csize": len(packed) // 2},
        "csize more": {"csize": len(packed) + 7},
    }[lie]
    member.central = central
    for name, value in extra.items():
        setattr(member, name, value)
    data = archive([member, M("b", b"fine")])
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    zf = ZipFile(path if reader == "path" else io.BytesIO(data))
    with pytest.raises(zipfile.BadZipFile) as failure:
        zf.read("a")
    assert "'a'" in str(failure.value)
    with pytest.raises(zipfile.BadZipFile), zf.open("a") as opened:
        while opened.read(8192):
            pass
    with pytest.raises(zipfile.BadZipFile), zf.open("a") as opened:
        opened.read()
    with pytest.raises(zipfile.BadZipFile):
        zf.readinto("a", bytearray(size * 2)) if lie not in ("4 GiB", "2**63") else zf.read("a")
    with pytest.raises(zipfile.BadZipFile):
        dict(zf.read_many())
    assert zf.testzip() == "a"
    assert zf.read("b") == b"fine"
    zf.close()


def test_verify_false_skips_the_crc_alone(tmp_path):
    body = text(50_000)
    data = archive([M("a", body, crc=1), M("b", body, STORED, crc=1), M("c", body, size=49_999, crc=1)])
    zf = ZipFile(io.BytesIO(data))
    for name in "ab":
        assert zf.read(name, verify=False) == body
        buffer = bytearray(len(body))
        assert zf.readinto(name, buffer, verify=False) == len(body)
        assert buffer == body
        with pytest.raises(zipfile.BadZipFile, match="Bad CRC-32"):
            zf.read(name)
    with pytest.raises(zipfile.BadZipFile, match="Bad size"):
        zf.read("c", verify=False)


def test_broken_streams_are_zlibs_error_and_bad_zip_file():
    body = text(5000)
    packed = bytearray(deflate(body))
    packed[10] ^= 0x55
    packed[11] ^= 0xFF
    for options in ({}, {"size": 5001}):
        data = archive([M("a", body, body=bytes(packed), **options)])
        with pytest.raises((zlib.error, zipfile.BadZipFile)):
            zipfile.ZipFile(io.BytesIO(data)).read("a")
        with pytest.raises(zipfile.BadZipFile):
            ZipFile(io.BytesIO(data)).read("a")
    data = archive([M("a", body, body=b"\xff" + deflate(body))])
    with pytest.raises(zlib.error, match="invalid block type") as failure:
        ZipFile(io.BytesIO(data)).read("a")
    assert isinstance(failure.value, zipfile.BadZipFile)


def test_a_stream_without_its_last_block_but_with_all_bytes():
    """zipfile reads it; its bytes and CRC are right."""
    body = text(5000)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(body) + packer.flush(zlib.Z_SYNC_FLUSH)
    data = archive([M("a", body, body=packed)])
    assert_same(io.BytesIO(data), data)


def test_bytes_behind_the_stream_are_ignored():
    body = text(5000)
    data = archive([M("a", body, body=deflate(body) + b"tail")])
    assert_same(io.BytesIO(data), data)


@pytest.mark.parametrize("field", ["version", "flags", "method", "time", "crc", "csize", "size"])
def test_compat_reads_by_the_directory_whatever_the_local_header_says(field):
    data = archive([M("a", text(2000), local={field: 6})])
    assert_same(io.BytesIO(data), data)


def test_local_headers_that_are_refused():
    for member, words in (
        (M("a", b"x", local_name=b"b"), "differ"),
        (M("a", b"x", local={"signature": b"PK\3\5"}), "Bad magic number for file header"),
        (M("a", b"x", offset=1 << 20), "Truncated file header"),
    ):
        data = archive([member, M("z", b"z")])
        for reader in (zipfile.ZipFile, ZipFile):
            zf = reader(io.BytesIO(data))
            with pytest.raises(zipfile.BadZipFile, match=words):
                zf.open("a")
            with pytest.raises(zipfile.BadZipFile, match=words):
                zf.read("a")


def test_names_are_compared_by_what_they_say():
    """cp437 in the header and UTF-8 in the directory may be one name."""
    data = archive([M("é", b"x", local_name=b"\x82", local={"flags": 0})])
    assert_same(io.BytesIO(data), data)
    data = archive([M("é", b"x", local={"flags": 0})])
    for reader in (zipfile.ZipFile, ZipFile):
        with pytest.raises(zipfile.BadZipFile, match="differ"):
            reader(io.BytesIO(data)).read("é")


def test_offset_beyond_what_a_file_can_have():
    for offset in (2**63, 2**64 - 1, 2**40):
        data = archive(
            [M("a", b"x", central={"offset": MAX32}, central_extra=zip64_extra(offset)), M("b", b"y")]
        )
        zf = ZipFile(io.BytesIO(data))
        other = zipfile.ZipFile(io.BytesIO(data))
        assert zf.getinfo("a").header_offset == other.getinfo("a").header_offset == offset
        for what in ("a", zf.getinfo("a")):
            with pytest.raises(zipfile.BadZipFile):
                zf.read(what)
        assert zf.read("b") == b"y"


def test_entries_at_one_offset_warn_as_zipfile():
    member = M("a", b"shared")
    twin = M("a", b"shared", offset=0, written=False)
    data = archive([member, twin])
    zf = ZipFile(io.BytesIO(data))
    assert zf.read("a") == b"shared"  # the last one
    with pytest.warns(UserWarning, match="Overlapped entries"):
        assert list(zf.read_many()) == [("a", b"shared")] * 2


def test_an_entry_that_reaches_into_the_next_is_refused():
    body = b"0123456789"
    a = M("a", body, STORED, central={"csize": 11, "size": 11})
    zf = ZipFile(io.BytesIO(archive([a, M("b", b"b")])))
    with pytest.raises(zipfile.BadZipFile, match="Overlapped entries"):
        zf.read("a")
    last = archive([M("z", body, STORED, central={"csize": 11, "size": 11})])
    with pytest.raises(zipfile.BadZipFile, match="Overlapped entries"):
        ZipFile(io.BytesIO(last)).read("z")


def test_members_out_of_order():
    """The directory's order isn't the file's."""
    members = [M(str(i), text(500, i)) for i in range(50)]
    data = archive(members)
    end = data.rindex(b"PK\5\6")
    start = struct.unpack_from("<I", data, end + 16)[0]
    entries, at = [], start
    while at < end:
        n, e, c = struct.unpack_from("<3H", data, at + 28)
        entries.append(data[at : at + CENTRAL.size + n + e + c])
        at += len(entries[-1])
    random.Random(5).shuffle(entries)
    data = data[:start] + b"".join(entries) + data[end:]
    zf = assert_same(io.BytesIO(data), data)
    assert dict(zf.read_many()) == {str(i): text(500, i) for i in range(50)}


def test_a_zipinfo_is_read_by_its_own_fields(tmp_path):
    path = pack(tmp_path / "a.zip", {"a": b"first", "b": b"second"}, STORED)
    with ZipFile(path) as zf, zipfile.ZipFile(path) as other:
        info = other.getinfo("a")
        info.filename = "renamed"  # what callers do before extract
        assert zf.read(info) == b"first"
        info.header_offset = other.getinfo("b").header_offset
        with pytest.raises(zipfile.BadZipFile, match="differ"):
            zf.read(info)
        fresh = zipfile.ZipInfo("a")
        with pytest.raises(AttributeError):
            zf.read(fresh)


def test_missing_members_are_key_errors(tmp_path):
    with ZipFile(pack(tmp_path / "a.zip", {"a": b""})) as zf:
        for name in ("b", "", "A", "\ud800"):
            for call in (zf.read, zf.open, zf.getinfo):
                with pytest.raises(KeyError, match="There is no item named"):
                    call(name)
            assert name not in zf
        assert 5 not in zf
        for wrong in (5, None, b"a"):
            with pytest.raises(KeyError):
                zf.read(wrong)  # type: ignore[arg-type]


def test_arguments(tmp_path):
    with ZipFile(pack(tmp_path / "a.zip", {"a": b"text"})) as zf:
        assert zf.read(name="a", pwd=None, verify=True) == b"text"
        with zf.open("a", "r", None, force_zip64=False) as member:
            assert member.read() == b"text"
        for call in (
            lambda: zf.read(),  # type: ignore[call-arg]
            lambda: zf.read("a", None, True),  # type: ignore[misc]
            lambda: zf.read("a", wrong=1),  # type: ignore[call-arg]
            lambda: zf.read("a", name="a"),  # type: ignore[misc]
            lambda: zf.readinto("a", b"readonly"),
        ):
            with pytest.raises((TypeError, BufferError)):
                call()
        with pytest.raises(ValueError, match="buffer"):
            zf.readinto("a", bytearray(3))
        with pytest.raises(ValueError, match=r"open\(\)"):
            zf.open("a", "rb")  # type: ignore[arg-type]
        for workers in (0, -1):
            with pytest.raises(ValueError, match="workers"):
                zf.read_many(workers=workers)
            with pytest.raises(ValueError, match="workers"):
                zf.testzip(workers=workers)


def test_a_member_in_front_of_the_file_bounds_nobody():
    """The directory says that it begins 1000 bytes later than it does: a member that says 0 lies
    at -1000, and the last one may still not reach into the directory."""
    data = bytearray(archive([M("a", b"first", STORED), M("b", b"second", STORED)]))
    start = data.index(b"PK\1\2")
    second = data.index(b"PK\1\2", start + 1)
    (off,) = struct.unpack_from("<I", data, second + 42)
    struct.pack_into("<II", data, second + 20, 16, 16)  # ten bytes of the directory
    struct.pack_into("<I", data, second + 42, off + 1000)
    struct.pack_into("<I", data, len(data) - 6, start + 1000)
    with ZipFile(io.BytesIO(data)) as zf:
        assert [info.header_offset for info in zf.infolist()] == [-1000, off]
        with pytest.raises(zipfile.BadZipFile, match="Overlapped"):
            zf.read("b")
        with pytest.raises(zipfile.BadZipFile):
            zf.read("a")
