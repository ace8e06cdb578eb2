# SPDX-License-Identifier: MIT
"""What opening has of policy: the layers of a text file, and pickled files.

The bytes move in C (csrc/glue/io); nothing here is on the
way of one.
"""

from __future__ import annotations

import io
import os
from contextlib import suppress
from typing import Any

from pyio_chunked import File, open  # noqa: A004


def open_text(
    file: Any,
    mode: str,
    chunk_size: int,
    encoding: str | None,
    errors: str | None,
    newline: str | None,
) -> io.TextIOWrapper:
    """The wrapped file for a mode with "t"."""
    binary_mode = mode.replace("t", "")
    buffer: Any
    if binary_mode == "r" and not isinstance(file, int):
        # TextIOWrapper reads an exact BufferedReader without method calls.
        buffer = io.BufferedReader(io.FileIO(os.fspath(file), "r"), buffer_size=chunk_size)
    else:
        buffer = open(file, binary_mode, chunk_size=chunk_size)
    try:
        text = io.TextIOWrapper(buffer, io.text_encoding(encoding, 3), errors, newline)
    except BaseException:
        buffer.close()  # a descriptor too, as builtins.open does
        raise
    text.mode = mode  # type: ignore[misc]  # as builtins.open does
    return text


def reduce_file(
    file: File, path: Any, position: int, size: int, seconds: int, nanoseconds: int, inode: int
) -> tuple[Any, ...]:
    """How a File is pickled: by its path, and what tells that it is the same."""
    fingerprint = (size, seconds * 10**9 + nanoseconds, inode)
    arguments = (type(file), _absolute(path, file.fileno()), file.chunk_size, position, fingerprint)
    state = file.__dict__
    return (reopen_file, arguments, state) if state else (reopen_file, arguments)


def _absolute(path: Any, fd: int) -> Any:
    """A path that leads to the open file from everywhere: the current folder may be another by now."""
    absolute = os.path.abspath(path)
    opened = os.fstat(fd)
    if absolute == path or _is(absolute, opened):
        return absolute
    with suppress(OSError):
        now = os.readlink(f"/proc/self/fd/{fd}")  # where Linux has it
        if _is(now, opened):
            return os.fsencode(now) if isinstance(absolute, bytes) else now
    return absolute


def _is(path: Any, opened: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), opened)
    except OSError:
        return False


def reopen_file(
    kind: type[File], path: Any, chunk_size: int, position: int, fingerprint: tuple[int, int, int]
) -> File:
    file = kind(path, "rb", chunk_size=chunk_size)
    try:
        found = os.fstat(file.fileno())
        if (found.st_size, found.st_mtime_ns, found.st_ino) != fingerprint:
            raise OSError(f"{path!r} is not the file that was pickled: its size, mtime or inode changed")
        file.seek(position)
    except BaseException:
        file.close()
        raise
    return file
