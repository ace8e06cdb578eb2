# SPDX-License-Identifier: MIT
"""What open archives, open members and long streams keep, measured from outside: each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from hostile_build import DEFLATED, MAX32, STORED, M, archive, deflate, zip64_extra
from zip_help import text

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mallinfo2 and /proc are Linux's")

PRELUDE = """
import ctypes, gc, resource, sys, zipfile, zlib
import pyio_chunked
path, arguments = sys.argv[1], sys.argv[2:]

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

libc = ctypes.CDLL(None)
try:
    libc.mallinfo2.restype = Info
    def used():
        info = libc.mallinfo2()
        return info.uordblks + info.hblkhd
except AttributeError:      # musl: what the kernel sees
    def used():
        return resident()

def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))

def blocks():
    # Python's small objects lie in arenas that mallinfo2 doesn't see into.
    return sys.getallocatedblocks()

def settle():
    gc.collect()
    return used()
"""


@pytest.fixture
def run(tmp_path):
    def run(path: Path, code: str, *arguments: object) -> str:
        script = tmp_path / "script.py"
        script.write_text(PRELUDE + code)
        done = subprocess.run(
            [sys.executable, str(script), str(path), *map(str, arguments)],
            env={**__import__("os").environ, "PYTHONMALLOC": "malloc"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def archive_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("memory") / "a.zip"
    packed = {}
    for kind in range(20):
        body = text(60_000 if kind % 2 else 300_000, kind)
        packed[kind] = (body, deflate(body, 1))
    path.write_bytes(
        archive([M(f"member{i}", packed[i % 20][0], body=packed[i % 20][1]) for i in range(1000)])
    )
    return path


def test_a_thousand_members_opened_and_not_read(run, archive_path):
    run(
        archive_path,
        """
zf = pyio_chunked.ZipFile(path)
names = zf.namelist()
zf.open(names[0]).close()
before = settle()
members = [zf.open(name) for name in names]
grown = settle() - before
assert grown <= 1 << 20, grown
assert pyio_chunked.pool.stats().in_use == 0
for member in members: member.close()
""",
    )


def test_a_thousand_members_that_have_each_read_ten_bytes(run, archive_path):
    run(
        archive_path,
        """
zf = pyio_chunked.ZipFile(path)
names = zf.namelist()
before = settle()
members = [zf.open(name) for name in names]
heads = [member.read(10) for member in members]
grown = settle() - before
assert grown <= 48_000 * 1000, grown
crcs = {info.filename: info.CRC for info in zf.infolist()}
for name, head, member in list(zip(names, heads, members))[::37]:
    assert zlib.crc32(head + member.read()) == crcs[name]
for member in members: member.close()
pyio_chunked.pool.trim()
assert pyio_chunked.pool.stats().in_use == 0
""",
    )


def test_whole_members_stay_under_the_pools_limit(run, archive_path):
    run(
        archive_path,
        """
zf = pyio_chunked.ZipFile(path)
names = [name for name in zf.namelist()][1::2]
pyio_chunked.pool.set_limit(4 << 20)
members = [zf.open(name) for name in names]
for member in members[:60]: member.read(10)
in_use = pyio_chunked.pool.stats().in_use
assert in_use <= 4 << 20, in_use
assert in_use > 3 << 20, in_use
for member in members: member.close()
assert pyio_chunked.pool.stats().in_use == 0
""",
    )


@pytest.mark.own_memory
def test_streaming_a_gigabyte(run, tmp_path):
    """Made of one block that is repeated: nobody has to deflate a gigabyte."""
    path = tmp_path / "big.zip"
    piece = b"".join(b"%d lines of text, %d\n" % (i, i * 7) for i in range(50_000))[: 1 << 20]
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    block = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    crc = 0
    for _ in range(1024):
        crc = zlib.crc32(piece, crc)
    stored = piece * 64
    path.write_bytes(
        archive(
            [
                M("deflated", body=block * 1024 + deflate(b""), crc=crc, size=1 << 30),
                M("stored", stored, STORED),
            ]
        )
    )
    del stored
    run(
        path,
        """
zf = pyio_chunked.ZipFile(path)
for name in zf.namelist():
    before = settle()
    kept = resident()
    with zf.open(name) as member:
        n, most = 0, 0
        while piece := member.read(65536):
            n += len(piece)
            most = max(most, used() - before)
        assert n == zf.getinfo(name).file_size
    with zf.open(name) as member:
        buffer = bytearray(300_000)
        before = used()
        while member.readinto(buffer):
            most = max(most, used() - before)
    assert most <= 2 << 20, most
    assert resident() - kept <= 4 << 20
""",
    )


def test_a_hundred_thousand_members(run, tmp_path):
    path = tmp_path / "many.zip"
    path.write_bytes(archive([M(f"folder{i % 100}/member{i}", b"", STORED) for i in range(100_000)]))
    run(
        path,
        """
pyio_chunked.ZipFile(path).close()
before = settle()
zf = pyio_chunked.ZipFile(path)
grown = settle() - before
directory = __import__("os").path.getsize(path) - zf.start_dir
assert len(zf) == 100_000 and "folder50/member50" in zf and zf.read("folder50/member50") == b""
assert grown <= directory + 40 * 100_000 + 65536, (grown, directory)
""",
    )


def test_no_inflate_state_is_allocated_after_warm_up(run, archive_path):
    run(
        archive_path,
        """
core = pyio_chunked._core
zf = pyio_chunked.ZipFile(path)
names = zf.namelist()[:200]
def use():
    for name in names:
        zf.read(name)
        with zf.open(name) as member:
            while member.read(8192): pass
use()
stats = pyio_chunked.pool.stats()
core._fault_count()
before = settle()
use()
calls = core._fault_calls()
core._fault_clear()
assert pyio_chunked.pool.stats().misses == stats.misses
assert not calls.get("malloc") and not calls.get("calloc") and not calls.get("realloc"), calls
assert abs(settle() - before) < 4096
""",
    )


def test_no_native_inflate_call_without_input(run, archive_path):
    run(
        archive_path,
        """
core = pyio_chunked._core
zf = pyio_chunked.ZipFile(path)
for name in zf.namelist()[:100]:
    zf.read(name)
    for size in (1000, 8192, 100_000):
        with zf.open(name) as member:
            while member.read(size): pass
            member.read(); member.read(5); member.peek()
counts = core._inflate_counts()
with_input, without = counts if isinstance(counts, tuple) else (counts["with_input"], counts["without_input"])
assert with_input > 0
assert without * 20 < with_input, counts     # those had output held back
""",
    )


@pytest.mark.own_memory
def test_forged_sizes_take_no_memory(run, tmp_path):
    body = text(3000)
    members = []
    for method in (STORED, DEFLATED):
        packed = body if method == STORED else deflate(body)
        for size in (1 << 31, 1 << 40, (1 << 63) - 1):
            for field in ("size", "csize"):
                member = M(f"{method}-{size}-{field}", body, method, body=packed)
                member.central = {field: MAX32}
                member.central_extra = zip64_extra(size)
                members.append(member)
    path = tmp_path / "forged.zip"
    path.write_bytes(archive(members))
    run(
        path,
        """
import warnings
resource.setrlimit(resource.RLIMIT_AS, (resident() + (600 << 20), resource.RLIM_INFINITY))
zf = pyio_chunked.ZipFile(path)
for name in zf.namelist():
    for call in (lambda: zf.read(name), lambda: list(zf.read_many([name])), lambda: zf.open(name).read(2**40)):
        try:
            call()
        except (zipfile.BadZipFile, EOFError):
            pass
        else:
            raise AssertionError(name)
""",
    )
