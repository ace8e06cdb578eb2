# SPDX-License-Identifier: MIT
"""transfer against a model made of bytes: any pair of seekable ends, any
ranges, any method, calls that come back short or refuse."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from transfer_help import FILE_METHODS, KERNEL, noise

import pyio_chunked
from pyio_chunked import _core, transfer

BOUNDS = [0, 1, 4095, 4096, 4097, 8192, 65535, 65536, 65537, 262143, 262144, 262145]
sizes = st.one_of(st.sampled_from(BOUNDS), st.integers(0, 300_000))
KINDS = ["path", "fd", "raw", "buffered", "File", "BytesIO"]


class End:
    """One end of a kind, with content and a position."""

    def __init__(self, folder: Path, name: str, kind: str, content: bytes, at: int) -> None:
        self.path, self.kind = folder / name, kind
        self.path.write_bytes(content)
        self.file: Any = None
        if kind == "path":
            self.object: Any = self.path
            return
        if kind == "BytesIO":
            self.file = io.BytesIO(content)
        elif kind == "File":
            self.file = pyio_chunked.open(self.path, "r+b")
        else:
            self.file = open(self.path, "r+b", buffering=-1 if kind == "buffered" else 0)
        self.file.seek(max(at - 3, 0))
        self.file.read(min(at, 3))  # so that something was read ahead
        assert self.file.tell() == at
        self.object = self.file.fileno() if kind == "fd" else self.file

    def position(self) -> int | None:
        if self.file is None:
            return None
        return self.file.tell()

    def content(self) -> bytes:
        if self.kind == "BytesIO":
            return self.file.getvalue()
        if self.file is not None:
            self.file.flush()
        return self.path.read_bytes()

    def __enter__(self) -> End:
        return self

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            self.file.close()


faults = st.lists(
    st.tuples(
        st.sampled_from(["clone", "clone_range", "copy_file_range", "sendfile", "pread", "pwrite", "mmap"]),
        st.sampled_from(["short", "EINTR", "refuse"]),
        st.integers(1, 4),
        st.integers(1, 70_000),
    ),
    max_size=4,
)


@given(data=st.data())
def test_any_ends_any_ranges(data):
    draw = data.draw
    source_size, old_size = draw(sizes), draw(sizes)
    kinds = draw(st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)))
    at = [draw(st.integers(0, size)) for size in (source_size, old_size)]
    offsets = [draw(st.one_of(st.none(), st.integers(0, size + 5000))) for size in (source_size, old_size)]
    count = draw(st.one_of(st.none(), sizes))
    plain = "BytesIO" not in kinds
    method = draw(st.sampled_from(["auto", *FILE_METHODS])) if plain else "auto"
    options = {
        "method": method,
        "sparse": draw(st.sampled_from(["auto", "always", "never"])),
        "threshold": draw(st.one_of(st.none(), sizes)),
        "chunk_size": draw(st.one_of(st.none(), st.sampled_from([1000, 4096, 65536]))),
    }
    content = noise(source_size, source_size)
    hole = draw(st.integers(0, source_size))
    content = content[:hole] + bytes(min(70_000, source_size - hole)) + content[hole + 70_000 :]
    old = noise(old_size, "old")
    drawn = draw(faults)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        source = stack.enter_context(End(folder, "source", kinds[0], content, at[0]))
        target = stack.enter_context(End(folder, "target", kinds[1], old, at[1]))
        for call, how, first, short in drawn:
            if how == "short" and call not in ("mmap", "clone", "clone_range"):
                _core._fault_add(call, max_nbytes=short, first=first)
            elif how == "EINTR" and call != "mmap":
                _core._fault_add(call, error=errno.EINTR, first=first)
            elif how == "refuse" and method == "auto" and call not in ("pread", "pwrite"):
                _core._fault_add(call, error=errno.EINVAL, first=first)
        try:
            result = transfer(
                source.object,
                target.object,
                count,
                source_offset=offsets[0],
                target_offset=offsets[1],
                **options,
            )
        finally:
            _core._fault_clear()
        begin = offsets[0] if offsets[0] is not None else 0 if kinds[0] == "path" else at[0]
        to = offsets[1] if offsets[1] is not None else 0 if kinds[1] == "path" else at[1]
        moved = content[begin:] if count is None else content[begin : begin + count]
        if kinds[1] == "path" and offsets[1] is None:
            old = b""
        if moved:
            old = old + bytes(max(to - len(old), 0))
            old = old[:to] + moved + old[to + len(moved) :]
        assert result.count == len(moved)
        assert target.content() == old
        assert result.holes <= result.count
        if method != "auto":
            assert result.method == method
        for end, offset, start, stood in zip((source, target), offsets, (begin, to), at, strict=True):
            if end.file is not None:
                assert end.position() == (stood if offset is not None else start + len(moved))
        assert source.content() == content


def test_the_model_reaches_every_method():
    assert set(FILE_METHODS) == {*KERNEL, "mapped", "chunked"}
    assert os.path.basename(__file__) == "test_transfer_model.py"
