# SPDX-License-Identifier: MIT
"""ZipFile against zipfile: directory, members, sources, sizes that lie."""

from __future__ import annotations

import functools
import io
import os
import random
import struct
import sys
import tempfile
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from hostile_build import CENTRAL, DEFLATED, LOCAL, MAX32, STORED, M, archive, deflate, zip64_extra

import pyio_chunked
from pyio_chunked import ZipFile

SLOTS = zipfile.ZipInfo.__slots__
# zipfile reads 0x7075 and looks for overlaps since 3.13 only; the verdicts are the newest ones.
NEWEST = sys.version_info >= (3, 13)
BOUNDS = (0, 1, 2, 8191, 8192, 8193, 16384, 32767, 32768, 32769, 65535, 65536, 65537,
          262143, 262144, 262145, 1 << 20, (1 << 20) + 1)  # fmt: skip


@functools.lru_cache(maxsize=64)
def text(n: int, seed: int = 0) -> bytes:
    """Compressible, and without a period that an engine could copy for ever."""
    rng = random.Random(seed)
    words = [bytes(rng.choices(b"abcdefghij", k=rng.randrange(2, 9))) for _ in range(300)]
    return b" ".join(rng.choices(words, k=n // 4 + 1))[:n]


def pack(path: Path, members: dict[str, bytes], method: int = DEFLATED, comment: bytes = b"") -> Path:
    with zipfile.ZipFile(path, "w", method) as zf:
        for name, data in members.items():
            zf.writestr(name, data)
        zf.comment = comment
    return path


def assert_same_info(ours: zipfile.ZipInfo, theirs: zipfile.ZipInfo) -> None:
    assert type(ours) is zipfile.ZipInfo
    for slot in SLOTS:
        assert getattr(ours, slot) == getattr(theirs, slot), slot
        assert type(getattr(ours, slot)) is type(getattr(theirs, slot)), slot


def assert_same(source: Any, data: bytes, **options: Any) -> ZipFile:
    """Everything that both readers say about one archive is the same."""
    ours = ZipFile(source, **options)
    theirs = zipfile.ZipFile(io.BytesIO(data), **options)
    assert ours.namelist() == theirs.namelist()
    assert len(ours) == len(theirs.infolist())
    assert ours.comment == theirs.comment
    assert ours.start_dir == theirs.start_dir
    for mine, other in zip(ours.infolist(), theirs.infolist(), strict=True):
        assert_same_info(mine, other)
    assert list(ours.NameToInfo) == list(theirs.NameToInfo)
    for name, other in theirs.NameToInfo.items():
        assert_same_info(ours.getinfo(name), other)
        expected = theirs.read(name)
        assert ours.read(name) == expected
        assert ours.read(other) == expected
        with ours.open(name) as member:
            assert member.read() == expected
    return ours


# ---------------------------------------------------------------- directory


@pytest.mark.parametrize("method", [STORED, DEFLATED])
def test_every_length_at_every_bound(tmp_path, method):
    members = {f"folder/{n}": text(n, n) for n in BOUNDS}
    path = pack(tmp_path / "a.zip", members, method)
    with assert_same(path, path.read_bytes()) as zf:
        for name, data in members.items():
            buffer = bytearray(len(data))
            assert zf.readinto(name, buffer) == len(data)
            assert buffer == data
        assert dict(zf.read_many()) == members
        assert zf.testzip() is None


def test_infos_are_the_same_objects_at_each_call(tmp_path):
    path = pack(tmp_path / "a.zip", {"a": b"1", "b": b"2", "c": b"3"})
    with ZipFile(path) as zf:
        b = zf.getinfo("b")
        assert zf.getinfo("b") is b
        assert zf.infolist() is zf.infolist()
        assert zf.infolist()[1] is b
        assert zf.NameToInfo["b"] is b
        assert zf.filelist is zf.infolist()


def test_of_one_name_the_last_member_counts():
    data = archive([M("a", b"first"), M("b", b"other"), M("a", b"second"), M("a", b"third")])
    zf = assert_same(io.BytesIO(data), data)
    assert zf.read("a") == b"third"
    assert [zf.read(info) for info in zf.infolist()] == [b"first", b"other", b"second", b"third"]
    assert list(zf.read_many()) == [("a", b"first"), ("b", b"other"), ("a", b"second"), ("a", b"third")]
    assert list(zf.read_many(["a", "a"])) == [("a", b"third")] * 2


@pytest.mark.parametrize(
    "names",
    [
        ["é", "日本/ファイル", "\U0001f600"],
        [b"caf\x82", b"\xff\xfe", b"plain"],
        ["a/", "a/b/", "a/b/c"],
        ["x" * 65535],
        ["", "."],
        ["Name", "name", "NAME"],
    ],
    ids=["utf8", "cp437", "folders", "longest", "empty", "case"],
)
def test_names_as_zipfile_has_them(names):
    data = archive([M(name, b"data of it") for name in names])
    zf = assert_same(io.BytesIO(data), data)
    for name in zf.namelist():
        assert name in zf
        assert name + "?" not in zf


def test_a_name_ends_at_its_first_nul():
    data = archive([M(b"seen\0hidden", b"x"), M("\u00e9\0y", b"y")])
    zf = ZipFile(io.BytesIO(data))
    assert zf.namelist() == ["seen", "\u00e9"]
    assert [info.orig_filename for info in zf.infolist()] == ["seen\0hidden", "\u00e9\0y"]
    assert zf.read("seen") == b"x"
    assert zf.read("\u00e9") == b"y"
    assert "seen\0hidden" not in zf
    with pytest.raises(KeyError):
        zf.read("seen\0hidden")


@pytest.mark.parametrize("encoding", ["shift_jis", "latin-1", "utf-8", "utf-16-le"])
def test_metadata_encoding(encoding):
    names = ["日本", "表示"] if encoding in ("shift_jis", "utf-8", "utf-16-le") else ["café", "naïve"]
    members = [M(name.encode(encoding), name.encode()) for name in names] + [M("flagged é", b"u")]
    data = archive(members)
    zf = assert_same(io.BytesIO(data), data, metadata_encoding=encoding)
    assert zf.namelist() == [*names, "flagged é"]
    for name in names:
        assert zf.read(name) == name.encode()


def test_metadata_encoding_that_does_not_fit():
    data = archive([M(b"\x81", b"x")])
    with pytest.raises(UnicodeDecodeError):
        ZipFile(io.BytesIO(data), metadata_encoding="ascii")
    with pytest.raises(LookupError):
        ZipFile(io.BytesIO(data), metadata_encoding="no such thing")


def test_unicode_path_extra_counts_where_its_crc_is_right():
    raw = b"caf\x82"
    good = struct.pack("<HHBI", 0x7075, 5 + 5, 1, zlib.crc32(raw)) + "naïf".encode()
    wrong = struct.pack("<HHBI", 0x7075, 5 + 5, 1, 123) + "naïf".encode()
    data = archive([M(raw, b"1", extra=good), M(raw, b"2", extra=wrong)])
    zf = ZipFile(io.BytesIO(data))
    assert zf.namelist() == ["naïf", "café"]
    assert [info.orig_filename for info in zf.infolist()] == ["café", "café"]
    assert zf.read("naïf") == b"1"
    assert zf.read("café") == b"2"
    if NEWEST:
        assert_same(io.BytesIO(data), data)


@pytest.mark.parametrize(
    "extra",
    [
        struct.pack("<HHB", 0x7075, 1, 1),
        struct.pack("<HHBI", 0x7075, 6, 1, zlib.crc32(b"a")) + b"\xff",
        struct.pack("<HH", 1, 9999),
    ],
)
def test_broken_extra_fields_are_refused(extra):
    data = archive([M("a", b"x", extra=extra)])
    with pytest.raises(zipfile.BadZipFile, match=r"Corrupt .*extra field"):
        ZipFile(io.BytesIO(data))


@pytest.mark.parametrize("field", ["size", "csize", "offset"])
def test_zip64_extra_that_lacks_a_field(field):
    data = archive([M("a", b"x", central={field: MAX32}, central_extra=zip64_extra())])
    with pytest.raises(zipfile.BadZipFile, match="Corrupt zip64 extra field"):
        ZipFile(io.BytesIO(data))
    with pytest.raises(zipfile.BadZipFile, match="Corrupt zip64 extra field"):
        zipfile.ZipFile(io.BytesIO(data))


def test_newer_version_is_not_implemented():
    data = archive([M("a", b"x", central={"version": 64})])
    with pytest.raises(NotImplementedError, match=r"zip file version 6\.4"):
        ZipFile(io.BytesIO(data))


def test_attributes_of_zipfile(tmp_path, capsys):
    path = pack(tmp_path / "a.zip", {"a": b"1" * 100, "b/": b""}, comment=b"said")
    with ZipFile(path) as zf, zipfile.ZipFile(path) as other:
        assert (zf.mode, zf.debug, zf.pwd) == (other.mode, other.debug, other.pwd)
        assert zf.filename == other.filename == str(path)
        assert zf.comment == b"said"
        assert list(zf) == zf.namelist()
        zf.printdir()
        printed = capsys.readouterr().out
        other.printdir()
        assert printed == capsys.readouterr().out
        zf.setpassword(b"secret")
        assert zf.pwd == b"secret"
        with pytest.raises(TypeError):
            zf.setpassword("text")  # type: ignore[arg-type]
        assert zf.fp.read(2) == b"PK"
        assert f"filename={str(path)!r}" in repr(zf)
    assert zf.fp is None
    assert "[closed]" in repr(zf)
    for call in (zf.namelist, lambda: zf.read("a"), lambda: zf.open("a"), zf.testzip, zf.read_many):
        with pytest.raises(ValueError, match="already closed"):
            call()
    zf.close()


@pytest.mark.parametrize("mode", ["w", "a", "x"])
def test_modes_that_write_are_zipfiles(tmp_path, mode):
    with pytest.raises(ValueError, match=r"zipfile\.ZipFile"):
        ZipFile(tmp_path / "new.zip", mode)
    assert not (tmp_path / "new.zip").exists()
    path = pack(tmp_path / "a.zip", {"a": b""})
    with ZipFile(path) as zf, pytest.raises(ValueError, match=r"zipfile\.ZipFile"):
        zf.open("a", "w")


def test_what_is_no_archive(tmp_path):
    for data in (b"", b"PK", b"x" * 21, b"x" * 22, b"x" * 100_000, b"PK\5\6" + b"\0" * 17):
        with pytest.raises(zipfile.BadZipFile, match="not a zip file"):
            ZipFile(io.BytesIO(data))
        (tmp_path / "f").write_bytes(data)
        with pytest.raises(zipfile.BadZipFile, match="not a zip file"):
            ZipFile(tmp_path / "f")
    with pytest.raises(FileNotFoundError) as failure:
        ZipFile(tmp_path / "missing")
    assert failure.value.filename == str(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        ZipFile(tmp_path)
    with pytest.raises(TypeError):
        ZipFile(io.StringIO("text"))


# -------------------------------------------------------------- end records


def test_empty_archives():
    for data in (archive([]), archive([], comment=b"only words"), archive([], zip64=True)):
        zf = assert_same(io.BytesIO(data), data)
        assert zf.namelist() == []
        assert zf.testzip() is None
        assert list(zf.read_many()) == []


@pytest.mark.parametrize("zip64", [False, True])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("comment", [b"", b"c" * 65535, b"PK\5\6 in the comment" + b"\0" * 30])
def test_prefix_and_comment(zip64, shifted, comment):
    data = archive(
        [M("a", text(5000)), M("b", b"b" * 10, STORED)],
        prefix=b"#!/bin/sh\n" * 50,
        shifted=shifted,
        zip64=zip64,
        comment=comment,
    )
    try:
        zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile:
        with pytest.raises(zipfile.BadZipFile):
            ZipFile(io.BytesIO(data))
    else:
        assert_same(io.BytesIO(data), data)


def test_bytes_behind_the_archive():
    for trailing in (b"\0", b"x" * 1000, b"y" * 65000):
        data = archive([M("a", b"x")], trailing=trailing)
        assert_same(io.BytesIO(data), data)
    data = archive([M("a", b"x")], trailing=b"z" * 65537)
    with pytest.raises(zipfile.BadZipFile, match="not a zip file"):
        ZipFile(io.BytesIO(data))


@pytest.mark.parametrize("prefix", [b"", b"p" * 5000])
@pytest.mark.parametrize("sector", [b"s" * 10, b"s" * 50_000])
def test_zip64_extensible_data(prefix, sector):
    """zipfile misses the record then; the format says where it is."""
    data = archive([M("a", text(3000)), M("b", b"b")], prefix=prefix, zip64=True, sector=sector)
    zf = ZipFile(io.BytesIO(data))
    assert zf.namelist() == ["a", "b"]
    assert zf.read("a") == text(3000)
    assert zf.read("b") == b"b"


def test_zip64_extensible_data_larger_than_the_tail():
    data = archive([M("a", text(3000))], zip64=True, sector=b"s" * 200_000)
    assert ZipFile(io.BytesIO(data)).read("a") == text(3000)


def test_locator_that_points_elsewhere():
    data = archive([M("a", b"x" * 10)], zip64=True, locator={"offset": 5})
    assert_same(io.BytesIO(data), data)


def test_archives_of_several_disks_are_refused():
    data = archive([M("a", b"x")], zip64=True, locator={"disks": 2})
    with pytest.raises(zipfile.BadZipFile, match="multiple disks"):
        ZipFile(io.BytesIO(data))


@pytest.mark.parametrize(
    "only", ["size", "csize", "offset", "size csize", "size csize offset", "csize offset"]
)
def test_zip64_extra_holds_only_what_overflows(only):
    body = b"text of it"
    fields = only.split()
    values = {"size": len(body), "csize": len(body), "offset": 0}
    extra = zip64_extra(*(values[name] for name in ("size", "csize", "offset") if name in fields))
    central = dict.fromkeys(fields, MAX32)
    data = archive([M("a", body, STORED, central=central, central_extra=extra)])
    assert assert_same(io.BytesIO(data), data).read("a") == body


@pytest.mark.parametrize("zip64", [False, True])
def test_more_members_than_the_count_can_say(zip64):
    data = archive([M(str(i), b"", STORED) for i in range(65536)], zip64=zip64)
    zf = ZipFile(io.BytesIO(data))
    assert len(zf) == 65536
    assert zf.namelist() == zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert "65535" in zf
    assert "65536" not in zf


@pytest.mark.parametrize("forged", [{"total": 0, "here": 0}, {"total": 60000}, {"disk": 7}])
def test_counts_that_lie(forged):
    data = archive([M(str(i), b"x") for i in range(100)], end=forged)
    assert_same(io.BytesIO(data), data)


def test_a_directory_that_begins_before_the_file():
    data = archive([M("a", b"x")], end={"size": 1 << 30})
    for reader in (ZipFile, zipfile.ZipFile):
        with pytest.raises(zipfile.BadZipFile, match="Bad offset"):
            reader(io.BytesIO(data))


def test_directory_cut_and_not_a_directory():
    for options, words in (
        ({"end": {"size": 40}}, "Truncated|Bad magic"),
        ({"directory_tail": b"junk"}, "Truncated"),
        ({"directory_tail": b"j" * 46}, "Bad magic"),
    ):
        data = archive([M("a", b"x"), M("b", b"y")], **options)  # type: ignore[arg-type]
        with pytest.raises(zipfile.BadZipFile, match=words):
            zipfile.ZipFile(io.BytesIO(data))
        with pytest.raises(zipfile.BadZipFile, match=words):
            ZipFile(io.BytesIO(data))


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
    packed = body if method == STORED else deflate(body)
    member = M("a", body, method)
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


# ------------------------------------------------------------------ sources


class Duck:
    """A file object that has nothing but what a remote one would have."""

    def __init__(self, data: bytes, piece: int = 1 << 30) -> None:
        self.inner = io.BytesIO(data)
        self.piece = piece
        self.calls = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.inner.seek(offset, whence)

    def tell(self) -> int:
        return self.inner.tell()

    def read(self, n: int = -1) -> bytes:
        self.calls += 1
        return self.inner.read(min(n, self.piece) if n >= 0 else self.piece)


@pytest.fixture
def members() -> dict[str, bytes]:
    return {f"m{i}": text(i * 137, i) for i in range(60)} | {
        "big": text(700_000),
        "noise": random.Random(3).randbytes(200_000),
    }


def test_source_is_bytes_io(tmp_path, members):
    data = pack(tmp_path / "a.zip", members).read_bytes()
    with assert_same(io.BytesIO(data), data) as zf:
        assert dict(zf.read_many(workers=2)) == members
        assert zf.testzip(workers=2) is None
        assert "file=<_io.BytesIO" in repr(zf)


def test_source_reads_short(tmp_path, members):
    data = pack(tmp_path / "a.zip", members).read_bytes()
    assert_same(Duck(data, 999), data)


def test_source_is_asked_seldom(tmp_path):
    members = {f"m{i}": text(900, i) for i in range(200)}
    data = pack(tmp_path / "a.zip", members).read_bytes()
    duck = Duck(data)
    with ZipFile(duck) as zf:
        opening = duck.calls
        assert dict(zf.read_many()) == members
    assert opening <= 3
    assert duck.calls - opening <= 2 * (len(data) // 65536 + 1)


def test_source_with_a_descriptor_that_leads_elsewhere(tmp_path, members):
    import gzip

    data = pack(tmp_path / "a.zip", members).read_bytes()
    (tmp_path / "a.zip.gz").write_bytes(gzip.compress(data, 1))
    with gzip.open(tmp_path / "a.zip.gz") as file:
        assert_same(file, data)


@pytest.mark.parametrize("buffering", [0, -1])
def test_source_is_a_file(tmp_path, members, buffering):
    path = pack(tmp_path / "a.zip", members)
    with open(path, "rb", buffering) as file:
        zf = assert_same(file, path.read_bytes())
        assert zf.fp is file
        assert zf.filename == str(path)
        zf.close()
        assert not file.closed


def test_source_has_bytes_that_are_not_written_yet(tmp_path):
    with open(tmp_path / "a.zip", "w+b", buffering=1 << 20) as file:
        file.write(archive([M("a", b"still in the buffer")]))
        assert os.stat(tmp_path / "a.zip").st_size == 0
        assert ZipFile(file).read("a") == b"still in the buffer"


def test_source_is_closed_by_its_owner(tmp_path):
    path = pack(tmp_path / "a.zip", {"a": b"right"})
    with open(path, "rb") as file:
        zf = ZipFile(file)
    with open(tmp_path / "other", "wb+") as other:  # may get the same number
        other.write(b"wrong" * 1000)
        other.flush()
        assert zf.read("a") == b"right"
    zf.close()


def test_source_is_temporary(tmp_path):
    data = archive([M("a", text(3000))])
    with tempfile.TemporaryFile(dir=tmp_path) as file:
        file.write(data)
        assert ZipFile(file).read("a") == text(3000)
    with tempfile.SpooledTemporaryFile(max_size=1 << 20) as file:
        file.write(data)
        assert ZipFile(file).read("a") == text(3000)
    with tempfile.NamedTemporaryFile(dir=tmp_path) as file:
        file.write(data)
        file.flush()
        assert ZipFile(file.name).read("a") == text(3000)
        assert ZipFile(file).read("a") == text(3000)


def test_source_raises(tmp_path):
    class Broken(Duck):
        def read(self, n: int = -1) -> bytes:
            if self.calls >= 2:
                raise ConnectionError("gone")
            return super().read(n)

    data = pack(tmp_path / "a.zip", {"a": random.Random(1).randbytes(300_000)}).read_bytes()
    zf = ZipFile(Broken(data))
    with pytest.raises(ConnectionError, match="gone"):
        for _ in range(4):
            zf.read("a")


def test_source_calls_back(tmp_path):
    """A source that uses the archive it belongs to: refused, not a deadlock."""

    class Nosy(Duck):
        zf: Any = None

        def read(self, n: int = -1) -> bytes:
            if self.zf is not None:
                zf, self.zf = self.zf, None
                with pytest.raises(RuntimeError, match="reentrant"):
                    zf.read("a")
            return super().read(n)

    data = pack(tmp_path / "a.zip", {"a": random.Random(1).randbytes(300_000)}).read_bytes()
    source = Nosy(data)
    zf = ZipFile(source)
    source.zf = zf
    assert len(zf.read("a")) == 300_000


def test_a_file_that_shrinks_after_it_was_opened(tmp_path):
    path = pack(
        tmp_path / "a.zip",
        {"a": random.Random(1).randbytes(100_000), "b": random.Random(2).randbytes(900_000)},
        STORED,
    )
    with ZipFile(path) as zf:
        os.truncate(path, 50_000)
        for name in "ab":
            with pytest.raises((EOFError, zipfile.BadZipFile)):
                zf.read(name)
        with pytest.raises(EOFError) as failure:
            zf.read("a")
        assert isinstance(failure.value, zipfile.BadZipFile)


def test_paths_of_every_kind(tmp_path):
    path = pack(tmp_path / "a.zip", {"a": b"x"})
    for given in (str(path), os.fsencode(path), path):
        with ZipFile(given) as zf:
            assert zf.read("a") == b"x"
            assert zf.filename == os.fspath(given)
    fd = os.open(path, os.O_RDONLY)
    with ZipFile(fd) as zf:
        assert zf.read("a") == b"x"
    os.close(fd)


def test_opening_is_audited_and_close_on_exec(tmp_path):
    path = pack(tmp_path / "a.zip", {"a": b"x"})
    events = []
    on = True

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if on and event == "open":
            events.append(arguments[:2])

    sys.addaudithook(hook)
    with ZipFile(path) as zf:
        on = False
        assert events == [(str(path), "rb")]
        assert os.get_inheritable(zf.fp.fileno()) is False
        with open(path, "rb") as file, ZipFile(file) as other:
            assert os.get_inheritable(other._fileno()) is False


def test_no_descriptor_is_left(tmp_path):
    path = pack(tmp_path / "a.zip", {"a": b"x"})
    (tmp_path / "bad").write_bytes(b"no archive")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        zf = ZipFile(path)
        member = zf.open("a")
        zf.close()
        assert member.read() == b"x"
        member.close()
        with pytest.raises(zipfile.BadZipFile):
            ZipFile(tmp_path / "bad")
        iterator = ZipFile(path).read_many()
        next(iterator)
        del iterator
    assert len(os.listdir("/proc/self/fd")) == before


def test_subclasses(tmp_path):
    class Mine(ZipFile):
        def read(self, name, pwd=None, *, verify=True):
            return super().read(name, pwd, verify=verify)[::-1]

    with Mine(pack(tmp_path / "a.zip", {"a": b"abc"})) as zf:
        assert zf.read("a") == b"cba"
        zf.anything = 5  # type: ignore[attr-defined]


def test_import_does_not_load_zipfile(tmp_path):
    import subprocess

    code = "import sys, pyio_chunked; sys.exit('zipfile' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -------------------------------------------------------------- differential


def test_forged_bytes_never_give_other_data(rng):
    """Any bytes changed: what zipfile (with our rules on top) accepts, we give; all else is an error of its classes."""
    members = [M(f"n{i}", text(rng.randrange(3000), i), rng.choice([STORED, DEFLATED])) for i in range(6)]
    whole = archive(members, zip64=True, comment=b"words")
    expected = {m.name: m.data for m in members}
    allowed = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, KeyError,
               UnicodeDecodeError, ValueError, OSError, OverflowError)  # fmt: skip
    for _ in range(1500):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 1, 2, 4])):
            where = rng.choice([rng.randrange(len(data)), rng.randrange(len(data) - 400, len(data))])
            data[where] = rng.choice([0, 255, rng.randrange(256), data[where] ^ 1 << rng.randrange(8)])
        data = bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                theirs: Any = zipfile.ZipFile(io.BytesIO(data))
            except allowed:
                theirs = None
            try:
                ours = ZipFile(io.BytesIO(data))
            except allowed:
                assert theirs is None or NEWEST is False, "zipfile opens it"
                continue
            if theirs is None:
                continue
            assert ours.namelist() == theirs.namelist() or not NEWEST
            for mine, other in zip(ours.infolist(), theirs.infolist(), strict=True):
                if NEWEST:
                    assert_same_info(mine, other)
                try:
                    read = ours.read(mine)
                except allowed:
                    continue
                assert read == theirs.read(other)
                if zlib.crc32(expected.get(mine.filename, b"")) == mine.CRC:
                    assert read == expected.get(mine.filename, read)


def test_random_archives(rng, tmp_path):
    for round in range(20):
        members = [
            M(
                "".join(rng.choices("abcé日/._", k=rng.randrange(1, 30))),
                text(rng.choice([0, 1, 100, 5000, 70_000, 300_000]), rng.random().__hash__()),
                rng.choice([STORED, DEFLATED]),
                extra=rng.choice([b"", struct.pack("<HH4s", 0x5455, 4, b"time")]),
                central_extra=rng.choice([None, b""]),
                comment=rng.randbytes(rng.randrange(5)),
                descriptor=rng.choice(["", "", "<I", "s<Q"]),
                gap=rng.choice([b"", b"", b"gap" * rng.randrange(1000)]),
            )
            for _ in range(rng.randrange(40))
        ]
        data = archive(
            members,
            prefix=rng.choice([b"", rng.randbytes(300)]),
            comment=rng.randbytes(rng.randrange(100)).replace(b"PK", b"pk"),
            zip64=rng.random() < 0.3,
        )
        path = tmp_path / f"{round}.zip"
        path.write_bytes(data)
        with assert_same(rng.choice([path, io.BytesIO(data)]), data) as zf:
            assert [name for name, _ in zf.read_many(workers=2)] == zf.namelist()


def test_sizes_of_format_structures():
    assert (LOCAL.size, CENTRAL.size) == (30, 46)
    assert pyio_chunked.ZipFile is ZipFile
