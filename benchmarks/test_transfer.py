# SPDX-License-Identifier: MIT
"""Transfers beside their peers: ratios of the same run.

    python -m pytest benchmarks/test_transfer.py -s

Each line is measured in turn with its peer (A B A B ...), always to fresh
target names; printed are the best of each and the median of the pairs' ratios.
PYIO_BENCH_ROUNDS sets the rounds, TMPDIR where the disk is, /dev/shm is the
tmpfs. PYIO_BENCH_CLOCK=cpu counts this process's CPU time, user and system, in
place of the wall's: what a busy machine can tell. plots.py draws the crossing of mapped and chunked from the same numbers.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

import pytest

import pyio_chunked
from pyio_chunked import copyfile, copyfileobj, copytree, probe, transfer

ROUNDS = int(os.environ.get("PYIO_BENCH_ROUNDS", "15"))
MIB = 1 << 20
CPU_CLOCK = os.environ.get("PYIO_BENCH_CLOCK") == "cpu"
clock = time.process_time if CPU_CLOCK else time.perf_counter
# The lengths of JDK-8274112's review.
LENGTHS = [1_000, 10_000, 100_000, 500_000, 1_000_000, 10_000_000, 100_000_000]
HUGE_LENGTHS = [500_000_000, 1_000_000_000, 2_000_000_000, 4_000_000_000]

# The calls of a small copy, made from C and nothing else.
FLOOR = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
int main(int argc, char **argv)
{
    const int n = atoi(argv[3]), first = atoi(argv[4]);
    char name[4096], byte;
    const double begin = now();
    for (int i = first; i < first + n; i++) {
        struct stat st;
        const int from = open(argv[1], O_RDONLY | O_CLOEXEC);
        int to;
        (void)argc;
        snprintf(name, sizeof name, "%s%d", argv[2], i);
        if (fstat(from, &st) < 0) return 1;
        to = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (fstat(to, &st) < 0) return 1;
        off_t at = 0, put = 0;
        if (st.st_size == 0) copy_file_range(from, &at, to, &put, 1 << 30, 0);
        if (pread(from, &byte, 1, at) != 0) return 1;
        close(to);
        close(from);
    }
    printf("%.9f\n", (now() - begin) / n);
    return 0;
}
"""


@pytest.fixture
def show(capsys):
    def line(case: str, ours: float, peer: float, ratio: float, bar: str, unit: float = 1e-6) -> None:
        name = {1e-6: "us", 1e-3: "ms"}[unit]
        with capsys.disabled():
            print(
                f"{case:62} ours {ours / unit:10.2f} {name}, peer {peer / unit:10.2f} {name}:"
                f" {ratio:7.2f}x (best/best {peer / ours:7.2f}x; at least {bar})",
                flush=True,
            )

    with capsys.disabled():
        print(
            f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs, {'CPU' if CPU_CLOCK else 'wall'} time"
        )
    return line


@pytest.fixture(params=["tmpfs", "disk"])
def folder(request, tmp_path) -> Iterator[Path]:
    if request.param == "disk":
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        yield Path(name)


@pytest.fixture
def tmpfs() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        yield Path(name)


Once = Callable[..., object]


def in_turn(
    folder: Path,
    calls: list[Once],
    rounds: int = ROUNDS,
    each: int = 1,
    kind: Callable[[Path], object] = Path,
) -> tuple[list[float], list[list[float]]]:
    """Seconds of each call, every time to a new name; best, and all of them."""
    times: list[list[float]] = [[] for _ in calls]
    number = 0
    for turn in range(rounds):
        # Nobody is always the one behind the slowest, whose pages were just freed.
        for k in range(len(calls)):
            i = ((k if turn % 2 else -k) + turn) % len(calls)
            call = calls[i]
            names = [folder / f"target-{number + k}" for k in range(each)]
            number += each
            given = [kind(name) for name in names]
            start = clock()
            for name in given:
                call(name)
            times[i].append((clock() - start) / each)
            for name in names:
                if name.is_dir():
                    shutil.rmtree(name)
                else:
                    name.unlink(missing_ok=True)
    return [min(t) for t in times], times


def ratio_of(times: list[list[float]], ours: int = 0, peer: int = 1) -> float:
    return median(b / a for a, b in zip(times[ours], times[peer], strict=True))


def make(path: Path, size: int) -> Path:
    block = os.urandom(min(size, MIB))
    with open(path, "wb") as file:
        left = size
        while left > 0:
            left -= file.write(block[:left])
        os.fsync(file.fileno())  # else it is written back while others are measured
    return path


# --------------------------------------------------------------- small files


@pytest.mark.parametrize(("size", "bar"), [(0, "4.5"), (1000, "3.5"), (16384, "2.5")])
def test_small_copyfile(tmpfs, show, size, bar):
    source = str(make(tmpfs / "source", size))
    best, times = in_turn(
        tmpfs,
        [partial(copyfile, source), partial(shutil.copyfile, source)],
        rounds=3 * ROUNDS,
        each=100,
        kind=str,
    )
    show(f"copyfile {size} B, tmpfs, beside shutil.copyfile", best[0], best[1], ratio_of(times), bar)


@pytest.fixture(scope="session")
def floor(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("floor")
    (place / "floor.c").write_text(FLOOR)
    subprocess.run(
        [
            "cc",
            "-O2",
            f"-DCLOCK={'CLOCK_PROCESS_CPUTIME_ID' if CPU_CLOCK else 'CLOCK_MONOTONIC'}",
            "-o",
            place / "floor",
            place / "floor.c",
        ],
        check=True,
    )
    return place / "floor"


@pytest.mark.parametrize("size", [0, 1000, 16384])
def test_small_copyfile_beside_raw_c(folder, floor, show, size):
    source = str(make(folder / "source", size))
    ours: list[float] = []
    raw: list[float] = []
    n = 200
    for turn in range(2 * ROUNDS):
        names = [f"{folder}/ours-{turn}-{i}" for i in range(n)]
        start = clock()
        for name in names:
            copyfile(source, name)
        ours.append((clock() - start) / n)
        for name in names:
            os.unlink(name)
        prefix = f"{folder}/raw-{turn}-"
        done = subprocess.run(
            [floor, source, prefix, str(n), "0"], capture_output=True, text=True, check=True
        )
        raw.append(float(done.stdout))
        for i in range(n):
            os.unlink(f"{prefix}{i}")
    where = "tmpfs" if str(folder).startswith("/dev/shm") else "disk"
    ratio = median(b / a for a, b in zip(ours, raw, strict=True))
    show(
        f"copyfile {size} B, {where}, beside the same calls in C",
        min(ours),
        min(raw),
        ratio,
        "0.87 (1.15x its time)",
    )


# --------------------------------------------------------------- large files


def loop(function: str, source: str) -> Once:
    """The bare loop of one system call, from Python."""

    def once(name: Path) -> None:
        one = os.open(source, os.O_RDONLY)
        two = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        at = 0
        while True:
            if function == "sendfile":
                n = os.sendfile(two, one, at, 1 << 30)
            else:
                n = os.copy_file_range(one, two, 1 << 30, at, at)
            if n == 0:
                break
            at += n
        os.close(one)
        os.close(two)

    return once


@pytest.mark.parametrize("size", [MIB, 16 * MIB, 128 * MIB, 1024 * MIB])
def test_large_copyfile(folder, show, size):
    source = str(make(folder / "source", size))
    best, times = in_turn(
        folder,
        [lambda name: copyfile(source, name), loop("sendfile", source), loop("copy_file_range", source)],
        rounds=max(7, min(3 * ROUNDS, (2 << 30) // size)),
        each=max(1, 8 * MIB // size),
    )
    peer = 1 if best[1] < best[2] else 2
    where = "tmpfs" if str(folder).startswith("/dev/shm") else "disk"
    name = "sendfile" if peer == 1 else "copy_file_range"
    show(
        f"copyfile {size // MIB} MiB, {where}, beside {name}",
        best[0],
        best[peer],
        ratio_of(times, 0, peer),
        "0.97",
        1e-3,
    )


def by_method(source: Path, method: str, **options: int) -> Once:
    return lambda name: transfer(source, name, method=method, **options)


def test_chunked_beside_direct(folder, show):
    source = make(folder / "source", 64 * MIB)
    direct = next(
        m for m in probe(source, folder / "none") if m in ("copy_file_range", "sendfile", "chunked")
    )
    best, times = in_turn(folder, [by_method(source, "chunked"), by_method(source, direct)])
    where = "tmpfs" if str(folder).startswith("/dev/shm") else "disk"
    show(
        f"chunked forced, 64 MiB, {where}, beside {direct} forced",
        best[0],
        best[1],
        ratio_of(times),
        "0.75",
        1e-3,
    )


def test_mapped_crossing(folder, show):
    """Where mapped beats chunked: what the threshold means."""
    threshold = pyio_chunked.thresholds().mapped
    sizes = sorted({MIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 32 * MIB, 64 * MIB})
    where = "tmpfs" if str(folder).startswith("/dev/shm") else "disk"
    for size in sizes:
        source = make(folder / "source", size)
        best, times = in_turn(
            folder, [by_method(source, "mapped"), by_method(source, "chunked")], rounds=2 * ROUNDS
        )
        bar = "1.0" if size >= threshold else "no bar: below the threshold"
        show(
            f"mapped forced, {size // MIB} MiB, {where}, beside chunked",
            best[0],
            best[1],
            ratio_of(times),
            bar,
            1e-3,
        )


def test_lengths_of_the_jdk(folder, show):
    where = "tmpfs" if str(folder).startswith("/dev/shm") else "disk"
    lengths = LENGTHS + (HUGE_LENGTHS if "PYIO_BENCH_HUGE" in os.environ else [])
    for size in lengths:
        source = make(folder / "source", size)
        methods = ["mapped", "chunked"]
        if not pyio_chunked.build_info()["portable"]:
            methods += ["copy_file_range", "sendfile"]
        best, times = in_turn(
            folder,
            [lambda name: transfer(source, name), *(by_method(source, m) for m in methods)],  # noqa: B023
            rounds=max(5, min(2 * ROUNDS, (2 << 30) // size)),
            each=max(1, min(100, 1_000_000 // size)),
        )
        winner = min(range(len(methods)), key=lambda i: median(times[1 + i]))  # noqa: B023
        ratio = ratio_of(times, 0, 1 + winner)
        show(f"auto, {size} B, {where}, beside {methods[winner]}", best[0], best[1 + winner], ratio, "0.95")


# ----------------------------------------------------------- sparse, reflink


def test_sparse(tmp_path, show):
    source = tmp_path / "source"
    with open(source, "wb") as file:
        file.truncate(2 << 30)
        file.seek(1 << 30)
        file.write(b"d" * 1024)
    best, times = in_turn(
        tmp_path,
        [
            lambda name: copyfile(source, name),
            lambda name: subprocess.run(["cp", "--sparse=auto", source, name], check=True),
        ],
    )
    show(
        "2 GiB file with 1 kB of data, disk, beside cp --sparse=auto",
        best[0],
        best[1],
        ratio_of(times),
        "1.0 (10 ms)",
        1e-3,
    )


def test_reflink(tmp_path, show):
    if os.geteuid() != 0 or shutil.which("mkfs.btrfs") is None:
        pytest.skip("a btrfs image needs root and mkfs.btrfs")
    image, folder = tmp_path / "image", tmp_path / "mounted"
    with open(image, "wb") as file:
        file.truncate(4 << 30)
    folder.mkdir()
    subprocess.run(["mkfs.btrfs", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    try:
        source = make(folder / "source", 1 << 30)
        os.sync()
        best, times = in_turn(
            folder,
            [lambda name: copyfile(source, name), lambda name: shutil.copyfile(source, name)],
            rounds=3,
        )
        show("1 GiB on btrfs, beside shutil.copyfile", best[0], best[1], ratio_of(times), "100", 1e-3)
    finally:
        subprocess.run(["umount", folder], check=True)


# --------------------------------------------------------------------- trees


def test_copytree(tmpfs, show):
    root = tmpfs / "tree"
    for i in range(50):
        (root / f"d{i}").mkdir(parents=True)
        for k in range(100):
            make(root / f"d{i}" / f"f{k}", 2000)
    best, times = in_turn(
        tmpfs,
        [lambda name: copytree(root, name, workers=2), lambda name: shutil.copytree(root, name)],
        rounds=max(5, ROUNDS // 2),
    )
    show("copytree 5,000 files of 2 kB, 2 workers, tmpfs", best[0], best[1], ratio_of(times), "3.5", 1e-3)


# ------------------------------------------------------- sockets, file objects


def drained(send: Callable[[socket.socket], object]) -> float:
    """Seconds of send into a socket pair whose other end a thread empties."""
    one, two = socket.socketpair()
    room = bytearray(MIB)

    def drain() -> None:
        while two.recv_into(room):
            pass

    thread = threading.Thread(target=drain)
    thread.start()
    start = clock()
    send(one)
    seconds = clock() - start
    one.close()
    thread.join()
    two.close()
    return seconds


def test_file_to_socket(tmp_path, show):
    source = make(tmp_path / "source", 64 * MIB)

    def ours(one: socket.socket) -> None:
        with open(source, "rb") as file:
            assert transfer(file, one).count == 64 * MIB

    def peer(one: socket.socket) -> None:
        with open(source, "rb") as file:
            assert one.sendfile(file) == 64 * MIB

    pairs = [(drained(ours), drained(peer)) for _ in range(2 * ROUNDS)]
    ratio = median(b / a for a, b in pairs)
    show("file to socketpair, 64 MiB, beside socket.sendfile",
         min(a for a, _ in pairs), min(b for _, b in pairs), ratio, "1.0", 1e-3)  # fmt: skip


@pytest.mark.parametrize("size", [10_000, MIB, 64 * MIB])
@pytest.mark.parametrize("kind", ["file", "BytesIO"])
def test_copyfileobj(tmpfs, show, kind, size):
    source = make(tmpfs / "source", size)
    memory = io.BytesIO(source.read_bytes())

    def by(function: Callable[[object, object], object]) -> Once:
        def once(name: Path) -> None:
            if kind == "BytesIO":
                memory.seek(0)
                with open(name, "wb") as target:
                    function(memory, target)
            else:
                with open(source, "rb") as file, open(name, "wb") as target:
                    function(file, target)

        return once

    best, times = in_turn(
        tmpfs, [by(copyfileobj), by(shutil.copyfileobj)], rounds=2 * ROUNDS, each=max(1, min(50, MIB // size))
    )
    show(f"copyfileobj {kind} to file, {size} B, tmpfs", best[0], best[1], ratio_of(times), "1.0")


def test_memory(tmp_path, show, capsys):
    """Peak memory of a running transfer beside what the kernel holds."""
    source = make(tmp_path / "source", 256 * MIB)
    code = """
import resource, sys, pyio_chunked
pyio_chunked.transfer(sys.argv[1], "/dev/null", 100, method="chunked")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
pyio_chunked.transfer(sys.argv[1], sys.argv[2], method=sys.argv[3])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    for method in ("auto", "chunked"):
        target = tmp_path / method
        done = subprocess.run(
            [sys.executable, "-c", code, source, target, method],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        target.unlink()
        with capsys.disabled():
            print(f"256 MiB, {method}: {int(done.stdout)} KiB above the start (at most 512)")


def test_calibrate(tmp_path, capsys):
    before = pyio_chunked.thresholds()
    try:
        for place in (tmp_path, Path("/dev/shm")):
            with capsys.disabled():
                print(f"calibrate({str(place)[:8]}...): {pyio_chunked.calibrate(place)}")
    finally:
        pyio_chunked.set_thresholds(**before._asdict())
