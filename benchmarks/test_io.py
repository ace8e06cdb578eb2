# SPDX-License-Identifier: MIT
"""Bounded chunked I/O beside builtins.open, FileIO and numpy: ratios of one run.

    python -m pytest benchmarks/test_io.py -s

Ours and the peer are measured in turn (A B A B ...); printed are the best of
the rounds each, how many times faster ours is, and the bar. Files are in the
page cache, in the temporary folder of pytest (--basetemp to choose the file
system). PYIO_BENCH_ROUNDS sets the rounds, PYIO_BENCH_STRICT=1 makes a figure
below its bar a failure; a busy machine makes that of any.
"""

from __future__ import annotations

import io
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyio_chunked
from pyio_chunked import _core

ROUNDS = int(os.environ.get("PYIO_BENCH_ROUNDS", "9"))
STRICT = os.environ.get("PYIO_BENCH_STRICT", "") not in ("", "0")
# The lengths of JDK-6478546's own table.
TEN_LENGTHS = [
    16_384, 32_768, 100_000, 500_000, 1_000_000, 1_048_576, 10_485_760, 251_503_002, 524_288_000,
    1_000_000_000,
]  # fmt: skip
LARGE = 251_503_002


def in_turn(*calls: Callable[[], object], rounds: int = ROUNDS, sample: float = 0.005) -> list[float]:
    """Best seconds of each, measured one after the other in every round."""
    loops = []
    for call in calls:
        start = time.perf_counter()
        call()
        loops.append(max(1, int(sample / (time.perf_counter() - start))))
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(loops[i]):
                call()
            best[i] = min(best[i], (time.perf_counter() - start) / loops[i])
    return best


def say(case: str, peer: str, ours: float, theirs: float, bar: float | None = None) -> None:
    ratio = theirs / ours
    verdict = "" if bar is None else f"   bar {bar:.2f} {'reached' if ratio >= bar else 'BELOW'}"
    print(f"\n  {case:44} {ours * 1e6:12.2f} us   {peer:24} {theirs * 1e6:12.2f} us   {ratio:5.2f}x{verdict}",
          end="")  # fmt: skip
    if STRICT and bar is not None:
        assert ratio >= bar


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("io")


def made(folder: Path, size: int, line: int = 0) -> str:
    path = folder / f"file-{size}-{line}"
    if not path.exists():
        block = (b"x" * (line - 1) + b"\n") * max(1, (1 << 20) // line) if line else os.urandom(1 << 20)
        with open(path, "wb") as file:
            for _ in range(size // len(block)):
                file.write(block)
            file.write(block[: size % len(block)])
    return str(path)


def whole(opener: Callable[..., Any], path: str, *size: int) -> bytes:
    with opener(path, "rb") as file:
        return file.read(*size)


def pair(case: str, ours: Callable[[], object], theirs: Callable[[], object], bar: float,
         peer: str = "builtin", **options: Any) -> None:  # fmt: skip
    say(case, peer, *in_turn(ours, theirs, **options), bar)


# ------------------------------------------------------------------ small files

FLOOR = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
static char buf[1 << 20];
int main(int n, char **arguments)
{
    double best = 1;
    for (int round = 0; round < 40; round++) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int i = 0; i < 2000; i++) {
            struct stat st;
            int fd = open(arguments[1], O_RDONLY | O_CLOEXEC);
            if (fstat(fd, &st) < 0 || read(fd, buf, (size_t)st.st_size + 1) < 0) return 1;
            close(fd);
        }
        clock_gettime(CLOCK_MONOTONIC, &b);
        double t = ((double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9) / 2000;
        if (t < best) best = t;
    }
    printf("%.9f", best);
    return n != 2;
}
"""


def floor_of(folder: Path, path: str) -> float:
    """Seconds of open, fstat, read, close in a C loop: no Python at all."""
    source, program = folder / "floor.c", folder / "floor"
    if not program.exists():
        source.write_text(FLOOR)
        subprocess.run(["cc", "-O2", str(source), "-o", str(program)], check=True)
    return float(subprocess.run([str(program), path], check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize("size, bar", [(4_096, 3.0), (65_536, 1.7)])
def test_small_read_bytes(folder, size, bar):
    path = made(folder, size)
    ours, theirs = in_turn(lambda: pyio_chunked.read_bytes(path), lambda: whole(open, path))
    say(f"read_bytes of {size}", "open + read + close", ours, theirs, bar)
    say("  its four system calls in a C loop", "open + read + close", floor_of(folder, path), theirs)


def test_small_with_open(folder):
    path = made(folder, 4_096)
    pair("with open() as f: f.read() of 4096", lambda: whole(pyio_chunked.open, path),
         lambda: whole(open, path), 2.3)  # fmt: skip


def test_large_request_of_a_small_file(folder):
    """In a process of its own: what a too large result costs depends on what
    malloc has been through."""
    path = made(folder, 100_000)
    program = """
        import sys, time, pyio_chunked
        best = [1.0, 1.0]
        for _ in range(200):
            for i, opener in enumerate((pyio_chunked.open, open)):
                with opener(sys.argv[1], "rb") as file:
                    start = time.perf_counter()
                    file.read(1 << 20)
                    best[i] = min(best[i], time.perf_counter() - start)
        print(*best)
    """
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(program), path], check=True,
                         capture_output=True, text=True).stdout  # fmt: skip
    ours, theirs = map(float, out.split())
    say("read(1 << 20) of a 100 kB file", "builtin", ours, theirs, 3.0)


# ------------------------------------------------------------------ large files


def test_large_read_bytes(folder):
    numpy = pytest.importorskip("numpy")
    path = made(folder, LARGE)
    ours, single, theirs, fromfile = in_turn(
        lambda: pyio_chunked.read_bytes(path),
        lambda: pyio_chunked.read_bytes(path, threads=1),
        lambda: whole(open, path),
        lambda: numpy.fromfile(path, "u1"),
    )
    say(f"read_bytes of {LARGE}", "builtin read()", ours, theirs, 2.5)
    say(f"read_bytes of {LARGE}, threads=1", "builtin read()", single, theirs, 1.4)
    say(f"read_bytes of {LARGE}", "numpy.fromfile", ours, fromfile, 1.6)
    path = made(folder, 32 << 20)
    pair("read_bytes of 32 MiB", lambda: pyio_chunked.read_bytes(path), lambda: whole(open, path), 2.7)


def test_large_chunks(folder):
    path = made(folder, LARGE)
    buffer = bytearray(262_144)

    def ours() -> None:
        with pyio_chunked.open(path) as file:
            for _ in file.chunks():
                pass

    def theirs() -> None:
        with io.FileIO(path) as file:
            while file.readinto(buffer):
                pass

    pair(f"chunks() over {LARGE}", ours, theirs, 0.95, "FileIO.readinto, 256 KiB")


@pytest.mark.parametrize("line", [30, 80, 400])
def test_lines(folder, line):
    path = made(folder, 50_000_000, line)

    def lines(opener: Callable[..., Any], mode: str) -> None:
        with opener(path, mode) as file:
            for _ in file:
                pass

    pair(f"binary lines of {line}", lambda: lines(pyio_chunked.open, "rb"), lambda: lines(open, "rb"), 1.15)
    pair(f"text lines of {line}", lambda: lines(pyio_chunked.open, "rt"), lambda: lines(open, "rt"), 1.0)


def test_lines_read1(folder):
    path = made(folder, 50_000_000, 80)

    def pieces(opener: Callable[..., Any]) -> None:
        with opener(path, "rb") as file:
            while file.read1(8_192):
                pass

    pair("read1(8192) loop over 50 MB", lambda: pieces(pyio_chunked.open), lambda: pieces(open), 1.1)


def test_large_write_bytes(folder):
    """A fresh name each time: O_TRUNC over an old file has costs of its own."""
    data, names = os.urandom(1 << 20) * 64, itertools.count()
    best = [float("inf")] * 2

    def ours(path: Path) -> None:
        pyio_chunked.write_bytes(path, data)

    def theirs(path: Path) -> None:
        with open(path, "wb") as file:
            file.write(data)

    for number in range(2 * ROUNDS):
        for i, call in enumerate((ours, theirs)) if number % 2 else ((1, theirs), (0, ours)):
            path = folder / f"new-{next(names)}"
            start = time.perf_counter()
            call(path)
            best[i] = min(best[i], time.perf_counter() - start)
            path.unlink()
    say("write_bytes of 64 MiB, fresh name", "builtin", *best, 0.97)


@pytest.mark.parametrize("length", TEN_LENGTHS)
def test_ten_lengths(folder, length):
    """A reused buffer, an open file: the calls of JDK-6478546's benchmark."""
    path = made(folder, length)
    rounds = ROUNDS if length < 10**8 else 3
    buffer = bytearray(length)
    with pyio_chunked.open(path) as ours, open(path, "rb", buffering=0) as theirs:

        def read(file: Any) -> None:
            file.seek(0)
            assert file.readinto(buffer) == length

        pair(f"readinto of {length}", lambda: read(ours), lambda: read(theirs), 1.0, "buffering=0",
             rounds=rounds)  # fmt: skip
    first, second = folder / "first", folder / "second"
    with pyio_chunked.open(first, "wb") as ours, open(second, "wb", buffering=0) as theirs:

        def write(file: Any) -> None:
            file.seek(0)
            assert file.write(buffer) == length

        write(ours)
        write(theirs)
        pair(f"write of {length}", lambda: write(ours), lambda: write(theirs), 1.0, "buffering=0",
             rounds=rounds)  # fmt: skip
    for path_of_either in (first, second, Path(path)):
        path_of_either.unlink()


# ------------------------------------ what set the constants of cio_limits.h


def test_constants_chunk_size(folder):
    """CIO_CHUNK_NBYTES: GB/s of one thread through a reused buffer."""
    path = made(folder, LARGE)
    print("\n  chunk size, GB/s:", end="")
    for size in (8 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20):
        buffer = bytearray(size)

        def read(buffer: bytearray = buffer) -> None:
            with io.FileIO(path) as file:
                while file.readinto(buffer):
                    pass

        (seconds,) = in_turn(read, rounds=3)
        print(f"  {size >> 10}K {LARGE / seconds / 1e9:.1f}", end="")


def test_constants_direct(folder):
    """CIO_DIRECT_NBYTES: reads of one size through a large file, by the chunk
    and past it."""
    path = made(folder, LARGE)
    for size in (4 << 10, 8 << 10, 16 << 10, 64 << 10):
        buffer = bytearray(size)

        def read(opener: Any, buffer: bytearray = buffer, **options: Any) -> None:
            with opener(path, "rb", **options) as file:
                for _ in range(2_000):
                    file.readinto(buffer)

        say(f"readinto({size}) of a large file", "buffering=0",
            *in_turn(lambda: read(pyio_chunked.open), lambda: read(open, buffering=0)))  # fmt: skip


@pytest.mark.parametrize("name", ["parallel", "huge_pages"])
def test_constants_thresholds(folder, name):
    """CIO_PARALLEL_NBYTES, CIO_HUGE_PAGES_NBYTES: with the means against without."""
    thresholds = getattr(pyio_chunked, "set_thresholds", None)
    if thresholds is None:
        pytest.skip("set_thresholds has not landed")
    before = pyio_chunked.thresholds()._asdict()
    other = {"parallel": "huge_pages", "huge_pages": "parallel"}[name]
    try:
        for mib in (2, 4, 8, 16, 32, 64):
            path = made(folder, mib << 20)

            def read(limit: int, path: str = path) -> bytes:
                thresholds(**{name: limit, other: sys.maxsize})
                return pyio_chunked.read_bytes(path)

            with_it, without = in_turn(lambda: read(1), lambda: read(sys.maxsize))
            say(f"{name} for {mib} MiB", "without", with_it, without)
    finally:
        thresholds(**before)


def test_constants_busy_thread(folder):
    """CIO_NOWAIT_NBYTES: beside a thread that never waits, a read that keeps the
    interpreter lock, and one that must ask for it back."""
    path = made(folder, 100_000)
    stop = False

    def spin() -> None:
        while not stop:
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        with pyio_chunked.open(path) as file, open(path, "rb", buffering=0) as raw:

            def ours() -> None:
                file.seek(100_000)
                file.seek(0)
                file.read(65_536)

            def theirs() -> None:
                raw.seek(0)
                raw.read(65_536)

            say("read of 64 KiB beside a busy thread", "FileIO", *in_turn(ours, theirs, rounds=3))
    finally:
        stop = True
        thread.join()


def test_signal_latency(folder):
    """From the timer to the handler, during one read of LARGE bytes."""
    path = made(folder, LARGE)
    late: list[float] = []

    def handler(*_: Any) -> None:
        late.append(time.perf_counter() - due)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for threads in (1, 2):
            late.clear()
            for i in range(20):
                delay = 0.002 + i * 0.001
                due = time.perf_counter() + delay
                signal.setitimer(signal.ITIMER_REAL, delay)
                pyio_chunked.read_bytes(path, threads=threads)
                signal.setitimer(signal.ITIMER_REAL, 0)
            print(f"\n  signal during a read, threads={threads}: at most {max(late) * 1e3:.1f} ms late "
                  f"({len(late)} signals)", end="")  # fmt: skip
    finally:
        signal.signal(signal.SIGALRM, before)


def test_calls_of_each(folder):
    """System calls of one use, for the record."""
    path = made(folder, 4_096)
    for case, call in (
        ("read_bytes", lambda: pyio_chunked.read_bytes(path)),
        ("with open() as f: f.read()", lambda: whole(pyio_chunked.open, path)),
    ):
        _core._fault_count()
        call()
        counts = dict(_core._fault_calls())
        _core._fault_clear()
        print(f"\n  {case}: {counts}", end="")
