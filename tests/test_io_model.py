# SPDX-License-Identifier: MIT
"""Random operations on a File and on what builtins.open makes of the same file,
in every mode: results, exceptions, positions and bytes on disk agree."""

from __future__ import annotations

import io
import os
import tempfile
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import pyio_chunked

MODES = ("rb", "r+b", "wb", "w+b", "ab", "a+b", "xb", "x+b")

sizes = st.one_of(st.integers(-1, 40), st.none(), st.just(2**40))
small_sizes = st.integers(-1, 40)
data = st.binary(max_size=40) | st.text("ab\n", max_size=40).map(str.encode)
offsets = st.integers(0, 120)
operations = st.one_of(
    st.tuples(st.just("read"), sizes),
    st.tuples(st.just("read1"), small_sizes),
    st.tuples(st.just("readinto"), st.integers(0, 60)),
    st.tuples(st.just("readinto1"), st.integers(0, 60)),
    st.tuples(st.just("peek"), small_sizes),
    st.tuples(st.just("readline"), sizes),
    st.tuples(st.just("next")),
    st.tuples(st.just("readlines"), st.integers(-1, 60)),
    st.tuples(st.just("write"), data),
    st.tuples(st.just("writelines"), st.lists(data, max_size=4)),
    st.tuples(st.just("seek"), st.integers(-20, 120), st.integers(0, 2)),
    st.tuples(st.just("tell")),
    st.tuples(st.just("truncate"), st.none() | st.integers(0, 120)),
    st.tuples(st.just("flush")),
    st.tuples(st.just("pread"), small_sizes, offsets),
    st.tuples(st.just("preadinto"), st.integers(0, 60), offsets),
    st.tuples(st.just("pwrite"), data, offsets),
    st.tuples(st.just("chunks"), st.integers(1, 30)),
    st.tuples(st.just("sync")),
    st.tuples(st.just("fileno")),
)


def peer_open(path: str, mode: str, size: int) -> Any:
    raw = io.FileIO(path, mode)
    if "+" in mode:
        return io.BufferedRandom(raw, size)
    return io.BufferedReader(raw, size) if mode == "rb" else io.BufferedWriter(raw, size)


class Peer:
    """The operations of a File that the standard library lacks, over its file."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def pread(self, size: int, offset: int) -> bytes:
        if not self.file.readable():
            raise io.UnsupportedOperation
        self.file.flush()
        return os.pread(self.file.fileno(), 1 << 20 if size < 0 else size, offset)

    def pwrite(self, piece: bytes, offset: int) -> int:
        if not self.file.writable() or "a" in self.file.mode:
            raise io.UnsupportedOperation
        self.file.flush()
        count = os.pwrite(self.file.fileno(), piece, offset)
        self.file.seek(0, 1) if self.file.readable() else None
        if self.file.readable():  # forget what was read ahead
            position = self.file.tell()
            self.file.seek(0, 2)
            self.file.seek(position)
        return count


def run(file: Any, operation: tuple[Any, ...], peer: Peer | None) -> Any:
    name, *arguments = operation
    if name in ("readinto", "readinto1"):
        buffer = bytearray(arguments[0])
        count = getattr(file, name)(buffer)
        return count, bytes(buffer[:count])
    if name == "preadinto":
        size, offset = arguments
        if peer is not None:
            found = peer.pread(size, offset)
            return len(found), found
        buffer = bytearray(size)
        count = file.preadinto(buffer, offset)
        return count, bytes(buffer[:count])
    if name == "next":
        return next(file, None)
    if name == "chunks":
        if peer is not None:
            rest = file.read()
            return [rest[i : i + arguments[0]] for i in range(0, len(rest), arguments[0])]
        return list(file.chunks(*arguments))
    if peer is not None:
        if arguments == [2**40]:  # the peer would allocate it
            arguments = [1 << 20]
        if name in ("pread", "pwrite"):
            return getattr(peer, name)(*arguments)
        if name == "sync":
            return file.flush()
    if name == "fileno":
        descriptor = file.fileno()
        if peer is not None or file.mode == "rb":
            return None
        return None if descriptor >= 0 else descriptor
    return getattr(file, name)(*arguments)


def outcome(*arguments: Any) -> tuple[str, Any]:
    try:
        return "value", run(*arguments)
    except AttributeError:  # BufferedWriter has no peek
        assert arguments[1][0] == "peek"
        return "error", (io.UnsupportedOperation, None)
    except (OSError, ValueError) as error:
        # An UnsupportedOperation is both; the errno tells OSErrors apart.
        return "error", (type(error), getattr(error, "errno", None))


def agree(operation: tuple[Any, ...], ours: Any, theirs: Any) -> None:
    """read1, readinto1 and peek may bring any part of what lies ahead."""
    if operation[0] in ("read1", "readinto1", "peek") and ours[0] == theirs[0] == "value":
        mine, other = ours[1], theirs[1]
        if operation[0] == "readinto1":
            mine, other = mine[1], other[1]
        assert bool(mine) == bool(other)
        shorter = min(len(mine), len(other))
        assert mine[:shorter] == other[:shorter]
        if operation[0] != "peek":
            limit = operation[1]
            assert limit < 0 or len(mine) <= limit
    else:
        assert ours == theirs


def scaled(operation: tuple[Any, ...], scale: int) -> tuple[Any, ...]:
    """The same with larger pieces: whence and 2**40 stay what they are."""
    name, *arguments = operation
    larger = [
        [part * scale for part in a] if isinstance(a, list)
        else a if a is None or a == 2**40 or a == -1
        else a * scale
        for a in arguments
    ]  # fmt: skip
    if name == "seek":
        larger[1] = arguments[1]
    return (name, *larger)


@pytest.mark.parametrize("scale", [1, 1_000])
@pytest.mark.parametrize("mode", MODES)
@given(
    initial=st.binary(max_size=100) | st.text("abc\n", max_size=100).map(str.encode),
    chunk=st.integers(1, 40),
    script=st.lists(operations, max_size=25),
)
def test_same_as_builtin(mode, scale, initial, chunk, script):
    initial, chunk = initial * scale, chunk * scale
    script = [scaled(operation, scale) for operation in script]
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("ours", "theirs")]
        if "x" not in mode:
            for path in paths:
                with open(path, "wb") as new:
                    new.write(initial)
        ours = pyio_chunked.open(paths[0], mode, chunk_size=chunk)
        theirs = peer_open(paths[1], mode, chunk)
        peer = Peer(theirs)
        moved = False
        try:
            assert ours.mode == theirs.mode
            assert ours.tell() == theirs.tell()
            for operation in script:
                note(repr(operation))
                if operation == ("readline", 0) and not theirs.readable():
                    continue  # b"" of io, by accident
                if operation == ("read", None) and not theirs.readable():
                    operation = ("read", -1)  # BufferedWriter.read takes only an int
                if operation[0] == "read1" and theirs.writable():
                    theirs.flush()  # BufferedRandom.read1 forgets to: bytes land elsewhere
                mine = outcome(ours, operation, None)
                other = outcome(theirs, operation, peer)
                note(f"    ours {mine}")
                agree(operation, mine, other)
                if operation[0] in ("read1", "readinto1"):
                    theirs.seek(ours.tell())
                if "a" in mode and operation[0] in ("seek", "truncate", "read1", "readinto1"):
                    moved = True
                if moved:
                    # What is pending will land at the end, wherever that is; the
                    # peer gathers one byte more before it writes.
                    ours.flush()
                    theirs.flush()
                assert ours.tell() == theirs.tell()
            if ours.writable():
                ours.flush()
                theirs.flush()
        finally:
            ours.close()
            theirs.close()
        with open(paths[0], "rb") as mine, open(paths[1], "rb") as other:
            assert mine.read() == other.read()
