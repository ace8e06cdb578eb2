"""calibrate: where one method begins to beat another, on this machine and in
this folder. Pairs are run in turn, so that a busy moment meets both."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from time import perf_counter, thread_time
from typing import Any, Literal

import pyio_chunked

SIZES = [1 << exponent for exponent in range(18, 27)]  # 256 KiB to 64 MiB
READ_SIZES = [1 << exponent for exponent in range(21, 27)]  # 2 MiB to 64 MiB
PAIRS_AT_LEAST = 3


class _Clock:
    """The budget, and what is told of it."""

    def __init__(self, budget: float, progress: Any) -> None:
        self.begin = self.told = perf_counter()
        self.budget = budget
        self.progress = progress

    def tell(self, last: bool = False) -> None:
        now = perf_counter()
        if self.progress is not None and (last or now - self.told >= 0.05):
            self.told = now
            total = round(self.budget * 1000)
            self.progress(total if last else min(round((now - self.begin) * 1000), total), total)


def _ratio(
    old: Callable[[], object],
    new: Callable[[], object],
    seconds: float,
    clock: _Clock,
    measure: Callable[[], float],
) -> float:
    """How many times faster new is: the best of each, for about `seconds`."""
    best_old = best_new = float("inf")
    pairs = 0
    until = perf_counter() + seconds
    while pairs < PAIRS_AT_LEAST or perf_counter() < until:
        start = measure()
        old()
        middle = measure()
        new()
        end = measure()
        best_old, best_new = min(best_old, middle - start), min(best_new, end - middle)
        pairs += 1
        clock.tell()
    return best_old / max(best_new, 1e-9)


def _crossing(sizes: list[int], ratios: list[float], least: float) -> int:
    """The size that wins and from which on none loses clearly; sys.maxsize where
    the largest does."""
    crossing = sys.maxsize
    for size, ratio in zip(reversed(sizes), reversed(ratios), strict=True):
        if ratio < least * 0.97:
            break
        if ratio >= least:
            crossing = size
    return crossing


def _mapped(source: str, target: str, seconds: float, clock: _Clock) -> int:
    def copy_by(method: Literal["chunked", "mapped"], size: int) -> Callable[[], object]:
        def once() -> None:
            pyio_chunked.transfer(source, target, size, method=method)
            os.unlink(target)

        return once

    each = seconds / len(SIZES)
    # All of it happens in this thread: its CPU time is what a busy machine can tell.
    ratios = [
        _ratio(copy_by("chunked", size), copy_by("mapped", size), each, clock, thread_time) for size in SIZES
    ]
    return _crossing(SIZES, ratios, 1.0)


def _reading(source: str, name: str, seconds: float, clock: _Clock, measure: Callable[[], float]) -> int:
    """Where read_bytes is faster with the feature `name` than without."""

    def read(size: int, value: int) -> Callable[[], object]:
        def once() -> None:
            pyio_chunked.set_thresholds(**{name: value})
            pyio_chunked.read_bytes(source, size=size)

        return once

    each = seconds / len(READ_SIZES)
    before = getattr(pyio_chunked.thresholds(), name)
    try:
        ratios = [_ratio(read(size, sys.maxsize), read(size, 0), each, clock, measure) for size in READ_SIZES]
    finally:
        pyio_chunked.set_thresholds(**{name: before})
    return _crossing(READ_SIZES, ratios, 1.02)


def run(directory: Any, budget: float, progress: Any) -> Any:
    if not budget > 0:
        raise ValueError(f"budget must be above 0 seconds, not {budget!r}")
    if progress is True:
        from pyio_chunked._progress import bar

        progress = bar(round(budget * 1000))
    clock = _Clock(budget, progress or None)
    before = pyio_chunked.thresholds()
    folder = None if directory is None else os.fsdecode(directory)
    try:
        if folder is not None:
            os.scandir(folder).close()  # an error names the folder, not one of ours in it
        with tempfile.TemporaryDirectory(dir=folder, prefix="pyio_chunked-") as place:
            source = os.path.join(place, "source")
            with open(source, "wb") as file:
                block = os.urandom(1 << 20)
                for _ in range(SIZES[-1] >> 20):
                    file.write(block)
            mapped = _mapped(source, os.path.join(place, "target"), budget * 0.5, clock)
            pyio_chunked.set_thresholds(parallel=sys.maxsize)
            huge_pages = _reading(source, "huge_pages", budget * 0.2, clock, thread_time)
            pyio_chunked.set_thresholds(huge_pages=huge_pages)
            parallel = _reading(source, "parallel", budget * 0.2, clock, perf_counter)
            clock.tell(last=True)
    except BaseException:
        pyio_chunked.set_thresholds(**before._asdict())
        raise
    return pyio_chunked.set_thresholds(mapped=mapped, parallel=parallel, huge_pages=huge_pages)
