# SPDX-License-Identifier: MIT
"""ZipFile against zipfile: directory, end records, and any byte changed."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import warnings
import zipfile
import zlib
from typing import Any

import pytest
from hostile_build import CENTRAL, DEFLATED, LOCAL, MAX32, STORED, M, archive, zip64_extra
from zip_help import BOUNDS, NEWEST, assert_same, assert_same_info, pack, text

import pyio_chunked
from pyio_chunked import ZipFile

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


def test_what_names_no_member():
    """As zipfile says it: a name is looked up in a dict."""
    data = archive([M("a", b"bytes")])
    with ZipFile(io.BytesIO(data)) as ours, zipfile.ZipFile(io.BytesIO(data)) as theirs:
        for name in ("b", 5, None, b"a", ("a",), ["a"], {"a": 1}, bytearray(b"a"), "\ud800"):
            for call in ("getinfo", "read", "open"):
                with pytest.raises((KeyError, TypeError)) as mine:
                    getattr(ours, call)(name)
                with pytest.raises((KeyError, TypeError)) as peer:
                    getattr(theirs, call)(name)
                assert mine.type is peer.type, (call, name)
            with pytest.raises(mine.type):
                ours.readinto(name, bytearray(5))
        for mode in ("rb", "", "U", "rw"):
            for each in (ours, theirs):
                with pytest.raises(ValueError, match="mode"):
                    each.open("a", mode)


def test_a_changed_zipinfo_counts_where_it_is_given():
    data = archive([M("a", b"bytes")])
    with ZipFile(io.BytesIO(data)) as ours:
        info = ours.getinfo("a")
        info.CRC ^= 1
        assert ours.getinfo("a") is info
        with pytest.raises(zipfile.BadZipFile):
            ours.read(info)
        with pytest.raises(zipfile.BadZipFile), ours.open(info) as member:
            member.read()
        assert ours.read("a") == b"bytes"  # by name, the directory counts


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
    for call in (
        lambda: zf.read("a"), lambda: zf.open("a"), zf.testzip, zf.read_many, zf.check,
        lambda: zf.readinto("a", bytearray(100)), lambda: zf.extract("a", tmp_path / "out"),
        lambda: zf.extractall(tmp_path / "out"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="already closed"):
            call()
    zf.close()


@pytest.mark.parametrize("member", [None, "open", "closed later"])
@pytest.mark.parametrize("kind", ["path", "bytes"])
def test_a_closed_archive_can_still_be_listed_as_zipfiles(tmp_path, kind, member):
    path = pack(tmp_path / "a.zip", {"a": b"1" * 100, "b/": b"", "é": b"2"})
    source = path if kind == "path" else io.BytesIO(path.read_bytes())
    before = len(os.listdir("/proc/self/fd"))
    ours = ZipFile(source)
    stream = ours.open("a") if member else None
    ours.close()
    if stream and member == "closed later":
        stream.close()
    with zipfile.ZipFile(path) as theirs:
        pass
    assert ours.namelist() == list(ours) == theirs.namelist()
    assert len(ours) == 3
    assert "a" in ours
    assert "nope" not in ours
    for mine, other in zip(ours.infolist(), theirs.infolist(), strict=True):
        assert_same_info(mine, other)
    assert list(ours.NameToInfo) == list(theirs.NameToInfo)
    assert ours.getinfo("é") is ours.NameToInfo["é"]
    printed, expected = io.StringIO(), io.StringIO()
    ours.printdir(printed)
    theirs.printdir(expected)
    assert printed.getvalue() == expected.getvalue()
    if stream and member == "open":
        assert stream.read() == b"1" * 100
        stream.close()
    # The last member takes the file along; the ZipFile is still there.
    assert len(os.listdir("/proc/self/fd")) == before


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
    assert ZipFile(io.BytesIO(data)).read("a") == b"x" * 10
    with pytest.raises(zipfile.BadZipFile, match="locator"):
        ZipFile(io.BytesIO(data), profile="strict")
    with contextlib.suppress(zipfile.BadZipFile):  # since CVE-2025-8291
        zipfile.ZipFile(io.BytesIO(data)).close()
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
    for round in range(8):
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
