# SPDX-License-Identifier: MIT
"""Draws where the mapped route meets the chunked loop, measured here and now.

    python benchmarks/plots.py crossing.svg

Needs matplotlib. Times are CPU time of this process (PYIO_BENCH_CLOCK=wall for
the wall's), best of the rounds, in turn, to fresh names, on /dev/shm and in the
temporary folder (TMPDIR).
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("PYIO_BENCH_CLOCK", "cpu")
sys.path.insert(0, str(Path(__file__).parent))

from test_transfer import MIB, by_method, in_turn, make

import pyio_chunked

SIZES = [1 << exponent for exponent in range(16, 27)]  # 64 KiB to 64 MiB


def measure(parent: str | None) -> dict[str, list[float]]:
    """MB/s of both methods at each size."""
    speeds: dict[str, list[float]] = {"chunked": [], "mapped": []}
    with tempfile.TemporaryDirectory(dir=parent) as name:
        folder = Path(name)
        for size in SIZES:
            source = make(folder / "source", size)
            each = max(1, 4 * MIB // size)
            best, _ = in_turn(folder, [by_method(source, method) for method in speeds], rounds=15, each=each)
            for method, seconds in zip(speeds, best, strict=True):
                speeds[method].append(size / seconds / 1e6)
    return speeds


def main(out: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axis, (title, parent) in zip(axes, {"tmpfs": "/dev/shm", "disk": None}.items(), strict=True):
        for method, speeds in measure(parent).items():
            axis.plot([size / MIB for size in SIZES], speeds, marker="o", label=method)
        axis.axvline(pyio_chunked.thresholds().mapped / MIB, linestyle=":", color="gray", label="threshold")
        axis.set_xscale("log", base=2)
        axis.set_ylim(bottom=0)
        axis.set_title(title)
        axis.set_xlabel("size, MiB")
        axis.set_ylabel("MB per second of CPU time")
        axis.legend()
    figure.savefig(out, metadata={"Date": None} if out.endswith(".svg") else None)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "crossing.svg")
