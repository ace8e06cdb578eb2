# SPDX-License-Identifier: MIT
"""What opening a compressed file has of policy: modes, text, and what the first
bytes mean. The bytes move in C (csrc/inflate, csrc/glue/inflate).

>>> with gzip_open("log.gz", "rt") as lines:  # doctest: +SKIP
...     errors = sum("ERROR" in line for line in lines)
"""

from __future__ import annotations

import io
import os
from typing import Any, Literal, overload

from pyio_chunked import File, GzipFile, InflateReader
from pyio_chunked._core import _own_source


def _wrapped(
    stream: Any, mode: str, encoding: str | None, errors: str | None, newline: str | None
) -> io.TextIOWrapper:
    try:
        text = io.TextIOWrapper(stream, io.text_encoding(encoding, 3), errors, newline)
    except BaseException:
        stream.close()
        raise
    text.mode = mode  # type: ignore[misc]  # as builtins.open does
    return text


@overload
def gzip_open(filename: Any, mode: Literal["r", "rb"] = "rb", **options: Any) -> GzipFile: ...
@overload
def gzip_open(filename: Any, mode: Literal["rt"], **options: Any) -> io.TextIOWrapper: ...
@overload
def gzip_open(filename: Any, mode: str, **options: Any) -> GzipFile | io.TextIOWrapper: ...
def gzip_open(filename: Any, mode: str = "rb", **options: Any) -> GzipFile | io.TextIOWrapper:
    """Open a gzip file to read, as gzip.open: a path or a binary file object.

    "r" and "rb" give a GzipFile, "rt" an io.TextIOWrapper over one. options:
    encoding, errors and newline (text only); threads and max_size as GzipFile;
    compresslevel is of no effect. ValueError for a mode that writes.
    """
    encoding, errors, newline = (options.pop(name, None) for name in ("encoding", "errors", "newline"))
    options.pop("compresslevel", None)
    if "t" in mode:
        if "b" in mode:
            raise ValueError(f"Invalid mode: {mode!r}")
    else:
        for name, value in (("encoding", encoding), ("errors", errors), ("newline", newline)):
            if value is not None:
                raise ValueError(f"Argument {name!r} not supported in binary mode")
    binary_mode = mode.replace("t", "")
    if isinstance(filename, (str, bytes, os.PathLike)):
        stream = GzipFile(filename, binary_mode, **options)
    elif hasattr(filename, "read") or hasattr(filename, "readinto"):
        stream = GzipFile(None, binary_mode, fileobj=filename, **options)
    else:
        raise TypeError("filename must be a str or bytes object, or a file")
    return _wrapped(stream, mode, encoding, errors, newline) if "t" in mode else stream


def open_compressed(
    file: Any,
    mode: str | None,
    compression: str,
    chunk_size: int,
    encoding: str | None,
    errors: str | None,
    newline: str | None,
) -> Any:
    """open() with compression: modes and options are checked already."""
    mode = mode or "rb"
    if compression not in ("infer", "gzip", "zlib"):
        raise ValueError(f"compression must be 'infer', 'gzip' or 'zlib', not {compression!r}")
    if "r" not in mode or "+" in mode:
        raise ValueError(f"mode {mode!r}: compression is for reading; gzip.open writes")
    plain = File(file, "rb", chunk_size=chunk_size)
    try:
        stream = _decoded(plain, file, compression, chunk_size)
    except BaseException:
        plain.close()  # a descriptor, too: it was ours from File on, as builtins.open has it
        raise
    return _wrapped(stream, mode, encoding, errors, newline) if "t" in mode else stream


_GZIP, _ZIP = b"\x1f\x8b", (b"PK\3\4", b"PK\5\6")


def _first_bytes(plain: File) -> bytes:
    """As many as tell a format from others, however they come in; no more, a terminal would wait."""
    first = b""
    while first not in (_GZIP, *_ZIP) and any(magic.startswith(first) for magic in (_GZIP, *_ZIP)):
        byte = plain.read(1)
        if not byte:
            break
        first += byte
    plain._unread(first)
    return first


def _decoded(plain: File, file: Any, compression: str, chunk_size: int) -> Any:
    """The stream of what is in the file; closes it when it is closed."""
    stream: InflateReader
    first = _first_bytes(plain) if compression == "infer" else b""
    if first.startswith(_ZIP):
        return _only_member(plain, file)
    if compression == "infer" and not first.startswith(_GZIP):
        return plain
    if compression == "zlib":
        stream = InflateReader(plain, "zlib", chunk_size=chunk_size)
    else:
        stream = GzipFile(fileobj=plain)
    _own_source(stream)
    return stream


def _only_member(plain: File, file: Any) -> Any:
    from pyio_chunked import ZipFile

    if not plain.seekable():
        raise ValueError(f"{file!r} is a zip archive that can't be read from its end: it is not seekable")
    with ZipFile(plain) as archive:  # which takes a descriptor of its own
        names = archive.namelist()
        if len(names) != 1:
            raise ValueError(f"{file!r} is a zip archive of {len(names)} members, not of one")
        member = archive.open(names[0])
    plain.close()
    return member
