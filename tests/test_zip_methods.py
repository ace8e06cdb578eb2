# SPDX-License-Identifier: MIT
"""Members by every method, encrypted or not, beside zipfile."""

from __future__ import annotations

import bz2
import io
import lzma
import shutil
import struct
import subprocess
import zipfile
import zlib
from pathlib import Path

import pytest
from hostile_build import BZIP2, DEFLATED, ENCRYPTED, LZMA, STORED, STREAMED, M, archive, deflate

from pyio_chunked import ZipFile, pool

ZSTD = 93
TEXT = b"".join(b"line %d of many, packed by several methods\n" % i for i in range(9000))


def crypt(data: bytes, password: bytes, check: int) -> bytes:
    """ZipCrypto, encrypting: for tests only."""
    table = [0] * 256
    for i in range(256):
        c = i
        for _ in range(8):
            c = c >> 1 ^ 0xEDB88320 * (c & 1)
        table[i] = c
    keys = [0x12345678, 0x23456789, 0x34567890]

    def update(byte: int) -> None:
        keys[0] = table[(keys[0] ^ byte) & 255] ^ keys[0] >> 8
        keys[1] = ((keys[1] + (keys[0] & 255)) * 134775813 + 1) & 0xFFFFFFFF
        keys[2] = table[(keys[2] ^ keys[1] >> 24) & 255] ^ keys[2] >> 8

    for byte in password:
        update(byte)
    out = bytearray()
    for byte in bytes(range(11)) + bytes([check]) + data:
        k = keys[2] | 2
        out.append(byte ^ (k * (k ^ 1)) >> 8 & 255)
        update(byte)
    return bytes(out)


def lzma_body(data: bytes) -> bytes:
    packer = zipfile.LZMACompressor()
    return packer.compress(data) + packer.flush()


def zstd_module():
    try:
        from compression import zstd
    except ImportError:
        zstd = pytest.importorskip("backports.zstd", reason="backports.zstd is not installed")
    return zstd


PACK = {STORED: bytes, DEFLATED: deflate, BZIP2: bz2.compress, LZMA: lzma_body}


def member(method: int, data: bytes, password: bytes = b"", **more) -> M:
    body = PACK[method](data)
    flags = 0
    if password:
        streamed = more.get("flags", 0) & STREAMED
        body = crypt(body, password, (12 << 11 | 34 << 5 | 28) >> 8 if streamed else zlib.crc32(data) >> 24)
        flags = ENCRYPTED
    return M("m", data, method, body=body, **{**more, "flags": flags | more.get("flags", 0)})


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("data", [b"", b"x", TEXT[:8192], TEXT], ids=len)
@pytest.mark.parametrize("method", sorted(PACK))
def test_what_zipfile_reads(tmp_path: Path, method: int, data: bytes, encrypted: bool):
    if encrypted and len(data) > 10000:
        data = data[:80000]  # encrypting in Python takes its time
    password = b"open sesame" if encrypted else b""
    path = tmp_path / "a.zip"
    path.write_bytes(archive([member(method, data, password)]))
    with zipfile.ZipFile(path) as reference:
        assert reference.read("m", password or None) == data
    for source in (path, io.BytesIO(path.read_bytes())):
        with ZipFile(source, profile="strict") as zf:
            assert zf.read("m", password) == data
            with zf.open("m", pwd=password) as f:
                assert f.readable() and f.seekable() and not f.writable()
                assert f.read1(10) == data[:10]
                assert f.read(7) == data[10:17] and f.tell() == min(17, len(data))
                assert f.seek(3) == min(3, len(data)) and f.read(5) == data[3:8]
                assert f.peek(1)[:1] == data[8:9]
                assert f.seek(-2, 2) == max(0, len(data) - 2) and f.read() == data[-2:]
                assert f.seek(0) == 0 and b"".join(f) == data
                with pytest.raises(io.UnsupportedOperation):
                    f.fileno()
            zf.setpassword(password or None)
            assert zf.testzip() is None
            assert dict(zf.read_many()) == {"m": data}
            buffer = bytearray(len(data) + 3)
            assert zf.readinto("m", buffer) == len(data) and buffer[: len(data)] == data
            zf.extractall(tmp_path / "out")
            assert (tmp_path / "out" / "m").read_bytes() == data
    assert pool.stats().in_use == 0


@pytest.mark.parametrize("method", sorted(PACK))
def test_passwords(method: int):
    blob = archive([member(method, TEXT[:3000], b"right"), M("plain", b"1")])
    with ZipFile(io.BytesIO(blob)) as zf, zipfile.ZipFile(io.BytesIO(blob)) as reference:
        for archive_ in (zf, reference):
            for call in (archive_.read, lambda name, pwd=None, z=archive_: z.open(name, pwd=pwd)):
                with pytest.raises(RuntimeError, match="is encrypted, password required"):
                    call("m")
                with pytest.raises(RuntimeError, match="Bad password for file"):
                    call("m", b"wrong")
                with pytest.raises(TypeError, match="pwd: expected bytes, got str"):
                    call("m", "right")
            assert archive_.read("plain", b"any") == b"1"


def test_the_check_byte_of_a_streamed_member_is_its_time():
    blob = archive([member(DEFLATED, TEXT[:3000], b"right", flags=STREAMED, descriptor="sI")])
    with ZipFile(io.BytesIO(blob)) as zf:
        assert zf.read("m", b"right") == TEXT[:3000]


def test_a_password_that_only_seems_right_is_found_by_the_crc():
    blob = archive([member(STORED, TEXT[:3000], b"right")])
    bad = 0
    with ZipFile(io.BytesIO(blob)) as zf:
        for i in range(2000):
            try:
                zf.read("m", b"%d" % i)
            except RuntimeError:
                pass
            except zipfile.BadZipFile:
                bad += 1
    assert bad > 0


def test_encrypted_members_of_another_program(tmp_path: Path):
    if shutil.which("zip") is None:
        pytest.skip("no Info-ZIP here")
    (tmp_path / "m").write_bytes(TEXT * 3)
    for option in ("-0", "-6"):
        subprocess.run(["zip", "-q", option, "-P", "pass", f"a{option}.zip", "m"], cwd=tmp_path, check=True)
        with ZipFile(tmp_path / f"a{option}.zip") as zf:
            assert zf.read("m", b"pass") == TEXT * 3
            with zf.open("m", pwd=b"pass") as f:
                assert b"".join(iter(lambda: f.read(1000), b"")) == TEXT * 3
                f.seek(12345)
                assert f.read(100) == (TEXT * 3)[12345:12445]


@pytest.mark.parametrize("cut", [0, 5, 11, 12])
def test_encrypted_and_cut(cut: int):
    m = member(STORED, b"12345", b"right")
    m.body, m.csize = m.body[:cut], cut
    with ZipFile(io.BytesIO(archive([m]))) as zf, pytest.raises((zipfile.BadZipFile, RuntimeError)):
        zf.read("m", b"right")


def test_zstd():
    zstd = zstd_module()
    body = zstd.compress(TEXT)
    with ZipFile(io.BytesIO(archive([M("m", TEXT, ZSTD, body=body)]))) as zf:
        assert zf.read("m") == TEXT
        with zf.open("m") as f:
            f.seek(5000)
            assert f.read(10) == TEXT[5000:5010]
    with ZipFile(io.BytesIO(archive([M("m", TEXT, ZSTD, body=b"rubbish" * 9)]))) as zf:
        with pytest.raises(zipfile.BadZipFile) as caught:
            zf.read("m")
        assert isinstance(caught.value, zstd.ZstdError)


def test_zstd_without_its_module(monkeypatch):
    import sys

    for name in ("compression", "compression.zstd", "backports", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with ZipFile(io.BytesIO(archive([M("m", TEXT, ZSTD, body=b"x" * 50)]))) as zf:
        with pytest.raises(NotImplementedError, match=r"pyio_chunked\[zstd\]"):
            zf.read("m")


@pytest.mark.parametrize("method", [BZIP2, LZMA])
@pytest.mark.parametrize(
    ("forged", "text"),
    [
        ({"crc": 1}, "CRC"),
        ({"size": 2999}, "found more"),
        ({"size": 3001}, "found 3000"),
        ({"size": 1 << 40}, "found"),
    ],
)
def test_what_is_wrong_with_it(method: int, forged: dict, text: str, tmp_path: Path):
    m = member(method, TEXT[:3000], **{k: v for k, v in forged.items() if k == "crc" or v < 1 << 32})
    if forged.get("size", 0) >= 1 << 32:
        m.central, m.central_extra = {"size": 0xFFFFFFFF}, struct.pack("<HHQ", 1, 8, forged["size"])
    with ZipFile(io.BytesIO(archive([m]))) as zf:
        with pytest.raises(zipfile.BadZipFile, match=text):
            zf.read("m")
        with pytest.raises(zipfile.BadZipFile, match=text), zf.open("m") as f:
            while f.read(512):
                pass
        with pytest.raises(zipfile.BadZipFile, match=text):
            zf.extractall(tmp_path / "in")
        if "crc" in forged:
            assert zf.read("m", verify=False) == TEXT[:3000]
        assert zf.testzip() == "m"
    assert list((tmp_path / "in").iterdir()) == []


@pytest.mark.parametrize("method", [BZIP2, LZMA])
def test_broken_data_is_what_both_callers_catch(method: int):
    body = bytearray(PACK[method](TEXT))
    body[len(body) // 2 :] = b"\xff" * (len(body) - len(body) // 2)
    with ZipFile(io.BytesIO(archive([M("m", TEXT, method, body=bytes(body))]))) as zf:
        with pytest.raises(zipfile.BadZipFile) as caught:
            zf.read("m")
    assert isinstance(caught.value, (OSError, lzma.LZMAError)) or "CRC" in str(caught.value)


def test_an_lzma_dictionary_is_no_ticket_to_memory():
    """A header that asks for 4 GiB of dictionary: the member's size is the bound."""
    body = bytearray(lzma_body(TEXT))
    body[5:9] = b"\xff\xff\xff\xff"
    code = (
        "import io, os, resource, sys\nfrom pyio_chunked import ZipFile\n"
        "zf = ZipFile(io.BytesIO(sys.stdin.buffer.read()))\n"
        # a sanitizer's shadow has no room below that
        "if os.environ.get('PYIO_TEST_BUILD') != 'sanitize':\n"
        "    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "print(len(zf.read('m')))"
    )
    import sys

    done = subprocess.run(
        [sys.executable, "-c", code],
        input=archive([M("m", TEXT, LZMA, body=bytes(body))]),
        capture_output=True,
        check=True,
    )
    assert int(done.stdout) == len(TEXT)


def test_a_method_that_nobody_knows():
    with ZipFile(io.BytesIO(archive([M("m", TEXT, 99, body=TEXT), M("n", b"1")]))) as zf:
        for call in (zf.read, zf.open):
            with pytest.raises(NotImplementedError, match="99"):
                call("m")
        assert zf.read("n") == b"1"
