# SPDX-License-Identifier: MIT
"""ZIP extraction, passwords and profiles beside their peers: ratios of the same run.

    python -m pytest benchmarks/test_zip_extract.py -s

Measured in turn (A B A B ...); what is printed is the median of each and the ratio of the medians. Every
extraction goes into a fresh folder: truncating old files would be measured otherwise.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import statistics
import subprocess
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pyio_chunked import ZipFile

ROUNDS = int(os.environ.get("PYIO_BENCH_ROUNDS", "9"))
FILES = 3000

# The same files, created and written by a loop in C with nothing else: the content is in memory.
FLOOR = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const size_t size = strtoul(argv[3], NULL, 10);
    const int files = atoi(argv[2]), folders = atoi(argv[4]);
    char *data = malloc(size), path[4096];
    struct timespec a, b;

    (void)argc;
    memset(data, 'x', size);
    clock_gettime(CLOCK_MONOTONIC, &a);
    mkdir(argv[1], 0777);
    for (int i = 0; i < folders; i++) {
        snprintf(path, sizeof path, "%s/d%02d", argv[1], i);
        mkdir(path, 0777);
    }
    for (int i = 0; i < files; i++) {
        snprintf(path, sizeof path, "%s/d%02d/f%05d.txt", argv[1], i * folders / files, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd) < 0)
            return 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%.9f\n", (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9);
    return 0;
}
"""


def words(n: int, rng: random.Random) -> bytes:
    """Source-like text: packs about as code does."""
    out = []
    while sum(map(len, out)) < n:
        out.append(b"    %s = %s(%d)\n" % (rng.choice(NAMES), rng.choice(NAMES), rng.randrange(10**5)))
    return b"".join(out)[:n]


NAMES = [bytes(random.Random(i).choices(b"abcdefghijklmnopqrstuvwxyz_", k=3 + i % 9)) for i in range(400)]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = random.Random(1)
    path = tmp_path_factory.mktemp("bench") / "files.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zf:
        for i in range(FILES):
            zf.writestr(f"d{i * 30 // FILES:02}/f{i:05}.txt", words(2048, rng))
    return path


def in_turn(*calls: Callable[[], float], rounds: int = ROUNDS) -> list[float]:
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for i, call in enumerate(calls):
            times[i].append(call())
    return [statistics.median(t) for t in times]


def show(what: str, ours: float, peer: float, bar: str, ratio: float) -> None:
    print(f"\n{what}: {ours * 1e3:.2f} ms, peer {peer * 1e3:.2f} ms, {ratio:.2f}x (bar {bar})")


def extract_into(
    folder: Path, archive: Path
) -> tuple[Callable[[], float], Callable[[], float], Callable[[], float]]:
    numbers = itertools.count()
    program = folder / "floor"
    (folder / "floor.c").write_text(FLOOR)
    subprocess.run(["cc", "-O2", "-o", program, folder / "floor.c"], check=True)

    def fresh() -> Path:
        return folder / f"out{next(numbers)}"

    def timed(call: Callable[[Path], object]) -> float:
        target = fresh()
        start = time.perf_counter()
        call(target)
        taken = time.perf_counter() - start
        shutil.rmtree(target)
        return taken

    def ours(target: Path) -> None:
        with ZipFile(archive) as zf:
            zf.extractall(target)

    def theirs(target: Path) -> None:
        with zipfile.ZipFile(archive) as zf:
            zf.extractall(target)

    def floor() -> float:
        target = fresh()
        done = subprocess.run(
            [program, target, str(FILES), "2048", "30"], capture_output=True, text=True, check=True
        )
        shutil.rmtree(target)
        return float(done.stdout)

    return lambda: timed(ours), lambda: timed(theirs), floor


def test_extractall_on_tmpfs(archive: Path) -> None:
    if not os.path.isdir("/dev/shm"):
        pytest.skip("no tmpfs at /dev/shm")
    folder = Path("/dev/shm") / f"pyio-bench-{os.getpid()}"
    folder.mkdir()
    try:
        ours, theirs, floor = in_turn(*extract_into(folder, archive))
    finally:
        shutil.rmtree(folder)
    show("extractall of 3,000 x 2 KiB, tmpfs, beside zipfile", ours, theirs, "3.5x", theirs / ours)
    show("  beside a C loop that only creates and writes", ours, floor, "-", ours / floor)


def test_extractall_on_disk(archive: Path, tmp_path: Path) -> None:
    ours, theirs, floor = in_turn(*extract_into(tmp_path, archive))
    kind = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True).stdout.strip()
    show(f"the same on {kind}, beside a C loop", ours, floor, "at most 1.3x its time", ours / floor)
    show("  beside zipfile", ours, theirs, "-", theirs / ours)


def test_zipcrypto(tmp_path: Path) -> None:
    if shutil.which("zip") is None:
        pytest.skip("no zip program to encrypt with")
    (tmp_path / "member").write_bytes(words(1 << 20, random.Random(2)))
    for option in ("-0", "-6"):
        name = f"crypt{option}.zip"
        subprocess.run(["zip", "-q", option, "-P", "secret", name, "member"], cwd=tmp_path, check=True)

        def timed(kind: type, name: str = name) -> Callable[[], float]:
            def call() -> float:
                with kind(tmp_path / name) as zf:
                    start = time.perf_counter()
                    zf.read("member", b"secret")
                    return time.perf_counter() - start

            return call

        ours, theirs = in_turn(timed(ZipFile), timed(zipfile.ZipFile))
        show(f"ZipCrypto member of 1 MiB, zip {option}", ours, theirs, "50x", theirs / ours)


@pytest.mark.parametrize("size", [1024, 16384])
def test_strict_beside_compat(tmp_path: Path, size: int) -> None:
    rng = random.Random(3)
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zf:
        for i in range(10_000 if size < 10_000 else 2_000):
            zf.writestr(f"f{i:05}", words(size, rng))

    def timed(profile: str) -> Callable[[], float]:
        def call() -> float:
            start = time.perf_counter()
            with ZipFile(path, profile=profile) as zf:
                for name in zf.namelist():
                    zf.read(name)
            return time.perf_counter() - start

        return call

    strict, safe, compat = in_turn(timed("strict"), timed("safe"), timed("compat"))
    show(f"strict, open and read all, {size} B each, beside compat", strict, compat, "0.8x", compat / strict)
    show("  safe", safe, compat, "-", compat / safe)
