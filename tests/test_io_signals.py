# SPDX-License-Identifier: MIT
"""Signals during long and blocking calls: a handler that raises gets through
with `transferred` and nothing lost, one that returns changes nothing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pyio_chunked

LARGE = 1 << 30  # a sparse file: no disk, but time to read


class Alarm(Exception):
    pass


@contextmanager
def alarm(handler: Callable[..., Any], delay: float = 0.02, interval: float = 0.0) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, delay, interval)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def raising(number: int, frame: Any) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    raise Alarm


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("signals") / "large"
    with open(path, "wb") as file:
        file.truncate(LARGE)
        file.seek(LARGE - 3)
        file.write(b"end")
    yield path
    path.unlink()


def interrupted(call: Callable[[], Any]) -> Alarm:
    """The exception that stopped the call; a shorter delay until one does."""
    delay = 0.02
    while delay > 1e-4:
        with alarm(raising, delay), pytest.raises(Alarm) as caught:
            call()
            delay /= 2
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Alarm
        if hasattr(caught.value, "transferred"):
            return caught.value
    raise AssertionError("the call was over each time before the signal came")


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_read_bytes(threads, large):
    error = interrupted(lambda: pyio_chunked.read_bytes(large, threads=threads))
    assert 0 <= error.transferred < LARGE


@pytest.mark.parametrize("threads", [1, 2])
def test_read_into(threads, large):
    buffer = bytearray(LARGE)
    error = interrupted(lambda: pyio_chunked.read_into(large, buffer, threads=threads))
    assert 0 <= error.transferred < LARGE
    buffer.extend(b"x")  # its export was given back


@pytest.mark.parametrize("positional", [True, False])
def test_read_keeps_the_position(positional, large):
    source = large if positional else os.open(large, os.O_RDONLY)
    with pyio_chunked.open(source) as file:
        file.seek(10)
        error = interrupted(lambda: (file.seek(10), file.read()))
        assert 0 <= error.transferred < LARGE
        assert file.tell() == 10
        file.seek(-5, 2)
        assert file.read() == b"\0\0end"


def test_a_handler_that_returns_changes_nothing(large):
    seen = []
    with alarm(lambda *_: seen.append(1), 0.001, 0.001), pyio_chunked.open(large) as file:
        assert file.readinto(bytearray(64 << 20)) == 64 << 20
        file.seek(-(64 << 20), 2)
        assert file.read()[-4:] == b"\0end"
        assert len(pyio_chunked.read_bytes(large, size=100 << 20, threads=2)) == 100 << 20
    assert seen


def test_write_says_what_reached_the_file(tmp_path):
    data = bytes(256 << 20)
    path = tmp_path / "file"
    with pyio_chunked.open(path, "wb") as file:
        file.write(b"x")

        def call() -> None:
            file.seek(1)
            file.truncate()
            file.write(data)

        error = interrupted(call)
        assert file.tell() == 1 + error.transferred
        assert os.fstat(file.fileno()).st_size == 1 + error.transferred
        file.truncate(0)


def test_write_bytes_atomic_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    data = bytes(256 << 20)

    def call() -> None:
        pyio_chunked.write_bytes(path, data, atomic=True)
        path.write_bytes(b"old")

    interrupted(call)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


# ---------------------------------------------------- calls that would not end


def pipe_reader(chunk: int = 262144) -> tuple[Any, int]:
    ours, theirs = os.pipe()
    return pyio_chunked.open(ours, chunk_size=chunk), theirs


BLOCKED: list[Any] = [
    pytest.param(lambda f: f.read(100_000), 8, id="read-n"),
    pytest.param(lambda f: f.read(), 8, id="read"),
    pytest.param(lambda f: f.readinto(bytearray(100_000)), 8, id="readinto"),
    pytest.param(lambda f: f.readline(), 8, id="readline"),
    pytest.param(lambda f: f.read_buffer(100_000), 8, id="read_buffer"),
    pytest.param(lambda f: f.read(10), 8, id="read-small"),
]


@pytest.mark.parametrize("call, arrived", BLOCKED)
def test_blocked_reader_loses_nothing(call, arrived, tmp_path):
    file, theirs = pipe_reader()
    with file:
        os.write(theirs, b"arrived ")
        with alarm(raising), pytest.raises(Alarm) as caught:
            call(file)
        assert caught.value.transferred == arrived
        os.write(theirs, b"later\n")
        os.close(theirs)
        assert file.readline() == b"arrived later\n"
        assert file.read() == b""


@pytest.mark.parametrize("name", ["read1", "readinto1", "peek"])
def test_blocked_single_call(name):
    file, theirs = pipe_reader()
    with file:
        argument = bytearray(10) if name == "readinto1" else 10
        with alarm(raising), pytest.raises(Alarm):
            getattr(file, name)(argument)
        os.close(theirs)


def test_blocked_read_bytes_leaves_partial():
    ours, theirs = os.pipe()
    os.write(theirs, b"arrived")
    with alarm(raising), pytest.raises(Alarm) as caught:
        pyio_chunked.read_bytes(ours)
    assert (caught.value.partial, caught.value.transferred) == (b"arrived", 7)
    os.close(ours)
    os.close(theirs)


def test_blocked_reader_waits_through_signals():
    """PEP 475: the handler runs, the call goes on."""
    file, theirs = pipe_reader()
    seen = []

    def handler(*_: Any) -> None:
        seen.append(1)
        if len(seen) == 3:
            os.write(theirs, b"x" * 1000)
            os.close(theirs)

    with file, alarm(handler, 0.01, 0.01):
        assert file.read(1 << 20) == b"x" * 1000
    assert len(seen) >= 3


def test_full_pipe_says_what_was_written():
    ours, theirs = os.pipe()
    with pyio_chunked.open(theirs, "wb", chunk_size=1000) as file:
        with alarm(raising), pytest.raises(Alarm) as caught:
            file.write(bytes(10 << 20))
        moved = caught.value.transferred
        assert 0 < moved < 10 << 20
        got = 0
        while got < moved:
            got += len(os.read(ours, moved - got))
        assert file.write(b"small") == 5
        file.flush()
        assert os.read(ours, 100) == b"small"
    os.close(ours)


def test_full_pipe_with_pending_bytes():
    ours, theirs = os.pipe()
    with pyio_chunked.open(theirs, "wb", chunk_size=1 << 20) as file:
        file.write(b"p" * 200_000)
        with alarm(raising), pytest.raises(Alarm):
            file.flush()
        received = bytearray()

        def drain() -> None:
            while piece := os.read(ours, 1 << 20):
                received.extend(piece)

        thread = threading.Thread(target=drain)
        thread.start()
        file.write(b"q")
    thread.join()
    assert received == b"p" * 200_000 + b"q"
    os.close(ours)


def test_many_buffers_to_a_full_pipe():
    ours, theirs = os.pipe()
    with alarm(raising), pytest.raises(Alarm) as caught:
        pyio_chunked.write_bytes(theirs, [bytes(1000)] * 1000)
    moved = caught.value.transferred
    os.close(theirs)
    assert len(pyio_chunked.read_bytes(ours)) == moved > 0
    os.close(ours)


def test_a_handler_that_uses_the_same_file_is_told():
    file, theirs = pipe_reader()
    failures: list[BaseException] = []

    def handler(*_: Any) -> None:
        try:
            file.read(1)
        except RuntimeError as error:
            failures.append(error)
        os.write(theirs, b"x")

    with file, alarm(handler):
        assert file.read(1) == b"x"
        os.close(theirs)
    assert "reentrant call" in str(failures[0])


def test_atomic_writer_that_is_not_there(tmp_path: Path) -> None:
    """An exception out of the caller's own iterator is treated like any other."""

    def buffers() -> Iterator[bytes]:
        yield b"first"
        raise Alarm

    path = tmp_path / "file"
    with pytest.raises(Alarm) as caught:
        pyio_chunked.write_bytes(path, buffers(), atomic=True)
    assert caught.value.transferred == 0
    assert os.listdir(tmp_path) == []
