# SPDX-License-Identifier: MIT
"""Members of 16 to 64 MiB, inflated at once into memory that a worker makes ready."""

import errno
import os
import zipfile

import pytest

import pyio_chunked
from pyio_chunked import _core

SIZE = 20 << 20


@pytest.fixture(scope="module")
def plain():
    return b"".join(i.to_bytes(4, "little") + b"abcd" * (i % 5) for i in range(SIZE // 12))


@pytest.fixture(scope="module")
def archive(tmp_path_factory, plain):
    path = tmp_path_factory.mktemp("alone") / "large.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
        out.writestr("member", plain)
    return path


def read_into_fresh(archive):
    with pyio_chunked.ZipFile(archive) as zf:
        buffer = bytearray(zf.getinfo("member").file_size)
        assert zf.readinto("member", buffer) == len(buffer)
    return bytes(buffer)


def read(archive):
    with pyio_chunked.ZipFile(archive) as zf:
        return zf.read("member")


@pytest.mark.parametrize("way", [read, read_into_fresh])
def test_equals_what_was_packed(archive, plain, way):
    assert way(archive) == plain


def test_without_a_worker_and_without_its_call(archive, plain):
    for call in ("thread_start", "madvise"):
        _core._fault_add(call, errno.EINVAL, times=999)
        assert read(archive) == plain
        _core._fault_clear()


def test_no_memory_for_the_compressed_bytes(archive):
    with pyio_chunked.ZipFile(archive) as zf:
        buffer = bytearray(zf.getinfo("member").file_size)
        zf.readinto("member", buffer)  # what the pool keeps is there
        _core._fault_add("malloc", errno.ENOMEM, times=99)
        if pyio_chunked.build_info()["engines"]["whole"] == "libdeflate":
            with pytest.raises(MemoryError):
                zf.readinto("member", buffer)
        else:  # streamed
            assert zf.readinto("member", buffer) == len(buffer)


def another_byte(data):
    data[len(data) // 2] ^= 0x55


def a_gap(data):
    data[100_000 : len(data) // 2] = bytes(len(data) // 2 - 100_000)


@pytest.mark.parametrize("damage", [another_byte, a_gap])
def test_damage_is_found(archive, tmp_path, damage):
    data = bytearray(archive.read_bytes())
    damage(data)
    path = tmp_path / "damaged.zip"
    path.write_bytes(data)
    for way in (read, read_into_fresh):
        with pytest.raises(zipfile.BadZipFile):
            way(path)


def test_a_forged_crc_is_found(archive, tmp_path):
    data = bytearray(archive.read_bytes())
    at = data.rindex(b"PK\x01\x02") + 16
    data[at] ^= 1
    path = tmp_path / "forged.zip"
    path.write_bytes(data)
    with pytest.raises(zipfile.BadZipFile, match=r"(?i)crc"):
        read(path)
    with pyio_chunked.ZipFile(path) as zf:
        assert len(zf.read("member", verify=False)) == zf.getinfo("member").file_size


def test_an_interrupted_read_goes_on_behind_what_it_had(archive, plain):
    with pyio_chunked.ZipFile(archive) as zf:
        pieces = zf.getinfo("member").compress_size // 2**20 + 1
        buffer = bytearray(len(plain))
        for k in range(2, 2 * pieces, 2):
            _core._fault_add("pread", errno.EINTR, first=k)
        _core._fault_add("pread", max_nbytes=2**20, times=1000)
        zf.readinto("member", buffer)
        calls = _core._fault_calls()["pread"]
        _core._fault_clear()
        assert buffer == plain
        if pyio_chunked.build_info()["engines"]["whole"] == "libdeflate":
            assert calls <= 2 * pieces  # one for each interruption, one for each piece


def test_the_file_is_cut_meanwhile(archive, tmp_path):
    path = tmp_path / "cut.zip"
    path.write_bytes(archive.read_bytes())
    with pyio_chunked.ZipFile(path) as zf:
        os.truncate(path, 1_000_000)
        with pytest.raises((zipfile.BadZipFile, EOFError)):
            zf.read("member")
