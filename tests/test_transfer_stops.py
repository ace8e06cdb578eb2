# SPDX-License-Identifier: MIT
"""transfer: progress, signals, and what holds of it as a whole."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import pickle
import signal
import socket
import sys
import tempfile
import time

import pytest
from transfer_help import CHUNK, FILE_METHODS, KERNEL, Pipe, fault, file_of, noise

import pyio_chunked
from pyio_chunked import Transfer, probe, transfer

DATA = noise(3 * CHUNK + 77)


@pytest.fixture
def source(tmp_path):
    return file_of(tmp_path / "source", DATA)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "target"


class Reader:
    """Only read, at most `step` at a time."""

    def __init__(self, data: bytes, step: int = 1000) -> None:
        self.file, self.step = io.BytesIO(data), step

    def read(self, size: int = -1) -> bytes:
        return self.file.read(min(size, self.step) if size >= 0 else self.step)


# ------------------------------------------------------ progress, interruption


@pytest.mark.parametrize("method", FILE_METHODS)
def test_progress_ends_with_the_total(source, target, method):
    seen = []
    transfer(source, target, method=method, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(DATA), len(DATA))
    assert seen == sorted(seen)


def test_progress_without_a_known_total(target):
    pipe = Pipe(feed=DATA)
    seen = []
    transfer(pipe.r, target, progress=lambda done, total: seen.append((done, total)))
    pipe.done()
    assert seen[-1] == (len(DATA), None)
    seen.clear()
    out = io.BytesIO()
    transfer(Reader(DATA), out, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(DATA), None)
    seen.clear()
    transfer(io.BytesIO(DATA), out, 1000, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (1000, 1000)


@pytest.mark.parametrize("method", FILE_METHODS)
def test_progress_that_raises(tmp_path, target, method):
    source = file_of(tmp_path / "big", noise(1 << 20) * 40)

    def stop(done, total):
        reported.append(done)
        if done < total:
            raise KeyError("enough")

    reported: list[int] = []
    with pytest.raises(KeyError, match="enough") as caught:
        transfer(source, target, method=method, progress=stop)
    # What was moved is there, no more and no less.
    assert reported == [caught.value.transferred]
    assert caught.value.source_offset == caught.value.target_offset == reported[0]
    assert target.read_bytes() == source.read_bytes()[: reported[0]]


def test_progress_true_is_tqdm(source, target, capsys):
    pytest.importorskip("tqdm")
    assert transfer(source, target, progress=True).count == len(DATA)


@pytest.mark.parametrize("method", ["auto", *FILE_METHODS])
def test_signal_handler_that_raises_stops_in_time(tmp_path, method):
    """64 MiB at a time, until the handler's exception comes."""
    source = file_of(tmp_path / "big", noise(1 << 20) * 64)

    class Stop(Exception):
        pass

    def handler(*_):
        fired.append(time.monotonic())
        raise Stop

    fired: list[float] = []
    before = signal.signal(signal.SIGALRM, handler)
    try:
        with open(source, "rb") as one, tempfile.TemporaryFile(dir=tmp_path) as two:
            signal.setitimer(signal.ITIMER_REAL, 0.03)
            moved = 0
            with pytest.raises(Stop) as caught:
                while True:
                    moved = transfer(one, two, source_offset=0, target_offset=0, method=method).count
            del moved
            if hasattr(caught.value, "transferred"):
                n = caught.value.transferred
                assert 0 <= n <= 64 << 20
                assert os.pread(two.fileno(), n, 0) == source.read_bytes()[:n]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(fired) == 1


def test_signal_handler_that_returns_changes_nothing(tmp_path, target):
    source = file_of(tmp_path / "big", noise(1 << 20) * 64)
    fired = []
    before = signal.signal(signal.SIGALRM, lambda *_: fired.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        for method in ("auto", *FILE_METHODS):
            assert transfer(source, target, method=method).count == 64 << 20
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert fired
    assert target.read_bytes() == source.read_bytes()


@pytest.mark.parametrize("kind", ["pipe", "socket", "object"])
def test_signal_in_a_blocked_transfer(tmp_path, kind):
    """Nobody reads: the handler still gets through, and the count is right."""
    source = file_of(tmp_path / "big", noise(4 << 20))

    class Stop(Exception):
        pass

    def handler(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, handler)
    r, w = os.pipe() if kind != "socket" else (s.detach() for s in socket.socketpair())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        with pytest.raises(Stop) as caught:
            if kind == "object":
                transfer(io.BytesIO(source.read_bytes()), w)
            else:
                transfer(source, w)
        signal.setitimer(signal.ITIMER_REAL, 0)
        sent = caught.value.transferred
        assert 0 < sent < 4 << 20
        os.close(w)
        w = -1
        with open(r, "rb", closefd=False) as rest:
            assert rest.read() == source.read_bytes()[:sent]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        os.close(r)
        if w >= 0:
            os.close(w)


def test_bytes_read_from_a_pipe_are_not_lost(tmp_path):
    """What a pipe gave and the target didn't take is on the exception."""
    pipe = Pipe(feed=DATA[:50_000])
    pipe.thread.join()
    with fault("pwrite", error=errno.ENOSPC, first=1), pytest.raises(OSError) as caught:
        transfer(pipe.r, tmp_path / "target", method="chunked")
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.transferred == 0
    assert caught.value.source_offset is None
    assert caught.value.partial + os.read(pipe.r, 65536) == DATA[:50_000]
    pipe.done()


# ------------------------------------------------------------------ the rest


def test_memory_is_one_chunk(tmp_path, target):
    import tracemalloc

    source = file_of(tmp_path / "big", noise(1 << 20) * 32)
    pyio_chunked._core._fault_count()
    transfer(source, target, method="chunked")
    transfer(Reader(source.read_bytes(), 1 << 20), io.BytesIO())
    calls = pyio_chunked._core._fault_calls()
    assert calls.get("malloc", 0) <= 2  # one buffer, and it is reused
    tracemalloc.start()
    try:
        with open(source, "rb") as one:
            transfer(one, target, method="chunked")
        assert tracemalloc.get_traced_memory()[1] < 256 * 1024
    finally:
        tracemalloc.stop()


def inheritable() -> set[int]:
    found = set()
    for fd in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # the listing's own is closed by now
            if os.get_inheritable(fd):
                found.add(fd)
    return found


def test_audit_events_and_close_on_exec(source, target):
    events = []
    before, during = inheritable(), set()

    def hook(name, args):
        if active and name == "open":
            events.append((args[0], args[1], args[2] & ~os.O_CLOEXEC))

    active = True
    sys.addaudithook(hook)
    try:
        transfer(source, target, progress=lambda *_: during.update(inheritable()))
    finally:
        active = False
    assert (str(source), "r", os.O_RDONLY) in events
    assert (str(target), "w", os.O_WRONLY | os.O_CREAT | os.O_TRUNC) in events
    assert during == before


def test_probe(source, target, tmp_path):
    before = sorted(tmp_path.iterdir())
    direct = ("reflink", "copy_file_range", "sendfile") if KERNEL else ()
    assert probe(source, target) == (*direct, "chunked")
    big = tmp_path / "big"
    with open(big, "wb") as file:
        file.truncate(pyio_chunked.thresholds().mapped if pyio_chunked.thresholds().mapped < 1 << 40 else 0)
    with open(tmp_path / "append", "ab") as file:
        assert probe(source, file) == ("chunked",)
    r, w = os.pipe()
    assert probe(r, target) == (("splice", "chunked") if KERNEL else ("chunked",))
    assert probe(source, w) == (("splice", "sendfile", "chunked") if KERNEL else ("chunked",))
    os.close(r)
    os.close(w)
    assert probe(io.BytesIO(), target) == ("chunked",)
    with pytest.raises(FileNotFoundError):
        probe(tmp_path / "none", target)
    with pytest.raises(IsADirectoryError):
        probe(tmp_path, target)
    assert not target.exists()
    assert sorted(tmp_path.iterdir()) == sorted([*before, big, tmp_path / "append"])


def test_result_is_a_named_tuple(source, target):
    result = transfer(source, target, method="chunked")
    assert result._fields == ("count", "method", "holes", "fallbacks")
    assert repr(result) == f"Transfer(count={len(DATA)}, method='chunked', holes=0, fallbacks=())"
    assert pickle.loads(pickle.dumps(result)) == result
    assert result._replace(count=1).count == 1
    assert Transfer.__module__ == "pyio_chunked"


def test_four_gibibytes_by_every_method(tmp_path):
    """Past 2**32, of a sparse file; only the tail is data."""
    size = (4 << 30) + 12345
    source = tmp_path / "huge"
    with open(source, "wb") as file:
        file.truncate(size)
        file.seek(size - 5)
        file.write(b"tail!")
    for method in FILE_METHODS:
        target = tmp_path / method
        result = transfer(source, target, method=method, sparse="auto")
        assert result.count == size == target.stat().st_size
        assert result.method == method
        with open(target, "rb") as file:
            file.seek(-8, os.SEEK_END)
            assert file.read() == b"\0\0\0tail!"
        # And a range that crosses 2**32 itself.
        result = transfer(
            source, target, 20000, source_offset=size - 20000, target_offset=(1 << 32) - 10000, method=method
        )
        assert result.count == 20000
        with open(target, "rb") as file:
            file.seek((1 << 32) + 10000 - 5)
            assert file.read(5) == b"tail!"
        target.unlink()
