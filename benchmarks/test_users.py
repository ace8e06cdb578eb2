# SPDX-License-Identifier: MIT
"""What a user waits for: import, the command line, npz.load.

Each case runs ours and its peer in turn and prints the median of the ratios
(above 1: ours is faster). Peers: numpy.load, gzip -dc, python's start. extract has test_cli_extract.py.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from pyio_chunked import npz

COMMAND = [sys.executable, "-m", "pyio_chunked"]
# Children import with bytecode, as an installed package does.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turn(
    ours: Callable[[], object], peer: Callable[[], object], rounds: int
) -> tuple[float, float, float]:
    """Medians of both in seconds, and of peer / ours; a first round warms up."""
    ours(), peer()
    pairs = [(seconds(ours), seconds(peer)) for _ in range(rounds)]
    return median(a for a, _ in pairs), median(b for _, b in pairs), median(b / a for a, b in pairs)


@pytest.fixture
def compare(capsys):
    def compare(case, peer_name, bar, ours, peer, rounds=15):
        mine, theirs, ratio = in_turn(ours, peer, rounds)
        with capsys.disabled():
            print(
                f"\n{case}: {mine * 1e3:.2f} ms, {peer_name} {theirs * 1e3:.2f} ms, {ratio:.2f}x (bar {bar})"
            )
        return ratio

    return compare


def run(*arguments: object) -> None:
    subprocess.run([*COMMAND, *map(str, arguments)], check=True, env=ENVIRONMENT)


# ----------------------------------------------------------------------- npz


@pytest.fixture(scope="module")
def arrays(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("npz")
    source = np.random.default_rng(1)
    # 64 MB that deflate about as measurements do.
    values = np.round(source.normal(size=8_000_000), 2)
    np.savez(folder / "stored.npz", values=values)
    np.savez_compressed(folder / "deflated.npz", values=values)
    np.save(folder / "plain.npy", values)
    return folder


def load_values(load: Callable[[object], object], path: Path) -> object:
    with load(path) as opened:
        return opened["values"]


@pytest.mark.parametrize(("kind", "bar"), [("stored", 1.8), ("deflated", 2.5)])
def test_npz(arrays, kind, bar, compare):
    path = arrays / f"{kind}.npz"
    assert (load_values(npz.load, path) == load_values(np.load, path)).all()
    compare(
        f"npz.load, {kind} 64 MB", "numpy.load", bar,
        lambda: load_values(npz.load, path), lambda: load_values(np.load, path),
    )  # fmt: skip


def test_npy(arrays, compare):
    path = arrays / "plain.npy"
    compare("npz.load, .npy 64 MB", "numpy.load", 1, lambda: npz.load(path), lambda: np.load(path))


# ------------------------------------------------------------------ start-up


def python(code: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=True, env=ENVIRONMENT)


def test_import(capsys):
    code = "import time; t = time.perf_counter(); import pyio_chunked; print(time.perf_counter() - t)"
    times = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, check=True, env=ENVIRONMENT
            ).stdout
        )
        for _ in range(21)
    ]
    with capsys.disabled():
        print(f"\nimport pyio_chunked: {median(times) * 1e3:.1f} ms (bar: at most 30 ms)")


def test_copy_of_a_small_file(tmp_path, compare):
    """At most 2.2 times python's own start: the other way round, 0.45."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"x" * 1000)

    def copy():
        run("copy", source, target)
        target.unlink()

    compare("start-up of copy, 1 kB", "python -c pass", 0.45, copy, python("pass"), rounds=31)


# -------------------------------------------------------------- command line


def text(size: int) -> bytes:
    source = random.Random(1)
    words = [
        bytes(source.choices(b"abcdefghijklmnopqrstuvwxyz", k=source.randrange(2, 10))) for _ in range(5000)
    ]
    piece = b" ".join(source.choices(words, k=300_000))
    return (piece * (size // len(piece) + 1))[:size]


def need(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not there")
    return found


def test_gunzip(tmp_path, compare):
    gzip_program = need("gzip")
    packed, out = tmp_path / "text.gz", tmp_path / "out"
    packed.write_bytes(gzip.compress(text(100 << 20), 6))

    def ours():
        run("gunzip", packed, out)
        out.unlink()

    def peer():
        with open(out, "wb") as target:
            subprocess.run([gzip_program, "-dc", str(packed)], stdout=target, check=True)
        out.unlink()

    compare("pyio-chunked gunzip, 100 MiB", "gzip -dc", 2.5, ours, peer, rounds=7)
