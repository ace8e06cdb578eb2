# SPDX-License-Identifier: MIT
"""Plots of what the benchmarks print: build/bench/NAME.png for each file.

A benchmark prints a line for each case; whatever in it reads "2.31x (bar 2)",
"2.31x (wanted 2)" or "2.31x (at least 2)" is drawn as a bar beside the mark
that it is meant to reach.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench"

RATIO = re.compile(
    r"(?P<ratio>\d+\.\d+)x?\W*(?:best/best\W+[\d.]+x; )?(?:bar|wanted|at least) *(?P<bar>\d+(?:\.\d+)?)?"
)
# Where a line's label ends and its figures begin.
FIGURES = re.compile(r"\s\s+|:\s|\s+ours\s")


class Listening:
    """Standard output that also keeps what is printed."""

    def __init__(self, out: Any) -> None:
        self.out = out
        self.pending = ""
        self.name = ""
        self.found: dict[str, list[tuple[str, float, float | None]]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.out, name)

    def write(self, text: str) -> int:
        *lines, self.pending = (self.pending + text).split("\n")
        for line in lines:
            self.take(line)
        return self.out.write(text)

    def take(self, line: str) -> None:
        line = line.strip()
        label = FIGURES.split(line, maxsplit=1)[0]
        for match in RATIO.finditer(line):
            bar = float(match["bar"]) if match["bar"] else None
            self.found.setdefault(self.name, []).append((label, float(match["ratio"]), bar))


def pytest_configure(config: pytest.Config) -> None:
    # Only where output is shown, as ./dev bench does by -s.
    if config.getoption("capture") == "no":
        sys.stdout = Listening(sys.stdout)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if isinstance(sys.stdout, Listening):
        sys.stdout.name = item.path.stem.removeprefix("test_")


def pytest_sessionfinish() -> None:
    if not isinstance(sys.stdout, Listening):
        return
    listening, sys.stdout = sys.stdout, sys.stdout.out
    listening.take(listening.pending)
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("\nno plots: matplotlib is not installed")
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, rows in listening.found.items():
        if name and rows:
            draw(Figure, name, rows)


def draw(figure_type: Any, name: str, rows: list[tuple[str, float, float | None]]) -> None:
    figure = figure_type(figsize=(9, 1.2 + 0.3 * len(rows)), layout="constrained")
    axes = figure.subplots()
    places = range(len(rows), 0, -1)
    colors = ["tab:red" if bar is not None and ratio < bar else "tab:blue" for _, ratio, bar in rows]
    axes.barh(places, [ratio for _, ratio, _ in rows], color=colors)
    for place, (_, ratio, bar) in zip(places, rows, strict=True):
        axes.text(ratio, place, f" {ratio:.2f}", va="center", fontsize=8)
        if bar is not None:
            axes.plot([bar, bar], [place - 0.45, place + 0.45], color="black", linewidth=2)
    axes.axvline(1, color="gray", linewidth=1, linestyle="dotted")
    axes.set_yticks(places, [label[:70] for label, _, _ in rows], fontsize=8)
    axes.set(xlabel="times as fast as the peer (mark: what is meant to be reached)", title=name)
    if max(ratio for _, ratio, _ in rows) > 20:
        axes.set_xscale("log")
    path = FOLDER / f"{name}.png"
    figure.savefig(path, dpi=110)
    print(f"\n{path.relative_to(FOLDER.parent.parent)}: {len(rows)} cases", end="")
