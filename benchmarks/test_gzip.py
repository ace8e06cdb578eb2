# SPDX-License-Identifier: MIT
"""Compressed streams beside gzip, zlib, isal, deflate and zlib-ng.

Each line runs ours and its peers in turn (A B A B ...) and prints the ratio of
the medians: 2.0x means that ours takes half the time. Nothing fails on a time;
what comes out is compared. Peers that aren't installed are left out by name.

    python -m pytest -s benchmarks/test_gzip.py

On a machine that others use, BENCH_CLOCK=cpu counts this process's CPU time
instead of the clock's; what several threads gain shows by the clock alone.
"""

from __future__ import annotations

import gc
import gzip
import importlib
import io
import os
import random
import statistics
import struct
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyio_chunked

SIZE = int(os.environ.get("BENCH_GZIP_SIZE", 100_000_000))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", 5))
CLOCK = time.process_time if os.environ.get("BENCH_CLOCK") == "cpu" else time.perf_counter


def peer(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"  (no {name} here)")
        return None


def compare(label: str, ours: Callable[[], Any], peers: dict[str, tuple[Callable[[], Any], float]],
            nbytes: int, rounds: int = ROUNDS) -> None:  # fmt: skip
    """peers: name -> (call, the least ratio that is wanted)."""
    calls = {"ours": ours, **{name: call for name, (call, _) in peers.items()}}
    times: dict[str, list[float]] = {name: [] for name in calls}
    results = {name: call() for name, call in calls.items()}
    assert all(result == results["ours"] for result in results.values()), label
    del results
    for _ in range(rounds):
        for name, call in calls.items():
            gc.collect()
            start = CLOCK()
            call()
            times[name].append(CLOCK() - start)
    mine = statistics.median(times["ours"])
    parts = [f"{label:44} {nbytes / mine / 1e6:7.0f} MB/s"]
    for name, (_, least) in peers.items():
        ratios = [theirs / own for theirs, own in zip(times[name], times["ours"], strict=True)]
        parts.append(f"{name} {statistics.median(ratios):.2f}x (wanted {least}x)")
    print("  ".join(parts))


def make_text(size: int) -> bytes:
    rng = random.Random(1)
    words = ["".join(rng.choices("etaoinshrdlucmfwypvbgkqjxz", k=rng.randint(2, 9))) for _ in range(4000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    lines: list[str] = []
    total = 0
    while total < min(size, 8_000_000):
        line = " ".join(rng.choices(words, weights, k=rng.randint(4, 14))) + "\n"
        lines.append(line)
        total += len(line)
    block = "".join(lines).encode()
    # Further blocks differ in digits that are spread over them.
    out = bytearray()
    k = 0
    while len(out) < size:
        out += block.replace(b"the ", b"%d " % k).replace(b"e\n", b"%d\n" % (k * 7919))
        k += 1
    return bytes(out[:size])


@pytest.fixture(scope="module")
def text() -> bytes:
    return make_text(SIZE)


@pytest.fixture(scope="module")
def text_gz(text: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gz") / "text.gz"
    path.write_bytes(gzip.compress(text, 6))
    return path


def loop(open_file: Callable[[], Any], size: int = 131072) -> int:
    total = 0
    with open_file() as file:
        while data := file.read(size):
            total += len(data)
    return total


def whole(open_file: Callable[[], Any]) -> int:
    with open_file() as file:
        return len(file.read())


def openers(path: Path, igzip: Any, **wanted: float) -> dict[str, tuple[Callable[[], Any], float]]:
    found: dict[str, tuple[Callable[[], Any], float]] = {"gzip": (lambda: gzip.open(path), wanted["gzip"])}
    if igzip is not None:
        found["isal"] = (lambda: igzip.open(path), wanted["isal"])
    return found


def test_read_loop(text: bytes, text_gz: Path) -> None:
    found = openers(text_gz, peer("isal.igzip"), gzip=3, isal=1.0)
    compare(
        "read(131072) loop",
        lambda: loop(lambda: pyio_chunked.GzipFile(text_gz)),
        {name: (lambda o=o: loop(o), w) for name, (o, w) in found.items()},
        len(text),
        max(3, ROUNDS // 2),
    )


@pytest.mark.parametrize("size", [65536, 131072, 262144, 524288, 1 << 20])
def test_piece(text: bytes, text_gz: Path, size: int) -> None:
    """The room of one engine call: reads of 64 KiB and more go straight to the engine, 512 KiB at most."""
    compare(
        f"read({size}) loop",
        lambda: loop(lambda: pyio_chunked.GzipFile(text_gz), size),
        {"read(524288)": (lambda: loop(lambda: pyio_chunked.GzipFile(text_gz), 524288), 1.0)},
        len(text),
        max(3, ROUNDS // 2),
    )


def test_read_all(text: bytes, text_gz: Path) -> None:
    found = openers(text_gz, peer("isal.igzip"), gzip=3.2, isal=1.55)
    compare(
        "read() of all",
        lambda: whole(lambda: pyio_chunked.GzipFile(text_gz)),
        {name: (lambda o=o: whole(o), w) for name, (o, w) in found.items()},
        len(text),
        max(3, ROUNDS // 2),
    )


def test_inflate(text: bytes, text_gz: Path) -> None:
    packed = text_gz.read_bytes()
    deflate = peer("deflate")
    peers: dict[str, tuple[Callable[[], Any], float]] = {"gzip": (lambda: len(gzip.decompress(packed)), 2.5)}
    if deflate is not None:
        peers["deflate"] = (lambda: len(deflate.gzip_decompress(packed)), 1.15)
    compare("inflate(format='gzip')", lambda: len(pyio_chunked.inflate(packed, "gzip")), peers, len(text),
            max(3, ROUNDS // 2))  # fmt: skip


@pytest.mark.parametrize(
    ("size", "streamed", "at_once"),
    [(100, (3, 1.0), (4, 1.35)), (1000, (1.8, 0.97), (2.7, 1.4))],
)
def test_members(
    text: bytes, tmp_path: Path, size: int, streamed: tuple[float, float], at_once: tuple[float, float]
) -> None:
    count = 20_000
    packed = b"".join(gzip.compress(text[i * size : (i + 1) * size]) for i in range(count))
    path = tmp_path / "members.gz"
    path.write_bytes(packed)
    igzip = peer("isal.igzip")
    found = openers(path, igzip, gzip=streamed[0], isal=streamed[1])
    compare(
        f"{count} members of {size} B, streamed",
        lambda: loop(lambda: pyio_chunked.GzipFile(path)),
        {name: (lambda o=o: loop(o), w) for name, (o, w) in found.items()},
        count * size,
        ROUNDS,
    )
    # gzip.decompress copies what is left at each member, which is quadratic.
    peers: dict[str, tuple[Callable[[], Any], float]] = {
        "gzip": (lambda: gzip.GzipFile(fileobj=io.BytesIO(packed)).read(), at_once[0])
    }
    if igzip is not None:
        peers["isal"] = (lambda: igzip.IGzipFile(fileobj=io.BytesIO(packed)).read(), at_once[1])
        peers["isal.decompress"] = (lambda: igzip.decompress(packed), at_once[1])
    compare(f"{count} members of {size} B, inflate()", lambda: pyio_chunked.inflate(packed, "gzip"), peers,
            count * size)  # fmt: skip


def bgzf(data: bytes) -> bytes:
    blocks = []
    for at in range(0, len(data) + 65280, 65280):
        piece = data[at : at + 65280]
        packer = zlib.compressobj(6, zlib.DEFLATED, -15)
        raw = packer.compress(piece) + packer.flush()
        size = len(raw) + 26
        blocks.append(b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0" + struct.pack("<H", size - 1) + raw)
        blocks.append(struct.pack("<II", zlib.crc32(piece), len(piece)))
    return b"".join(blocks)


@pytest.mark.parametrize("way", ["read() of all", "read(131072) loop"])
def test_bgzf(text: bytes, tmp_path: Path, way: str) -> None:
    path = tmp_path / "text.bgz"
    path.write_bytes(bgzf(text))
    run = whole if way == "read() of all" else loop
    compare(
        f"BGZF, threads=2, {way}",
        lambda: run(lambda: pyio_chunked.GzipFile(path, threads=2)),
        {"threads=1": (lambda: run(lambda: pyio_chunked.GzipFile(path)), 1.7)},
        len(text),
    )


@pytest.mark.parametrize("beside", ["alone", "beside a busy thread"])
def test_small_files(text: bytes, tmp_path: Path, beside: str) -> None:
    """100 files of some kB: what the GIL costs."""
    paths = [tmp_path / f"{k}.gz" for k in range(100)]
    for k, path in enumerate(paths):
        path.write_bytes(gzip.compress(text[k * 4000 : k * 4000 + 4000]))

    def read(open_file: Callable[..., Any]) -> int:
        total = 0
        for path in paths:
            with open_file(path) as file:
                total += len(file.read())
        return total

    ended = threading.Event()
    busy = threading.Thread(target=lambda: [None for _ in iter(ended.is_set, True)])
    if beside != "alone":
        busy.start()
    try:
        compare(f"100 files of 4 kB, {beside}", lambda: read(pyio_chunked.GzipFile),
                {"gzip": (lambda: read(gzip.open), 1.8)}, 400_000)  # fmt: skip
    finally:
        ended.set()
        if beside != "alone":
            busy.join()


def test_lines(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "lines.gz"
    part = text[:20_000_000]
    path.write_bytes(gzip.compress(part, 6))

    def count(open_file: Callable[..., Any], mode: str) -> int:
        with open_file(path, mode) as file:
            return sum(1 for _ in file)

    compare("lines, bytes", lambda: count(pyio_chunked.gzip_open, "rb"),
            {"gzip": (lambda: count(gzip.open, "rb"), 2)}, len(part))  # fmt: skip
    compare("lines, text", lambda: count(pyio_chunked.gzip_open, "rt"),
            {"gzip": (lambda: count(gzip.open, "rt"), 2)}, len(part))  # fmt: skip


@pytest.mark.parametrize(
    ("name", "wbits", "wanted"), [("zlib", 15, 2.3), ("gzip", 31, 2.3), ("raw", -15, 1.0)]
)
def test_inflater(text: bytes, name: str, wbits: int, wanted: float) -> None:
    part = text[:20_000_000]
    packer = zlib.compressobj(6, zlib.DEFLATED, wbits)
    packed = packer.compress(part) + packer.flush()
    pieces = [packed[i : i + 16384] for i in range(0, len(packed), 16384)]

    def feed(make: Callable[[int], Any]) -> int:
        inflater = make(wbits)
        return sum(len(inflater.decompress(piece)) for piece in pieces)

    compare(f"Inflater, 16 KiB pieces, {name}", lambda: feed(pyio_chunked.Inflater),
            {"zlib": (lambda: feed(zlib.decompressobj), wanted)}, len(part))  # fmt: skip
