# SPDX-License-Identifier: MIT
"""From how much work a task a cluster pays: two dask workers beside a loop over the same references.

    python -m pytest benchmarks/test_dask.py -s

Sixteen tasks each: a task reads its part of an archive and does something with each member, one thing quick
(count lines), one slow (add up the numbers, in Python). Loop and cluster in turn, medians; the cluster is up before,
and its result is one number. Printed is the loop's time for one task, which is the work that a
task does, and how many times as fast the cluster is; at the end where that passes 1, and where 1.5.
"""

from __future__ import annotations

import random
import statistics
import time
import zipfile
from collections.abc import Callable, Iterator
from math import exp, log
from pathlib import Path
from typing import Any

import pytest

import pyio_chunked

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")

TASKS, ROUNDS = 16, 3
MEMBER = 64 << 10
SIZES = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20]


def count_lines(item: tuple[str, bytes]) -> int:
    return item[1].count(b"\n")


def add_up(item: tuple[str, bytes]) -> int:
    return sum(map(int, item[1].split()))


def count_lines_of(parts: Any) -> list[int]:
    """One member after the other: the part is never in memory as a whole."""
    return [count_lines((ref.name, ref.read())) for part in parts for ref in part]


WORK: dict[str, tuple[Callable[[tuple[str, bytes]], int], list[int]]] = {
    "count lines": (count_lines, SIZES),
    "count lines, reference by reference": (count_lines, SIZES),
    "add up numbers": (add_up, SIZES[:-1]),
}


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    source = random.Random(1)
    text = b"".join(b"%d\n" % source.randrange(10**8) for _ in range(1 << 18))
    folder = tmp_path_factory.mktemp("archives")
    found = {}
    for size in SIZES:
        path = found[size] = folder / f"{size}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
            for number in range(TASKS * size // MEMBER):
                begin = source.randrange(len(text) - MEMBER)
                begin = text.index(b"\n", begin) + 1
                out.writestr(f"{number:06}", text[begin : begin + MEMBER].ljust(MEMBER, b"\n"))
    return found


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def crossing(points: list[tuple[float, float]], ratio: float) -> str:
    """Seconds of work where the ratio is passed for good; between two sizes on a log scale."""
    if points[-1][1] < ratio:
        return "not reached"
    for (x0, y0), (x1, y1) in reversed(list(zip(points, points[1:], strict=False))):
        if y0 < ratio <= y1:
            return f"{exp(log(x0) + (log(x1) - log(x0)) * (ratio - y0) / (y1 - y0)) * 1e3:.0f} ms"
    return f"below {points[0][0] * 1e3:.0f} ms"


@pytest.mark.parametrize("what", WORK)
def test_two_workers_beside_a_loop(archives: dict[int, Path], client: Any, what: str) -> None:
    import dask.bag

    from pyio_chunked.dask import read_members

    work, sizes = WORK[what]
    points = []
    print()
    for size in sizes:
        path = archives[size]

        def loop(path: Path = path) -> int:
            return sum(work((ref.name, ref.read())) for ref in pyio_chunked.scan(path))

        def cluster(path: Path = path, size: int = size) -> int:
            if "reference" in what:
                parts = pyio_chunked.partition(pyio_chunked.scan(path), size)
                assert len(parts) == TASKS
                bag = dask.bag.from_sequence(parts, npartitions=TASKS).map_partitions(count_lines_of)
                return int(bag.sum().compute())
            bag = read_members(path, target_bytes=size)
            assert bag.npartitions == TASKS
            return int(bag.map(work).sum().compute())

        assert loop() == cluster()
        pairs = [(seconds(loop), seconds(cluster)) for _ in range(ROUNDS)]
        alone = statistics.median(a for a, _ in pairs)
        ratio = statistics.median(a / b for a, b in pairs)
        points.append((alone / TASKS, ratio))
        print(
            f"dask, {what}, {size >> 10:6} KiB a task: {alone / TASKS * 1e3:.1f} ms of work,"
            f" cluster of two {ratio:.2f}x (bar {1 if alone / TASKS >= 0.1 else 0})"
        )
    print(
        f"  {what}: a cluster of two is faster from {crossing(points, 1.0)} of work a task,"
        f" 1.5 times as fast from {crossing(points, 1.5)}"
    )
