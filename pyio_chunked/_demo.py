# SPDX-License-Identifier: MIT
"""The main job on real files, beside the standard library: `python -m pyio_chunked demo`.

The input is the running Python's own standard library, packed by zipfile, or an
archive of the user's. Every step runs in a child process, ours and the standard
library's in turn, so that each has a peak of memory of its own; then every byte
is compared with the original.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import sys
import sysconfig
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyio_chunked

INPUT_BYTES = 40_000_000
ROUNDS = 5
LARGEST = 200


class Step(NamedTuple):
    title: str
    ours: Callable[[], int]  # returns the bytes it moved
    theirs: Callable[[], int]


class Measured(NamedTuple):
    nbytes: int
    seconds: float
    peak: int | None  # bytes above what the process had before


# ------------------------------------------------------------------ measuring


def memory(field: str) -> int | None:
    try:
        with open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith(field.encode()):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def reset_peak() -> None:
    try:
        with open("/proc/self/clear_refs", "w") as control:
            control.write("5")
    except OSError:
        pass


def measure(work: Callable[[], int]) -> Measured:
    """Run it in a child, which reports by a pipe."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            reset_peak()
            before = memory("VmRSS")
            start = time.perf_counter()
            nbytes = work()
            seconds = time.perf_counter() - start
            after = memory("VmHWM")
            peak = max(after - before, 0) if before is not None and after is not None else None
            os.write(writing, json.dumps([nbytes, seconds, peak]).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    with open(reading, "rb") as pipe:
        report = pipe.read()
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise RuntimeError("a step of the demo failed")
    return Measured(*json.loads(report))


def best(rounds: list[Measured]) -> Measured:
    """The quietest round, with the highest peak of all."""
    peaks = [one.peak for one in rounds if one.peak is not None]
    return Measured(rounds[0].nbytes, min(one.seconds for one in rounds), max(peaks, default=None))


# ---------------------------------------------------------------------- input


def library_files() -> Iterator[tuple[Path, str]]:
    """Files of the standard library, its sources first, to about INPUT_BYTES."""
    top = Path(sysconfig.get_path("stdlib"))
    found = []
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(f for f in folders if f not in ("site-packages", "dist-packages"))
        found += [Path(folder, name) for name in sorted(names)]
    # Compiled modules, and the interpreter itself as a library, come last.
    found.sort(key=lambda path: (path.suffix != ".py", path.suffix in (".a", ".pyc")))
    total = 0
    for path in found:
        try:
            size = path.stat().st_size
            if not path.is_file() or not os.access(path, os.R_OK):
                continue
        except OSError:
            continue
        if total > INPUT_BYTES:
            return
        total += size
        yield path, path.relative_to(top).as_posix()


def pack(target: Path) -> int:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for path, name in library_files():
            archive.write(path, name)
    return target.stat().st_size


# ---------------------------------------------------------------------- steps


class Demo:
    def __init__(self, archive: Path, work: Path) -> None:
        self.archive = archive
        self.work = work
        # Both before the forks: no step pays for an import.
        with zipfile.ZipFile(archive) as opened, pyio_chunked.ZipFile(archive):
            infos = opened.infolist()
        self.members = [info for info in infos if not info.is_dir()]
        self.nbytes = sum(info.file_size for info in self.members)
        self.tree = work / "ours"

    def fresh(self, name: str) -> Path:
        """A folder that no earlier round has used."""
        return Path(tempfile.mkdtemp(prefix=name, dir=self.work))

    def steps(self) -> list[Step]:
        return [
            Step("open the archive", self.open_ours, self.open_theirs),
            Step("read, one by one", self.read_ours, self.read_theirs),
            Step("read, all at once", self.read_many_ours, self.read_theirs),
            Step("extract", self.extract_ours, self.extract_theirs),
            Step("copy the largest", self.copy_ours, self.copy_theirs),
            Step("write an index", self.write_index_ours, self.write_index_theirs),
            Step("read the index", self.read_index_ours, self.read_index_theirs),
        ]

    def open_ours(self) -> int:
        with pyio_chunked.ZipFile(self.archive) as archive:
            archive.namelist()
        return self.archive.stat().st_size

    def open_theirs(self) -> int:
        with zipfile.ZipFile(self.archive) as archive:
            archive.namelist()
        return self.archive.stat().st_size

    def read_ours(self) -> int:
        with pyio_chunked.ZipFile(self.archive) as archive:
            return sum(len(archive.read(name)) for name in archive.namelist())

    def read_many_ours(self) -> int:
        with pyio_chunked.ZipFile(self.archive) as archive:
            return sum(len(content) for _, content in archive.read_many())

    def read_theirs(self) -> int:
        with zipfile.ZipFile(self.archive) as archive:
            return sum(len(archive.read(name)) for name in archive.namelist())

    def extract_ours(self) -> int:
        with pyio_chunked.ZipFile(self.archive) as archive:
            archive.extractall(self.fresh("ours-"))
        return self.nbytes

    def extract_theirs(self) -> int:
        with zipfile.ZipFile(self.archive) as archive:
            archive.extractall(self.fresh("theirs-"))
        return self.nbytes

    def extract_tree(self) -> int:
        with pyio_chunked.ZipFile(self.archive) as archive:
            archive.extractall(self.tree)
        return self.nbytes

    def largest(self) -> list[Path]:
        found = [path for path in self.tree.rglob("*") if path.is_file() and not path.is_symlink()]
        return sorted(found, key=lambda path: (-path.stat().st_size, path))[:LARGEST]

    def copy_ours(self) -> int:
        target = self.fresh("copied-ours-")
        return sum(
            pyio_chunked.copyfile(path, target / str(number)).count
            for number, path in enumerate(self.largest())
        )

    def copy_theirs(self) -> int:
        target = self.fresh("copied-theirs-")
        moved = 0
        for number, path in enumerate(self.largest()):
            shutil.copyfile(path, target / str(number))
            moved += path.stat().st_size
        return moved

    # An index: per member its name, sizes, CRC and offset, as typed records.

    def write_index_ours(self) -> int:
        path = self.fresh("index-ours-") / "index"
        with open(path, "wb", buffering=0) as file, pyio_chunked.DataWriter(file) as writer:
            writer.write_uint32(len(self.members))
            for info in self.members:
                writer.write_str(info.filename, "uint16")
                writer.write_uint64(info.file_size)
                writer.write_uint64(info.compress_size)
                writer.write_uint32(info.CRC)
                writer.write_uint64(info.header_offset)
        return path.stat().st_size

    def write_index_theirs(self) -> int:
        path = self.fresh("index-theirs-") / "index"
        with open(path, "wb") as file:
            file.write(struct.pack(">I", len(self.members)))
            for info in self.members:
                name = info.filename.encode()
                file.write(struct.pack(">H", len(name)))
                file.write(name)
                file.write(struct.pack(">Q", info.file_size))
                file.write(struct.pack(">Q", info.compress_size))
                file.write(struct.pack(">I", info.CRC))
                file.write(struct.pack(">Q", info.header_offset))
        return path.stat().st_size

    def index(self, whose: str) -> Path:
        return next(self.work.glob(f"index-{whose}-*")) / "index"

    def check_record(self, number: int, record: tuple[str, int, int, int, int]) -> None:
        info = self.members[number]
        if record != (info.filename, info.file_size, info.compress_size, info.CRC, info.header_offset):
            raise AssertionError(f"record {number} of the index is {record}")

    def read_index_ours(self) -> int:
        with open(self.index("ours"), "rb", buffering=0) as file:
            reader = pyio_chunked.DataReader(file)
            for number in range(reader.read_uint32()):
                self.check_record(
                    number,
                    (
                        reader.read_str("uint16"),
                        reader.read_uint64(),
                        reader.read_uint64(),
                        reader.read_uint32(),
                        reader.read_uint64(),
                    ),
                )
            return reader.tell()

    def read_index_theirs(self) -> int:
        with open(self.index("theirs"), "rb") as file:
            for number in range(struct.unpack(">I", file.read(4))[0]):
                name = file.read(struct.unpack(">H", file.read(2))[0]).decode()
                size, compressed = struct.unpack(">Q", file.read(8)), struct.unpack(">Q", file.read(8))
                crc, offset = struct.unpack(">I", file.read(4)), struct.unpack(">Q", file.read(8))
                self.check_record(number, (name, size[0], compressed[0], crc[0], offset[0]))
            return file.tell()

    # ------------------------------------------------------------- the proof

    def check(self, originals: dict[str, Path] | None) -> tuple[int, int]:
        """Compare every byte that this package read or extracted with the
        original file, or, for an archive of the user's, with zipfile's."""
        compared = files = 0
        with zipfile.ZipFile(self.archive) as judge, pyio_chunked.ZipFile(self.archive) as archive:
            last = {info.filename: info for info in self.members}
            for name, content in archive.read_many(list(last)):
                path = (originals or {}).get(name)
                right = path.read_bytes() if path is not None else judge.read(name)
                if content != right or archive.read(name) != right:
                    raise AssertionError(f"{name}: read other bytes than the original's")
                compared += 2 * len(right)
                files += 1
            if originals is not None:
                for name, path in originals.items():
                    if (self.tree / name).read_bytes() != path.read_bytes():
                        raise AssertionError(f"{name}: extracted other bytes than the original's")
                    compared += path.stat().st_size
        for number, path in enumerate(self.largest()):
            copied = next(self.work.glob("copied-ours-*")) / str(number)
            if copied.read_bytes() != path.read_bytes():
                raise AssertionError(f"{path}: copied other bytes")
            compared += path.stat().st_size
        if self.index("ours").read_bytes() != self.index("theirs").read_bytes():
            raise AssertionError("the two indexes differ")
        return files, compared


# ---------------------------------------------------------------------- table


def size_text(nbytes: int | None) -> str:
    if nbytes is None:
        return "-"
    return f"{nbytes / 1e6:.1f} MB" if nbytes >= 100_000 else f"{nbytes / 1e3:.0f} kB"


def side(one: Measured) -> str:
    rate = f"{one.nbytes / one.seconds / 1e6:,.0f}"
    return f"{one.seconds:>9.4f} {rate:>7} {size_text(one.peak):>9}"


def print_table(rows: list[tuple[str, Measured, Measured]]) -> None:
    half = f"{'seconds':>9} {'MB/s':>7} {'peak mem':>9}"
    print(f"{'':<19} {'':>11} | {'pyio_chunked':^27} | {'standard library':^27} |")
    print(f"{'step':<19} {'bytes':>11} | {half} | {half} | faster")
    print("-" * 103)
    for title, ours, theirs in rows:
        ratio = f"{theirs.seconds / ours.seconds:.1f}x"
        print(f"{title:<19} {ours.nbytes:>11,} | {side(ours)} | {side(theirs)} | {ratio:>6}")


def run(archive: str | None = None) -> int:
    with tempfile.TemporaryDirectory(prefix="pyio_chunked-demo-") as folder:
        work = Path(folder)
        originals = None
        if archive is None:
            packed = work / "library.zip"
            start = time.perf_counter()
            size = pack(packed)
            originals = {name: path for path, name in library_files()}
            print(
                f"Input: {len(originals):,} files of Python {sys.version.split()[0]}'s standard library, packed by "
                f"zipfile to {size:,} bytes in {time.perf_counter() - start:.1f} s."
            )
        else:
            packed = Path(archive)
            print(f"Input: {packed}, {packed.stat().st_size:,} bytes.")
        demo = Demo(packed, work)
        rows = []
        measure(demo.extract_tree)
        for title, ours, theirs in demo.steps():
            pairs = [(measure(ours), measure(theirs)) for _ in range(ROUNDS)]
            rows.append((title, best([one for one, _ in pairs]), best([two for _, two in pairs])))
        print(f"Best of {ROUNDS} rounds in turn; peak mem: above what the process had before the step.\n")
        print_table(rows)
        files, compared = demo.check(originals)
        print(f"\nChecked: {files:,} members, {compared:,} bytes compared with the originals, all equal.")
    return 0
