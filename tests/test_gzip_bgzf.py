# SPDX-License-Identifier: MIT
"""GzipFile(threads=) over BGZF: what C threads inflate ahead is the stream that
gzip sees, wherever it ends, breaks, forks, is left or gone back in."""

from __future__ import annotations

import contextlib
import gc
import gzip
import io
import os
import random
import signal
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inflate_help import bgzf, bgzf_block, text

import pyio_chunked
from pyio_chunked import GzipFile, LimitError, pool

DATA = text(4_000_000)
PACKED = bgzf(DATA)
core = pyio_chunked._core


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "data.bgz"
    place.write_bytes(PACKED)
    return place


class Slow(io.RawIOBase):
    """A source that can't seek and gives at most `most` bytes a call."""

    def __init__(self, data: bytes, most: int) -> None:
        self.inner, self.most = io.BytesIO(data), most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self.inner.read(min(self.most, len(buffer)))
        buffer[: len(piece)] = piece
        return len(piece)


# ---------------------------------------------------------------- any call, any order


def random_stream(rng: random.Random) -> tuple[bytes, bytes]:
    """Blocks of all sizes, now and then a member that is none, zeros, an empty one."""
    packed, plain = [], []
    for _ in range(rng.randint(0, 60)):
        size = rng.choice([0, 1, 100, 1000, 20_000, 65_280])
        at = rng.randint(0, len(DATA) - size)
        piece = DATA[at : at + size] if rng.random() < 0.8 else rng.randbytes(size // 2)
        kind = rng.random()
        packed.append(gzip.compress(piece, 1) if kind < 0.05 else bgzf_block(piece, rng.choice([0, 1, 6])))
        if kind > 0.95:
            packed.append(bytes(rng.randint(1, 30)))
        plain.append(piece)
    return b"".join(packed), b"".join(plain)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.data())
def test_reading_model(tmp_path_factory: pytest.TempPathFactory, seed: int, draw: Any) -> None:
    """Against BytesIO of the plain data."""
    rng = random.Random(seed)
    packed, data = random_stream(rng)
    kind = rng.choice(["path", "BytesIO", "slow"])
    options: dict[str, Any]
    if kind == "path":
        place = tmp_path_factory.mktemp("model") / "data.bgz"
        place.write_bytes(packed)
        options = {"filename": place}
    else:
        options = {
            "fileobj": io.BytesIO(packed) if kind == "BytesIO" else Slow(packed, rng.randint(1, 200_000))
        }
    ours, theirs = GzipFile(**options, threads=rng.choice([2, 3, 8])), io.BytesIO(data)
    sizes = [-1, 0, 1, 7, 100, 65_279, 65_280, 65_281, 131_072, 1_000_000, 1 << 20, 3_000_000, 2**40]
    for _ in range(rng.randint(1, 40)):
        call = draw.draw(
            st.sampled_from(["read", "readline", "readinto", "read1", "peek", "seek", "back", "next"])
        )
        size = rng.choice(sizes)
        if call in ("read", "readline"):
            assert getattr(ours, call)(size) == getattr(theirs, call)(size)
        elif call == "readinto":
            a, b = (bytearray(max(0, min(size, 3_000_000))) for _ in "ab")
            assert ours.readinto(a) == theirs.readinto(b)
            assert a == b
        elif call in ("read1", "peek"):
            at = theirs.tell()
            got = getattr(ours, call)(size)
            assert data.startswith(got, at)
            assert got or at >= len(data) or size == 0
            theirs.seek(at + len(got) * (call == "read1"))
        elif call == "next":
            assert next(ours, b"") == next(theirs, b"")
        elif kind != "slow":
            to = (
                rng.randint(0, len(data)) if call == "seek" else max(0, theirs.tell() - rng.choice(sizes[:7]))
            )
            assert ours.seek(min(to, len(data))) == theirs.seek(min(to, len(data)))
        assert ours.tell() == theirs.tell()
    ours.close()


@pytest.mark.parametrize("threads", [2, 8])
def test_tiny_reads(path: Path, threads: int) -> None:
    with GzipFile(path, threads=threads) as reader:
        rng, at = random.Random(threads), 0
        while piece := reader.read(rng.choice([1, 2, 3, 10, 500])):
            assert DATA.startswith(piece, at)
            at += len(piece)
            if at > 400_000:
                break
        assert reader.read() == DATA[at:]


def test_steps_back_within_what_was_read(path: Path) -> None:
    core._fault_count()
    try:
        with GzipFile(path, threads=2) as reader:
            for at in range(0, len(DATA) - 70_000, 70_000):
                assert reader.read(70_000) == DATA[at : at + 70_000]
                assert reader.seek(-1000, 1) == at + 69_000
                assert reader.read(1000) == DATA[at + 69_000 : at + 70_000]
    finally:
        core._fault_clear()


# ---------------------------------------------------------------- sources


@pytest.mark.parametrize("threads", [2, 8])
def test_a_pipe(threads: int) -> None:
    read_end, write_end = os.pipe()

    def feed() -> None:
        with open(write_end, "wb") as target:
            target.write(PACKED)

    feeder = threading.Thread(target=feed)
    feeder.start()
    with open(read_end, "rb", buffering=0) as source:
        with GzipFile(fileobj=Only(source), threads=threads) as reader:
            assert reader.read(100_000) == DATA[:100_000]
            assert reader.read() == DATA[100_000:]
    feeder.join()


class Only:
    """Nothing but fileno(): read by its descriptor."""

    def __init__(self, file: Any) -> None:
        self.fileno = file.fileno


@pytest.mark.parametrize("by", ["descriptor", "object"])
def test_a_pipe_is_not_waited_for_without_need(by: str) -> None:
    """What whole blocks hold is there before more has come."""
    plain = [DATA[at : at + 5000] for at in range(0, 50_000, 5000)]
    blocks = [bgzf_block(piece) for piece in plain]
    read_end, write_end = os.pipe()
    with open(read_end, "rb", buffering=0) as source, open(write_end, "wb", buffering=0) as target:
        with GzipFile(fileobj=Only(source) if by == "descriptor" else source, threads=2) as reader:
            begun = 0  # of the next block, bytes that were sent with the one before
            for k in range(9):
                target.write(blocks[k][begun:])
                begun = k * 3
                target.write(blocks[k + 1][:begun])
                if k % 2:
                    assert reader.read(5000) == plain[k]
                else:
                    assert b"".join(reader.read1(700) for _ in range(8)) == plain[k]


def test_a_member_behind_blocks_is_not_waited_for() -> None:
    read_end, write_end = os.pipe()
    with open(read_end, "rb", buffering=0) as source, open(write_end, "wb", buffering=0) as target:
        with GzipFile(fileobj=Only(source), threads=2) as reader:
            target.write(bgzf_block(b"block") + gzip.compress(b"member"))
            assert reader.read(5) == b"block"
            assert reader.read(6) == b"member"
            target.write(bgzf_block(b"another"))
            assert reader.read(7) == b"another"


def test_a_source_that_keeps_the_memory_it_was_lent() -> None:
    class Keeper(Slow):
        kept: Any = None

        def readinto(self, buffer: Any) -> int:
            n = super().readinto(buffer)
            if self.kept is None and self.inner.tell() > 900_000:
                self.kept = memoryview(buffer)
            return n

    source = Keeper(PACKED, 100_000)
    with GzipFile(fileobj=source, threads=2) as reader:
        with pytest.raises(BufferError):
            reader.read()
        source.kept[:] = bytes(len(source.kept))
        source.kept.release()
        # What was read before that call is there; what it brought is lost.
        at = len(reader.read(100_000))
        assert at == 100_000


def test_a_source_that_raises(path: Path) -> None:
    class Raises(Slow):
        def readinto(self, buffer: Any) -> int:
            if self.inner.tell() > 700_000 and not self.raised:
                self.raised = True
                raise OSError("once")
            return super().readinto(buffer)

        raised = False

    for call in (GzipFile.read, lambda reader: b"".join(iter(lambda: reader.read(100_000), b""))):
        with GzipFile(fileobj=Raises(PACKED, 50_000), threads=2) as reader:
            got = []
            with pytest.raises(OSError, match="once"):
                while piece := reader.read(100_000):
                    got.append(piece)
            got.append(call(reader))
            assert b"".join(got) == DATA


# ---------------------------------------------------------------- errors


def at_block(k: int) -> tuple[int, int]:
    """Where a block starts, packed, and its size."""
    at = 0
    for _ in range(k):
        at += int.from_bytes(PACKED[at + 16 : at + 18], "little") + 1
    return at, int.from_bytes(PACKED[at + 16 : at + 18], "little") + 1


@pytest.mark.parametrize("how", ["data", "crc", "size", "cut", "max_size", "garbage"])
def test_an_error_ahead_comes_when_the_reader_gets_there(how: str, tmp_path: Path) -> None:
    k = 40
    good, (at, size) = k * 65_280, at_block(k)
    bad = bytearray(PACKED)
    expected: type[Exception] = gzip.BadGzipFile
    options: dict[str, Any] = {}
    if how == "data":
        bad[at + 18] |= 6  # a block type that there isn't
        expected = zlib.error
    elif how == "crc":
        bad[at + size - 8] ^= 1
    elif how == "size":
        bad[at + size - 4] ^= 1
    elif how == "cut":
        del bad[at + 20 :]
        expected = EOFError
    elif how == "garbage":
        bad[at:] = b"garbage" * 1000
    else:
        options["max_size"] = good + 10
        good += 10
        expected = LimitError
    place = tmp_path / "bad.bgz"
    place.write_bytes(bad)
    for call in ("read1", "read", "readinto", "all"):
        got = bytearray()
        with GzipFile(place, threads=2, **options) as reader:
            with pytest.raises(expected):
                while True:
                    if call == "readinto":
                        buffer = bytearray(30_000)
                        piece: bytes | memoryview = memoryview(buffer)[: reader.readinto(buffer)]
                    else:
                        piece = getattr(reader, "read" if call == "all" else call)(
                            -1 if call == "all" else 30_000
                        )
                    assert piece
                    got += piece
            # Said again, and what a failed call had comes first.
            with contextlib.suppress(expected):
                while piece := reader.read1(1 << 20):
                    got += piece
            with pytest.raises(expected):
                reader.read(1)
        assert len(got) >= good
        assert got[:good] == DATA[:good]


@pytest.mark.parametrize("left", [1, 10, 5000])
def test_gone_back_after_an_error_with_little_before_it(left: int) -> None:
    """What a failed read had stays, in memory in which no block has room."""
    with GzipFile(fileobj=io.BytesIO(PACKED + b"no member"), threads=2) as f:
        assert f.read(len(DATA) - left) == DATA[:-left]
        with pytest.raises(gzip.BadGzipFile):
            f.read(left + 1)
        assert f.peek() == DATA[-left:]
        assert f.seek(12_345) == 12_345
        assert f.read(100) == DATA[12_345:12_445]


def test_cut_anywhere(tmp_path: Path) -> None:
    packed = b"".join(bgzf_block(DATA[at : at + 700]) for at in range(0, 2100, 700))
    whole = []
    for cut in range(len(packed)):
        place = tmp_path / "cut.bgz"
        place.write_bytes(packed[:cut])
        results = []
        for module in (gzip, pyio_chunked):
            options = {} if module is gzip else {"threads": 2}
            with module.GzipFile(place, **options) as reader:
                try:
                    results.append(reader.read())
                except (EOFError, gzip.BadGzipFile) as error:
                    results.append(type(error))
        assert results[0] == results[1], cut
        if isinstance(results[0], bytes):
            whole.append(cut)
    assert len(whole) == 3


# ---------------------------------------------------------------- ends


def test_closed_and_dropped_in_mid_stream(path: Path) -> None:
    before = pool.stats().in_use
    for k in range(40):
        reader = GzipFile(path, threads=2 + k % 3)
        assert reader.read(1 + k * 3000) == DATA[: 1 + k * 3000]
        if k % 2:
            reader.close()
        else:
            with pytest.warns(ResourceWarning):
                del reader
                gc.collect()
        assert pool.stats().in_use == before


def test_gone_back_in_while_blocks_are_inflated(path: Path) -> None:
    rng = random.Random(4)
    with GzipFile(path, threads=2) as reader:
        for _ in range(40):
            at = rng.randint(0, 300_000)
            assert reader.seek(at) == at
            size = rng.choice([10, 100_000, 1_500_000])
            assert reader.read(size) == DATA[at : at + size]


def test_at_the_end_nothing_is_held(path: Path) -> None:
    code = """
import sys, pyio_chunked
def mapped():
    # Writable memory: what malloc only reserves for a new thread isn't.
    return int(open("/proc/self/statm").read().split()[5]) * 4096
def one():
    reader = pyio_chunked.GzipFile(sys.argv[1], threads=2)
    while reader.read(1 << 17):
        pass
    return reader
kept = [one()]
before = mapped()
kept += [one() for _ in range(20)]
print(mapped() - before)
"""
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    # Each would be 4 MiB; the sanitizer keeps what is freed for a while.
    assert int(done.stdout) < 30 << 20 or os.environ.get("PYIO_TEST_BUILD") == "sanitize"


def test_exit_with_blocks_under_way(path: Path) -> None:
    """The interpreter ends while workers inflate: no crash, no hang."""
    code = """
import sys, pyio_chunked
reader = pyio_chunked.GzipFile(sys.argv[1], threads=2)
reader.read(1)
keep = [reader]
keep.append(keep)
"""
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, path], capture_output=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, b"")


# ---------------------------------------------------------------- signals, threads, fork


@contextlib.contextmanager
def alarms(handler: Callable[..., object], first: float, every: float = 0.0) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, first, every)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Stop(Exception):
    pass


def test_a_signal_loses_nothing(tmp_path: Path) -> None:
    place = tmp_path / "large.bgz"
    place.write_bytes(PACKED[:-28] * 10 + bgzf(b""))

    def handler(*_: object) -> None:
        raise Stop

    for call in ("read", "readinto"):
        buffer, stops = bytearray(len(DATA) * 10), 0
        with GzipFile(place, threads=2) as reader:
            got = bytearray()
            while len(got) < len(buffer):
                try:
                    with alarms(handler, 0.003 * (stops + 1)):
                        if call == "read":
                            got += reader.read()
                        else:
                            got += buffer[: reader.readinto(buffer)]
                except Stop:
                    stops += 1
                    if reader.tell() != len(got):  # it came between the read's end and ours
                        assert reader.tell() == len(buffer)
                        assert reader.seek(len(got)) == len(got)
                    got += reader.read1(1 << 20)
                    if stops > 10:
                        got += reader.read()
            assert got == DATA * 10
    with GzipFile(place, threads=2) as reader, alarms(lambda *_: None, 0.001, 0.001):
        assert reader.read() == DATA * 10


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("read", [1, 70_000, 1_500_000])
def test_fork_with_blocks_under_way(path: Path, read: int) -> None:
    for k in range(8):
        with GzipFile(path, threads=2) as reader:
            assert reader.read(read) == DATA[:read]
            pid = os.fork()
            if pid == 0:
                try:
                    if k % 4 == 0:
                        reader.close()
                        os._exit(0)
                    if k % 4 == 1:
                        reader.seek(0)
                        os._exit(0 if reader.read() == DATA else 1)
                    got = b"".join(iter(lambda: reader.read(100_000), b""))
                    os._exit(0 if got == DATA[read:] else 1)
                except BaseException:
                    os._exit(2)
            assert reader.read() == DATA[read:]
            assert os.waitpid(pid, 0)[1] == 0


def test_threads_share_a_reader(path: Path) -> None:
    with GzipFile(path, threads=2) as reader:
        pieces: list[bytes] = []

        def read() -> None:
            while piece := reader.read(100_000):
                pieces.append(piece)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(pieces) == sorted(DATA[i : i + 100_000] for i in range(0, len(DATA), 100_000))


def test_many_readers_at_once(path: Path) -> None:
    readers = [GzipFile(path, threads=2) for _ in range(10)]
    at = 0
    while at < len(DATA):
        pieces = {reader.read(300_000) for reader in readers}
        assert pieces == {DATA[at : at + 300_000]}
        at += 300_000
    for reader in readers:
        reader.close()


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize("call", ["malloc", "calloc", "allow_result", "thread_start", "pread", "poll"])
def test_faults(call: str, path: Path) -> None:
    for error in (5, 11) if call in ("pread", "poll") else (12,):
        for first in range(1, 7):
            pool.trim()
            got = bytearray()
            with GzipFile(path, threads=2) as reader:
                core._fault_add(call, error=error, first=first)
                try:
                    for _ in range(60):
                        try:
                            piece = reader.read(200_000)
                        except (MemoryError, OSError) as failure:
                            assert isinstance(failure, MemoryError) or failure.errno == error
                            continue
                        if not piece:
                            break
                        got += piece
                finally:
                    core._fault_clear()
                got += reader.read()
            assert got == DATA


def test_an_error_of_reading_ahead_is_said_when_it_is_reached(path: Path) -> None:
    core._fault_add("pread", error=5, first=3, times=1)
    try:
        with GzipFile(path, threads=2) as reader:
            got = bytearray()
            with pytest.raises(OSError, match="data.bgz") as caught:
                while piece := reader.read1(10_000):
                    got += piece
            assert caught.value.errno == 5
            assert len(got) > 200_000
            assert got == DATA[: len(got)]
            assert reader.read() == DATA[len(got) :]
    finally:
        core._fault_clear()
