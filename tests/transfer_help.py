# SPDX-License-Identifier: MIT
"""What the tests of transfer share: sources, methods of this build, faults."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyio_chunked
from pyio_chunked import _core

CHUNK = 262144


def noise(size: int, seed: object = 1) -> bytes:
    return random.Random(repr(seed)).randbytes(size)


def file_of(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


# Methods that serve two regular files; the portable build has the last two.
KERNEL = [] if pyio_chunked.build_info()["portable"] else ["copy_file_range", "sendfile"]
KERNEL_CASES = KERNEL or [pytest.param("none", marks=pytest.mark.skip(reason="the portable build has none"))]
FILE_METHODS = [*KERNEL, "mapped", "chunked"]

# The system call that each method moves bytes with.
CALL_OF = {
    "reflink": "clone",
    "copy_file_range": "copy_file_range",
    "sendfile": "sendfile",
    "splice": "splice",
    "mapped": "mmap",
    "chunked": "pwrite",
}

# facts.md: what the kernel says for "not this way" (between regular files).
REFUSALS = [
    errno.EXDEV,
    errno.EINVAL,
    errno.EBADF,
    errno.ENOSYS,
    errno.EOPNOTSUPP,
    errno.EPERM,
    errno.EACCES,
    errno.EAGAIN,
    errno.ENODATA,
    errno.ETXTBSY,
    errno.EOVERFLOW,
    errno.ENOTTY,
    errno.ESPIPE,
]
# No other way is better.
ENDS = [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EFBIG]


@contextlib.contextmanager
def fault(call: str, **how: Any) -> Iterator[None]:
    _core._fault_add(call, **how)
    try:
        yield
    finally:
        _core._fault_clear()


@contextlib.contextmanager
def counted() -> Iterator[dict[str, int]]:
    """The system calls and allocations made inside, by name."""
    calls: dict[str, int] = {}
    _core._fault_count()
    try:
        yield calls
        calls.update(_core._fault_calls())
    finally:
        _core._fault_clear()


def sysctl_calls(calls: dict[str, int]) -> int:
    """How many of them the kernel saw."""
    memory = {"malloc", "calloc", "realloc", "allow_result", "thread_start"}
    return sum(n for name, n in calls.items() if name not in memory)


class Pipe:
    """A pipe whose other end a thread feeds or drains."""

    def __init__(self, feed: bytes | None = None, step: int = 65536) -> None:
        self.r, self.w = os.pipe()
        self.got = bytearray()
        self.feeding = feed is not None
        self.thread = threading.Thread(target=self._feed if self.feeding else self._drain, args=(feed, step))
        self.thread.start()

    def _feed(self, data: bytes, step: int) -> None:
        view = memoryview(data)
        with contextlib.suppress(BrokenPipeError):
            while view:
                view = view[os.write(self.w, view[:step]) :]
        os.close(self.w)

    def _drain(self, _: object, step: int) -> None:
        while piece := os.read(self.r, step):
            self.got += piece

    def done(self) -> bytes:
        """Closes our end, waits for the thread; what it got."""
        os.close(self.r if self.feeding else self.w)
        self.thread.join()
        if not self.feeding:
            os.close(self.r)
        return bytes(self.got)
