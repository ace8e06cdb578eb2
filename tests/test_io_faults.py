# SPDX-License-Identifier: MIT
"""Every system call and allocation of io fails once, at every place where it is
made: EINTR and short counts change nothing, an error is told, nothing is lost."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyio_chunked
from pyio_chunked import _core

SIZE = 70_000  # several chunks of the size used here, and a rest
CHUNK = 16_384
BLOCK = bytes(range(256)) * 16


def content(length: int = SIZE) -> bytes:
    return b"".join(b"%07d\n" % i for i in range(length // 8))


DATA = content()
NEW = DATA[::-1]

# What a call may be made to fail with; the first kind changes nothing at all.
RETRIED = {"read", "pread", "pread_nowait", "write", "writev", "pwrite", "openat", "ftruncate", "fsync"}
RETRIED |= {"fdatasync"}
CUT = {"read", "pread", "pread_nowait", "write", "writev", "pwrite"}
# Failing these is no error: advice, a hint, a read-only file's close, a cleaner's work.
FREE_TO_FAIL = {"madvise", "pread_nowait", "thread_start", "readlinkat"}


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


class Folder:
    """A scenario's files, made anew for each run."""

    def __init__(self, path: Path) -> None:
        self.old = path / "old"
        self.new = path / "new"

    def reset(self) -> None:
        self.old.write_bytes(DATA)
        self.new.unlink(missing_ok=True)


def open_descriptor(number: int) -> Any:
    try:
        return pyio_chunked.open(number, chunk_size=CHUNK)
    except BaseException:
        os.close(number)  # not taken over
        raise


def scenario(function: Callable[[Folder], Any]) -> Callable[[Folder], Any]:
    SCENARIOS[function.__name__] = function
    return function


SCENARIOS: dict[str, Callable[[Folder], Any]] = {}


@scenario
def read_bytes_whole(folder):
    return pyio_chunked.read_bytes(folder.old) == DATA


@scenario
def read_bytes_small(folder):
    folder.new.write_bytes(b"small")
    return pyio_chunked.read_bytes(folder.new) == b"small"


@scenario
def read_bytes_of_a_pipe(folder):
    ours, theirs = os.pipe()
    try:
        os.write(theirs, DATA[:60_000])
        os.close(theirs)
        return pyio_chunked.read_bytes(ours) == DATA[:60_000]
    finally:
        os.close(ours)


@scenario
def read_bytes_of_proc(folder):
    return pyio_chunked.read_bytes("/proc/version").startswith(b"Linux")


@scenario
def read_into_buffer(folder):
    buffer = bytearray(SIZE)
    return pyio_chunked.read_into(folder.old, buffer) == len(DATA) and bytes(buffer[: len(DATA)]) == DATA


@scenario
def write_bytes_plain(folder):
    pyio_chunked.write_bytes(folder.new, NEW, sync=True)
    return folder.new.read_bytes() == NEW


@scenario
def write_bytes_over(folder):
    pyio_chunked.write_bytes(folder.old, NEW)
    return folder.old.read_bytes() == NEW


@scenario
def write_bytes_many(folder):
    pyio_chunked.write_bytes(folder.new, [NEW[:100], b"", NEW[100:]])
    return folder.new.read_bytes() == NEW


@scenario
def write_bytes_atomic(folder):
    pyio_chunked.write_bytes(folder.old, NEW, atomic=True, sync=True)
    return folder.old.read_bytes() == NEW


@scenario
def write_bytes_atomic_new(folder):
    pyio_chunked.write_bytes(folder.new, NEW, atomic=True)
    return folder.new.read_bytes() == NEW


@scenario
def reader(folder):
    with pyio_chunked.open(folder.old, chunk_size=CHUNK) as file:
        parts = [file.read(10), file.readline(), file.read1(100), file.peek()[:0], file.read(40_000)]
        buffer = bytearray(9_000)
        count = file.readinto(buffer)
        parts += [bytes(buffer[:count]), bytes(file.read_buffer(100)), file.read()]
        assert file.pread(20, 8) == DATA[8:28]
        file.seek(8)
        assert next(file) == DATA[8:16]
        os.fstat(file.fileno())
        return b"".join(parts) == DATA


@scenario
def reader_of_a_descriptor(folder):
    with open_descriptor(os.open(folder.old, os.O_RDONLY)) as file:
        parts = [file.read(10), file.readline(), file.read(40_000)]
        assert file.tell() == 40_016
        file.seek(-6, 1)
        assert file.read(6) == DATA[40_010:40_016]
        return b"".join([*parts, *file.chunks(1_000)]) == DATA


@scenario
def reader_of_a_pipe(folder):
    ours, theirs = os.pipe()
    os.write(theirs, DATA[:60_000])
    os.close(theirs)
    with open_descriptor(ours) as file:
        parts = [file.read(10), file.readline(), file.read1(100), file.read(30_000), file.read()]
        return b"".join(parts) == DATA[:60_000]


@scenario
def writer(folder):
    with pyio_chunked.open(folder.new, "wb", chunk_size=CHUNK) as file:
        file.write(NEW[:100])
        file.writelines([NEW[100:200], NEW[200:300]])
        file.write(NEW[300:50_000])
        file.flush()
        file.write(NEW[50_000:])
        assert file.tell() == len(NEW)
        file.sync()
        file.sync(data_only=True)
        file.pwrite(NEW[:10], 0)
    return folder.new.read_bytes() == NEW


@scenario
def updater(folder):
    with pyio_chunked.open(folder.old, "r+b", chunk_size=CHUNK) as file:
        assert file.read(100) == DATA[:100]
        file.write(b"x" * 100)
        assert file.read(100) == DATA[200:300]
        file.seek(0)
        assert file.readline() == DATA[:8]
        file.truncate(1_000)
    return folder.old.read_bytes() == DATA[:100] + b"x" * 100 + DATA[200:1_000]


@scenario
def appender(folder):
    with pyio_chunked.open(folder.old, "ab", chunk_size=CHUNK) as file:
        assert file.tell() == len(DATA)
        file.write(b"end")
    return folder.old.read_bytes() == DATA + b"end"


def calls_of(function: Callable[[Folder], Any], folder: Folder) -> dict[str, int]:
    folder.reset()
    _core._fault_count()
    assert function(folder)
    calls = _core._fault_calls()
    _core._fault_clear()
    return dict(calls)


@pytest.fixture
def folder(tmp_path):
    pyio_chunked._core._fault_clear()
    return Folder(tmp_path)


def places(calls: dict[str, int], names: set[str]) -> list[tuple[str, int]]:
    return [(name, k) for name, count in calls.items() if name in names for k in range(1, count + 1)]


@pytest.mark.parametrize("name", SCENARIOS)
def test_interrupted_and_short_calls_change_nothing(name, folder):
    function, calls = SCENARIOS[name], calls_of(SCENARIOS[name], folder)
    assert calls
    before = descriptors()
    for call, k in places(calls, RETRIED):
        folder.reset()
        _core._fault_add(call, error=errno.EINTR, first=k)
        assert function(folder), (call, k)
        _core._fault_clear()
    for call, k in places(calls, CUT):
        for most in (1, 1_000):
            folder.reset()
            _core._fault_add(call, max_nbytes=most, first=k, times=3)
            assert function(folder), (call, k, most)
            _core._fault_clear()
    assert descriptors() == before
    assert len(os.listdir(folder.old.parent)) <= 2


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_error_is_told_and_nothing_stays_open(name, folder):
    function, calls = SCENARIOS[name], calls_of(SCENARIOS[name], folder)
    before = descriptors()
    for call, k in places(calls, set(calls)):
        error = errno.ENOMEM if call in ("malloc", "calloc", "realloc", "allow_result") else errno.EIO
        folder.reset()
        _core._fault_add(call, error=error, first=k)
        try:
            done = function(folder)
        except MemoryError:
            assert error == errno.ENOMEM, (call, k)
        except OSError as failure:
            assert failure.errno == error, (call, k)
            assert failure.filename is not None, (call, k)
        else:
            assert done, (call, k)
            assert call in FREE_TO_FAIL or is_harmless(name, call), (call, k)
        finally:
            _core._fault_clear()
        assert descriptors() == before, (call, k)
        names = os.listdir(folder.old.parent)
        assert all(name in ("old", "new") for name in names), (call, k)
        if "atomic" in name:
            assert folder.old.read_bytes() in (DATA, NEW), (call, k)


def is_harmless(name: str, call: str) -> bool:
    """Calls that only help: a size asked as a hint, a close behind all that was
    read, a chunk that one read can do without, the first try of two."""
    if name.startswith("read_"):
        return call in ("close", "fstat", "pread", "malloc")
    if name == "write_bytes_atomic" and call == "close":
        return True  # the folder's, behind its fsync
    return call in ("fstat", "lseek", "malloc")


# ------------------------------------------------------------ nothing is lost


def failing_reads() -> list[Any]:
    return [
        pytest.param(lambda f: f.read(), id="read"),
        pytest.param(lambda f: f.read(50_000), id="read-n"),
        pytest.param(lambda f: f.readinto(bytearray(50_000)), id="readinto"),
        pytest.param(lambda f: f.readline(), id="readline"),
        pytest.param(lambda f: f.read_buffer(50_000), id="read_buffer"),
        pytest.param(lambda f: list(f.chunks(50_000)), id="chunks"),
    ]


@pytest.mark.parametrize("attempt", failing_reads())
@pytest.mark.parametrize("kind", ["path", "descriptor", "pipe"])
@pytest.mark.parametrize("after", [1, 2, 3])
def test_what_arrived_before_an_error_comes_next(kind, attempt, after, folder):
    data = b"x" * 60_000  # one line longer than any chunk
    folder.old.write_bytes(data)
    if kind == "pipe":
        ours, theirs = os.pipe()
        os.write(theirs, data)
        os.close(theirs)
        source: Any = ours
    else:
        source = folder.old if kind == "path" else os.open(folder.old, os.O_RDONLY)
    with pyio_chunked.open(source, chunk_size=4_096) as file:
        assert file.read(10) == data[:10]
        for call in ("read", "pread", "pread_nowait"):
            _core._fault_add(call, max_nbytes=3_000, first=1, times=after)
            _core._fault_add(call, error=errno.EIO, first=after + 1, times=50)
        with pytest.raises(OSError) as failure:
            attempt(file)
        _core._fault_clear()
        assert failure.value.errno == errno.EIO
        assert 0 < failure.value.transferred <= 50_000
        if kind != "pipe":
            assert file.tell() == 10
        assert file.read() == data[10:]


@pytest.mark.parametrize("attempt", [lambda f: f.read(), lambda f: f.readline()], ids=["read", "readline"])
def test_no_memory_loses_nothing(attempt, folder):
    ours, theirs = os.pipe()
    data = b"y" * 60_000
    os.write(theirs, data)
    os.close(theirs)
    with pyio_chunked.open(ours, chunk_size=4_096) as file:
        file.read(10)
        _core._fault_add("allow_result", error=errno.ENOMEM, first=2, times=9)
        with pytest.raises(MemoryError) as failure:
            attempt(file)
        _core._fault_clear()
        assert failure.value.transferred > 0
        assert file.read() == data[10:]


def test_partial_of_a_pipe(folder):
    ours, theirs = os.pipe()
    os.write(theirs, DATA[:50_000])
    os.close(theirs)
    _core._fault_add("read", max_nbytes=5_000, times=2)
    _core._fault_add("read", error=errno.EIO, first=3)
    with pytest.raises(OSError) as failure:
        pyio_chunked.read_bytes(ours)
    assert failure.value.partial == DATA[:10_000]
    assert failure.value.transferred == 10_000
    assert os.read(ours, 100) == DATA[10_000:10_100]
    os.close(ours)


def test_a_failed_flush_keeps_what_was_not_written(folder):
    file = pyio_chunked.open(folder.new, "wb", chunk_size=CHUNK)
    file.write(NEW[:10_000])
    _core._fault_add("write", max_nbytes=4_000)
    _core._fault_add("write", error=errno.ENOSPC, first=2)
    with pytest.raises(OSError) as failure:
        file.flush()
    assert failure.value.errno == errno.ENOSPC
    assert failure.value.filename == str(folder.new)
    assert file.tell() == 10_000
    file.write(NEW[10_000:15_000])
    file.close()
    assert folder.new.read_bytes() == NEW[:15_000]


def test_a_failed_write_says_how_far_it_came(folder):
    with pyio_chunked.open(folder.new, "wb", chunk_size=CHUNK) as file:
        file.write(b"before")
        _core._fault_add("write", max_nbytes=20_000, first=2)
        _core._fault_add("write", error=errno.ENOSPC, first=3)
        with pytest.raises(OSError) as failure:
            file.write(NEW)
        assert failure.value.transferred == 20_000
        assert file.tell() == 20_006
        file.write(NEW[20_000:])
    assert folder.new.read_bytes() == b"before" + NEW


def test_close_closes_though_the_flush_fails(folder):
    before = descriptors()
    file = pyio_chunked.open(folder.new, "wb")
    file.write(b"x")
    _core._fault_add("write", error=errno.ENOSPC, times=9)
    with pytest.raises(OSError):
        file.close()
    assert file.closed
    file.close()
    assert descriptors() == before


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("k", [1, 2])
def test_write_bytes_leaves_what_something_reached(error, k, folder):
    _core._fault_add("write", max_nbytes=100)
    _core._fault_clear() if k == 1 else None
    _core._fault_add("write", error=error, first=k)
    with pytest.raises(OSError) as failure:
        pyio_chunked.write_bytes(folder.new, NEW)
    assert failure.value.transferred == (0 if k == 1 else 100)
    assert folder.new.exists() == (k == 2)


def test_write_bytes_never_removes_what_was_there(folder):
    folder.old.write_bytes(DATA)
    _core._fault_add("write", error=errno.EIO)
    with pytest.raises(OSError):
        pyio_chunked.write_bytes(folder.old, NEW)
    assert folder.old.exists()


def test_a_write_that_moves_nothing_ends(folder):
    """Some drivers answer 0; asking again would never end."""
    _core._fault_add("write", max_nbytes=0, times=1000)
    with pytest.raises(OSError) as failure:
        pyio_chunked.write_bytes(folder.new, NEW)
    assert failure.value.errno == errno.ENOSPC
