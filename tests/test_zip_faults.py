# SPDX-License-Identifier: MIT
"""Every system call and allocation of the ZIP reader fails once: the right exception, nothing leaked, nothing lost."""

from __future__ import annotations

import errno
import functools
import gc
import io
import os
import zipfile

import pytest
from hostile_build import DEFLATED, STORED, M, archive
from zip_help import text

import pyio_chunked
from pyio_chunked import ZipFile

core = pyio_chunked._core
MEMBERS = {
    "empty": (b"", STORED),
    "small": (text(900), DEFLATED),
    "stored": (text(50_000, 1), STORED),
    "middle": (text(200_000, 2), DEFLATED),
    "large": (text(2_500_000, 3), DEFLATED),
    "caf\u00e9": (text(100), DEFLATED),
}
WANTED = {name: data for name, (data, _) in MEMBERS.items()}


@functools.cache
def packed() -> bytes:
    members = [
        M(name.encode("cp437") if name == "caf\u00e9" else name, data, method)
        for name, (data, method) in MEMBERS.items()
    ]
    return archive(members, comment=b"comment", prefix=b"prefix")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(packed())
    return path


@pytest.fixture(autouse=True)
def no_faults():
    yield
    core._fault_clear()


def read_all(zf):
    return {name: zf.read(name) for name in zf.namelist()}


def stream_all(zf):
    out = {}
    for name in zf.namelist():
        with zf.open(name) as member:
            out[name] = member.read(700) + b"".join(iter(lambda member=member: member.read(60_000), b""))
    return out


def into_all(zf):
    out = {}
    for info in zf.infolist():
        buffer = bytearray(info.file_size)
        zf.readinto(info, buffer)
        out[info.filename] = bytes(buffer)
    return out


def many(zf):
    return dict(zf.read_many(workers=2))


def check_all(zf):
    assert zf.testzip(workers=2) is None
    return WANTED


def by_refs(zf):
    return {ref.name: ref.read() for ref in zf.refs()}


USES = [read_all, stream_all, into_all, many, check_all, by_refs]


def once(path, use):
    with ZipFile(path) as zf:
        return use(zf)


def calls_made(path, use):
    core._fault_count()
    try:
        assert once(path, use) == WANTED
        return core._fault_calls()
    finally:
        core._fault_clear()


def open_descriptors():
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("call", ["malloc", "calloc", "realloc", "allow_result"])
def test_every_allocation_may_be_refused(path, use, call):
    pyio_chunked.pool.trim()
    assert once(path, use) == WANTED
    pyio_chunked.pool.trim()
    count = calls_made(path, use).get(call, 0)
    before = open_descriptors()
    failed = 0
    for k in range(1, count + 2):
        pyio_chunked.pool.trim()
        core._fault_add(call, error=errno.ENOMEM, first=k)
        try:
            assert once(path, use) == WANTED
        except MemoryError:
            failed += 1
        finally:
            core._fault_clear()
    assert failed or not count
    assert open_descriptors() == before
    assert once(path, use) == WANTED


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    "call, error", [("pread", errno.EIO), ("fstat", errno.EIO), ("openat", errno.EMFILE)]
)
def test_every_call_may_fail(path, use, call, error):
    count = calls_made(path, use).get(call, 0)
    before = open_descriptors()
    for k in range(1, count + 1):
        core._fault_add(call, error=error, first=k)
        try:
            assert once(path, use) == WANTED
        except OSError as failure:
            assert failure.errno == error  # noqa: PT017
            assert failure.filename == str(path)  # noqa: PT017
        finally:
            core._fault_clear()
    assert open_descriptors() == before


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("error", [errno.EAGAIN, errno.EOPNOTSUPP, errno.ENOSYS, errno.EIO])
def test_page_cache_that_says_no(path, use, error):
    """What can't be had without waiting is read with the GIL given up."""
    for first in (1, 2, 3):
        core._fault_add("pread_nowait", error=error, first=first, times=10_000)
        assert once(path, use) == WANTED
        core._fault_clear()


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("call", ["pread", "pread_nowait"])
@pytest.mark.parametrize("size", [1, 777, 20_000])
def test_short_counts(path, use, call, size):
    if size == 1 and use is not read_all:
        size = 100  # a byte a call takes its time
    core._fault_add(call, max_nbytes=size, times=1_000_000)
    assert once(path, use) == WANTED


@pytest.mark.parametrize("use", USES)
def test_interrupted_calls_are_made_again(path, use):
    count = calls_made(path, use).get("pread", 0)
    for k in range(1, count + 1):
        core._fault_add("pread", error=errno.EINTR, first=k, times=2)
        assert once(path, use) == WANTED
        core._fault_clear()


@pytest.mark.parametrize("use", [read_all, stream_all, into_all, many, by_refs])
def test_a_file_that_ends_early(path, use):
    count = calls_made(path, use).get("pread", 0)
    for k in range(1, count + 1):
        core._fault_add("pread", first=k, max_nbytes=0)
        try:
            assert once(path, use) == WANTED
        except (zipfile.BadZipFile, EOFError):
            pass
        finally:
            core._fault_clear()


def test_no_thread_can_be_started(path):
    core._fault_add("thread_start", error=errno.EAGAIN, times=1000)
    for use in (many, check_all):
        assert once(path, use) == WANTED


def test_no_random_keys(path):
    import subprocess
    import sys

    code = (
        "import sys, errno, pyio_chunked\n"
        "pyio_chunked._core._fault_add('getrandom', error=errno.ENOSYS, times=10)\n"
        "zf = pyio_chunked.ZipFile(sys.argv[1])\n"
        "assert all(name in zf and zf.getinfo(name).filename == name for name in zf.namelist())\n"
        "zf.close()\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)


def test_a_stream_goes_on_after_a_failed_read(path):
    with ZipFile(path) as zf:
        for name in ("stored", "large", "middle"):
            with zf.open(name) as member:
                data = member.read(1000)
                core._fault_add("pread", error=errno.EIO, first=1)
                core._fault_add("pread_nowait", error=errno.EAGAIN, first=1, times=100)
                try:
                    data += member.read(400_000)
                except OSError:
                    pass
                core._fault_clear()
                assert data + member.read() == WANTED[name]


def test_memory_beside_the_pool_is_given_back(path):
    with ZipFile(path) as zf:
        for use in (read_all, stream_all, many, check_all):
            use(zf)
        window = pyio_chunked.pool.stats().in_use
        assert window < 66_000  # over the neighbours of the last small member
        for _ in range(3):
            for use in (read_all, stream_all, many, check_all):
                use(zf)
        assert pyio_chunked.pool.stats().in_use == window
        bad = io.BytesIO(archive([M("a", text(700_000), crc=1), M("b", text(900), size=901)]))
        other = ZipFile(bad)
        for name in "ab":
            with pytest.raises(zipfile.BadZipFile):
                other.read(name)
            with other.open(name) as member, pytest.raises(zipfile.BadZipFile):
                while member.read(8192):
                    pass
        other.close()
        member = zf.open("large")
        member.read(10)
        assert pyio_chunked.pool.stats().in_use > window
        member.close()
        assert pyio_chunked.pool.stats().in_use == window
    assert pyio_chunked.pool.stats().in_use == 0
