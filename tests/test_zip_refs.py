# SPDX-License-Identifier: MIT
"""EntryRef, scan and partition: members without their archive's directory."""

from __future__ import annotations

import io
import os
import pickle
import struct
import subprocess
import sys
import zipfile
import zlib

import pytest
from hostile_build import DEFLATED, STORED, M, archive
from zip_help import pack, text

import pyio_chunked
from pyio_chunked import EntryRef, ZipFile, partition, scan

MEMBERS = {"a": b"", "b/": b"", "b/c.json": text(100), "é": text(70_000, 1), "big.bin": text(900_000, 2)}


@pytest.fixture
def path(tmp_path):
    return pack(tmp_path / "a.zip", MEMBERS)


def test_refs_read_what_their_archive_reads(path):
    with ZipFile(path) as zf:
        refs = zf.refs()
        infos = zf.infolist()
    assert [ref.name for ref in refs] == list(MEMBERS)
    status = os.stat(path)
    for ref, info in zip(refs, infos, strict=True):
        assert type(ref) is EntryRef
        assert ref.path == str(path)
        assert ref.fingerprint == (status.st_size, status.st_mtime_ns, status.st_ino)
        assert ref[3:] == (
            info.header_offset,
            info.compress_size,
            info.file_size,
            info.CRC,
            info.compress_type,
        )
        ref = pickle.loads(pickle.dumps(ref))
        assert ref.read() == MEMBERS[ref.name]
        assert ref.read(verify=False) == MEMBERS[ref.name]
        with ref.open() as member:
            assert member.name == ref.name
            assert member.read(10) + member.read() == MEMBERS[ref.name]


def test_refs_are_small_and_pickle_by_the_public_name(path):
    with ZipFile(path) as zf:
        pickled = pickle.dumps(zf.refs()[2])
    assert b"pyio_chunked" in pickled
    assert b"_zip_refs" not in pickled
    assert len(pickled) < 300


def test_a_read_is_one_pread(path):
    with ZipFile(path) as zf:
        ref = zf.refs()[2]
    ref.read()
    core = pyio_chunked._core
    core._fault_count()
    ref.read()
    calls = core._fault_calls()
    core._fault_clear()
    assert calls.get("pread", 0) + calls.get("pread_nowait", 0) <= 2  # one, twice where nowait is refused
    assert calls["openat"] == calls["fstat"] == calls["close"] == 1


def test_a_read_works_in_another_process(path):
    with ZipFile(path) as zf:
        pickled = pickle.dumps(zf.refs())
    code = (
        "import sys, pickle, zlib\n"
        "for ref in pickle.load(sys.stdin.buffer):\n"
        "    assert zlib.crc32(ref.read()) == ref.crc\n"
    )
    subprocess.run([sys.executable, "-c", code], input=pickled, check=True, cwd="/")


def test_relative_paths_become_absolute(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    with ZipFile("a.zip") as zf:
        assert {ref.path for ref in zf.refs()} == {str(path)}
    with ZipFile(b"a.zip") as zf:
        assert {ref.path for ref in zf.refs()} == {str(path)}


def test_archives_without_a_path(path):
    with open(path, "rb") as file, ZipFile(file) as zf, pytest.raises(ValueError, match="path"):
        zf.refs()
    with ZipFile(io.BytesIO(path.read_bytes())) as zf, pytest.raises(ValueError, match="path"):
        zf.refs()


def test_a_changed_archive_is_refused(path):
    with ZipFile(path) as zf:
        ref = zf.refs()[2]
    portable = ref._replace(fingerprint=ref.fingerprint[:1])
    os.utime(path, ns=(1, 1))
    for call in (ref.read, ref.open):
        with pytest.raises(OSError, match="changed"):
            call()
    assert portable.read() == MEMBERS[ref.name]
    with open(path, "ab") as file:
        file.write(b"x")
    with pytest.raises(OSError, match="changed"):
        portable.read()
    path.unlink()
    with pytest.raises(FileNotFoundError) as failure:
        ref.read()
    assert failure.value.filename == str(path)


def test_refs_that_lie(tmp_path):
    body = text(3000)
    path = tmp_path / "a.zip"
    path.write_bytes(archive([M("a", body), M("locked", body, flags=1), M("strong", body, flags=64)]))
    with ZipFile(path) as zf:
        good, locked, strong = zf.refs()
    for wrong in (
        {"crc": 5}, {"size": 2999}, {"size": 3001}, {"size": 2**63}, {"size": 2**40}, {"offset": 7},
        {"offset": 2**40}, {"offset": 2**63}, {"compressed_size": 10}, {"compressed_size": 2**62},
        {"method": 0},
    ):  # fmt: skip
        with pytest.raises((zipfile.BadZipFile, EOFError)):
            good._replace(**wrong).read()
    with pytest.raises(NotImplementedError):
        good._replace(method=99).read()
    with pytest.raises(RuntimeError, match="encrypted"):
        locked.read()
    with pytest.raises(NotImplementedError, match="strong"):
        strong.read()
    with pytest.raises((TypeError, OverflowError, ValueError)):
        good._replace(offset=-1).read()
    assert good._replace(crc=5).read(verify=False) == body


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("kind", ["path", "url"])
def test_other_methods_as_zipfile_reads_them(tmp_path, method, kind):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", method) as zf:
        for name, body in MEMBERS.items():
            zf.writestr(name, body)
    if kind == "url":
        pytest.importorskip("fsspec", reason="fsspec is not installed")
    for ref in scan(str(path) if kind == "path" else path.as_uri()):
        ref = pickle.loads(pickle.dumps(ref))
        assert ref.read() == MEMBERS[ref.name]
        with ref.open() as stream:
            assert isinstance(stream, io.BufferedIOBase)
            assert stream.read(10) == MEMBERS[ref.name][:10]
            stream.seek(0)
            assert stream.read() == MEMBERS[ref.name]
        if ref.size and ref.method == method:
            with pytest.raises(zipfile.BadZipFile, match="CRC"):
                ref._replace(crc=ref.crc ^ 1).read()
            assert ref._replace(crc=ref.crc ^ 1).read(verify=False) == MEMBERS[ref.name]
            for wrong in ({"size": ref.size - 1}, {"size": ref.size + 1}, {"size": 2**62}, {"offset": 3}):
                with pytest.raises((zipfile.BadZipFile, EOFError)):
                    ref._replace(**wrong).read()
            for call in (EntryRef.read, EntryRef.open):
                with pytest.raises(OverflowError):
                    call(ref._replace(size=-1))


def test_of_one_name_each_member_has_its_ref(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(archive([M("a", b"first"), M("a", b"second", STORED)], prefix=b"prefix"))
    with ZipFile(path) as zf:
        assert [ref.read() for ref in zf.refs()] == [b"first", b"second"]


def test_long_local_extra_fields(tmp_path):
    path = tmp_path / "a.zip"
    extra = struct.pack("<HH", 0x9999, 60_000) + b"e" * 60_000
    path.write_bytes(archive([M("n" * 5000, text(3000), extra=extra, central_extra=b"")]))
    with ZipFile(path) as zf:
        assert zf.refs()[0].read() == zf.read("n" * 5000) == text(3000)


# ---------------------------------------------------------------------- scan


def test_scan(tmp_path):
    one = pack(tmp_path / "one.zip", {"a.json": b"1", "sub/b.json": b"2", "c.txt": b"3"})
    two = pack(tmp_path / "two.zip", {"d.json": b"4", "E.JSON": b"5"})
    (tmp_path / "not.txt").write_bytes(b"")
    wanted = {b"1", b"2", b"4"}
    for paths in (tmp_path, str(tmp_path), os.fsencode(tmp_path), tmp_path / "*.zip", str(tmp_path / "*.zip"),
                  [one, two], iter([str(one), two]), [tmp_path]):  # fmt: skip
        assert {ref.read() for ref in scan(paths, "*.json")} == wanted
    assert [ref.name for ref in scan(one)] == ["a.json", "sub/b.json", "c.txt"]
    assert [ref.name for ref in scan(one, "sub/*")] == ["sub/b.json"]
    assert [ref.name for ref in scan(one, "b.json")] == []
    assert scan(tmp_path / "none*.zip") == []
    assert scan([]) == []
    with pytest.raises(FileNotFoundError):
        scan(tmp_path / "missing.zip")
    with pytest.raises(zipfile.BadZipFile):
        scan(tmp_path / "not.txt")
    for ref in scan(one, portable=True):
        assert ref.fingerprint == (one.stat().st_size,)
    odd = pack(tmp_path / "odd[1].zip", {"o": b"6"})
    assert [ref.name for ref in scan(odd)] == ["o"]


def test_scan_urls():
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", DEFLATED) as zf:
        for name, content in MEMBERS.items():
            zf.writestr(name, content)
    for name in ("zips/one.zip", "zips/two.zip"):
        fs.pipe("/" + name, data.getvalue())
    try:
        for paths, count in (("memory://zips/one.zip", 1), ("memory://zips/*.zip", 2), ("memory://zips", 2)):
            refs = scan(paths)
            assert len(refs) == count * len(MEMBERS)
            assert refs[0].path in ("memory://zips/one.zip", "memory:///zips/one.zip")
            for ref in refs:
                ref = pickle.loads(pickle.dumps(ref))
                assert ref.read() == MEMBERS[ref.name]
                with ref.open() as member:
                    assert member.read() == MEMBERS[ref.name]
            assert refs[0].fingerprint[0] == len(data.getvalue())
        portable = scan("memory://zips/one.zip", portable=True)[0]
        fs.pipe("/zips/one.zip", data.getvalue() + b"x")
        with pytest.raises(OSError, match="changed"):
            refs[0].read()
        with pytest.raises(OSError, match="changed"):
            portable.read()
    finally:
        fs.rm("/zips", recursive=True)


# ----------------------------------------------------------------- partition


def ref(path: str, offset: int, size: int) -> EntryRef:
    return EntryRef(path, (1,), f"{path}{offset}", offset, size, size, 0, 0)


def test_partition():
    refs = [ref("b", 30, 10), ref("a", 20, 10), ref("b", 10, 10), ref("a", 10, 10), ref("c", 0, 100)]
    parts = partition(refs, 20)
    assert [[(r.path, r.offset) for r in part] for part in parts] == [
        [("b", 10), ("b", 30)],
        [("a", 10), ("a", 20)],
        [("c", 0)],
    ]
    assert partition([], 5) == []
    assert sum(partition(iter(refs), 1), []) == sum(parts, [])
    assert len(partition(refs)) == 1
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="target_bytes"):
            partition(refs, wrong)


def test_partition_is_whole_and_bounded(rng):
    refs = [ref(f"p{rng.randrange(5)}", i, rng.randrange(2000)) for i in range(500)]
    parts = partition(refs, 5000)
    assert sorted(r for part in parts for r in part) == sorted(refs)
    for part in parts:
        assert sum(r.size for r in part) <= 5000 or len(part) == 1
    offsets: dict[str, int] = {}
    for r in sum(parts, []):
        assert offsets.get(r.path, -1) < r.offset
        offsets[r.path] = r.offset


@pytest.mark.parametrize("profile", ["safe", "strict"])
def test_what_a_profile_refuses_has_no_refs(tmp_path, path, profile):
    with pyio_chunked.ZipFile(path, profile=profile) as zf, pyio_chunked.ZipFile(path) as compat:
        assert zf.refs() == compat.refs()
    with pytest.raises(ValueError, match="closed"):
        zf.refs()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as new:
        new.writestr("good", b"1")
        new.writestr("../bad", b"2")
    with pyio_chunked.ZipFile(tmp_path / "a.zip", profile=profile) as zf:
        assert zf.read("good") == b"1"
        with pytest.raises(zipfile.BadZipFile, match=r"'\.\./bad'.* is refused"):
            zf.refs()


def test_crc_of_refs(path):
    assert all(zlib.crc32(r.read()) == r.crc for r in scan(path))
