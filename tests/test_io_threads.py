# SPDX-License-Identifier: MIT
"""One File in many threads and processes: closing, waiting, fork, re-entry."""

from __future__ import annotations

import os
import random
import threading
import time
from typing import Any

import pytest
from thread_help import in_child, run_threads, wait_for

import pyio_chunked

DATA = b"".join(b"%07d\n" % i for i in range(100_000))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(DATA)
    return path


def test_eight_threads_pread_one_file(path, seed):
    with pyio_chunked.open(path) as file:

        def work(i: int) -> None:
            rng = random.Random(f"{seed}:{i}")
            for _ in range(300):
                offset, size = rng.randrange(len(DATA)), rng.randrange(20_000)
                assert file.pread(size, offset) == DATA[offset : offset + size]
                buffer = bytearray(size)
                count = file.preadinto(buffer, offset)
                assert bytes(buffer[:count]) == DATA[offset : offset + size]

        run_threads(8, work)
        assert file.tell() == 0


def test_each_line_goes_to_one_thread(path):
    with pyio_chunked.open(path, chunk_size=1000) as file:
        lines: list[list[bytes]] = [[] for _ in range(4)]

        def work(i: int) -> None:
            while line := file.readline():
                lines[i].append(line)

        run_threads(4, work)
    assert sorted(line for some in lines for line in some) == DATA.splitlines(keepends=True)


def test_writes_of_threads_stay_whole(tmp_path):
    path = tmp_path / "file"
    with pyio_chunked.open(path, "wb", chunk_size=64) as file:

        def work(i: int) -> None:
            for j in range(500):
                # some fit the chunk, some go straight through
                assert file.write(b"%d %s\n" % (i, bytes([97 + i]) * (j % 200))) > 0

        run_threads(4, work)
    lines = path.read_bytes().splitlines()
    assert len(lines) == 2000
    for line in lines:
        number, _, rest = line.partition(b" ")
        assert set(rest) <= {97 + int(number)}


def test_pwrite_from_threads(tmp_path):
    path = tmp_path / "file"
    with pyio_chunked.open(path, "wb") as file:
        run_threads(8, lambda i: [file.pwrite(b"%08d" % j, j * 8) for j in range(i, 1000, 8)] and None)
    assert path.read_bytes() == b"".join(b"%08d" % j for j in range(1000))


def test_close_while_another_thread_reads():
    """The blocked read ends with what came or an error; the descriptor goes
    with it, and no other file's bytes are ever seen."""
    for _ in range(20):
        ours, theirs = os.pipe()
        file = pyio_chunked.open(ours)
        outcome: list[Any] = []
        started = threading.Event()

        def read(file: Any = file, outcome: list[Any] = outcome, started: Any = started) -> None:
            started.set()
            try:
                outcome.append(file.read(100))
            except (ValueError, OSError) as error:
                outcome.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        started.wait()
        time.sleep(0.001)
        file.close()
        assert file.closed
        # A new descriptor must not take the place of one still in use.
        other = os.open("/dev/zero", os.O_RDONLY)
        os.write(theirs, b"right")
        os.close(theirs)
        thread.join(10)
        assert not thread.is_alive()
        os.close(other)
        assert isinstance(outcome[0], (ValueError, OSError)) or outcome[0] in (b"", b"right")
        with pytest.raises(ValueError, match=r"I/O operation on closed file\."):
            file.read()


def test_close_races_with_pread(path):
    for _ in range(30):
        file = pyio_chunked.open(path)

        def work(i: int, file: Any = file) -> None:
            if i == 0:
                file.close()
                return
            try:
                while True:
                    assert file.pread(5000, 800) == DATA[800:5800]
            except ValueError as error:
                assert str(error) == "I/O operation on closed file."

        run_threads(3, work)


def test_writer_is_closed_behind_its_writes(tmp_path):
    path = tmp_path / "file"
    for _ in range(10):
        file = pyio_chunked.open(path, "wb", chunk_size=4096)
        written = []

        def work(i: int, file: Any = file, written: list[int] = written) -> None:
            if i == 0:
                time.sleep(0.002)
                file.close()
                return
            try:
                for _ in range(20_000):  # where close() waits long for its turn
                    written.append(file.write(b"x" * 1000))
            except ValueError as error:
                assert str(error) == "I/O operation on closed file."

        run_threads(2, work)
        assert path.stat().st_size == sum(written)


def test_bytearray_cannot_be_resized_while_it_is_filled():
    ours, theirs = os.pipe()
    buffer = bytearray(10)
    with pyio_chunked.open(ours) as file:
        thread = threading.Thread(target=file.readinto, args=(buffer,))
        thread.start()
        while True:
            try:
                buffer.append(0)
            except BufferError:
                break
            assert thread.is_alive()
            time.sleep(0.001)
        os.write(theirs, b"0123456789")
        os.close(theirs)
        thread.join()
    assert buffer.startswith(b"0123456789")


# -------------------------------------------------------------------- fork


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
class TestFork:
    def test_reader_goes_on_in_both(self, path):
        with pyio_chunked.open(path, chunk_size=1000) as file:
            assert file.read(504) == DATA[:504]

            def read() -> None:
                assert file.tell() == 504
                assert file.readline() == DATA[504:512]
                assert file.read() == DATA[512:]
                assert file.pread(8, 16) == DATA[16:24]

            child = in_child(read)
            read()
            wait_for(child)

    def test_reader_caught_in_a_call_goes_on(self, path):
        """Other threads are within calls when the process forks."""
        with pyio_chunked.open(path, chunk_size=64) as file:
            stop = threading.Event()

            def work() -> None:
                while not stop.is_set():
                    file.seek(0)
                    file.read(3000)
                    file.pread(100_000, 0)

            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()

            def read() -> None:
                file.seek(800)
                assert file.read(80) == DATA[800:880]
                assert file.pread(8, 16) == DATA[16:24]
                file.close()

            for _ in range(10):
                wait_for(in_child(read))
            stop.set()
            for thread in threads:
                thread.join()

    def test_descriptor_caught_in_a_call_raises(self):
        ours, theirs = os.pipe()
        file = pyio_chunked.open(ours)
        thread = threading.Thread(target=file.read, args=(10,))
        thread.start()
        time.sleep(0.05)

        def read() -> None:
            with pytest.raises(RuntimeError, match="forked"):
                file.read(10)
            file.close()

        wait_for(in_child(read))
        os.write(theirs, b"0123456789")
        thread.join()
        file.close()
        os.close(theirs)

    def test_large_reads_need_no_threads_of_the_parent(self, tmp_path):
        path = tmp_path / "large"
        data = os.urandom(1 << 20) * 24
        path.write_bytes(data)
        assert pyio_chunked.read_bytes(path, threads=2) == data

        def read() -> None:
            assert pyio_chunked.read_bytes(path, threads=2) == data

        children = [in_child(read) for _ in range(3)]
        read()
        for child in children:
            wait_for(child)

    def test_child_appends_behind_what_was_flushed(self, tmp_path):
        path = tmp_path / "file"
        with pyio_chunked.open(path, "wb") as file:
            file.write(b"parent ")
            file.flush()

            def write() -> None:
                file.write(b"child ")
                file.flush()

            wait_for(in_child(write))
            file.write(b"parent")
        assert path.read_bytes() == b"parent child parent"


# ------------------------------------------------------------------ re-entry


def test_a_buffer_that_uses_the_same_file(path):
    """Python code that runs within a call of the object sees it closed, used or
    gone, never half-way."""

    class Sneaky:
        def __index__(self) -> int:
            file.close()
            return 10

    file = pyio_chunked.open(path)
    with pytest.raises(ValueError, match="closed"):
        file.read(Sneaky())
    file = pyio_chunked.open(path, "r+b")
    with pytest.raises(ValueError, match="closed"):
        file.truncate(Sneaky())


def test_an_iterable_that_uses_the_same_file(tmp_path):
    path = tmp_path / "file"
    with pyio_chunked.open(path, "wb", chunk_size=4) as file:

        def lines() -> Any:
            yield b"one "
            file.write(b"between ")
            yield b"two"

        file.writelines(lines())
    assert path.read_bytes() == b"one between two"


def test_detach_while_others_use_it():
    ours, theirs = os.pipe()
    with pyio_chunked.open(ours) as file:
        thread = threading.Thread(target=file.read, args=(2,))
        thread.start()
        time.sleep(0.05)
        os.write(theirs, b"xy")
        thread.join()
        raw = file.detach()
        assert raw.fileno() == ours
        with pytest.raises(ValueError, match="detached"):
            file.read()
        raw.close()
    os.close(theirs)
