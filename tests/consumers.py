# SPDX-License-Identifier: MIT
"""What the consumers' suites share: every kind of object that we return, over
given bytes, and a proxy that counts what a consumer calls.

Each consumer gets its result from our object and from io.BytesIO over the same
bytes, and both have to be equal.
"""

from __future__ import annotations

import bz2
import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyio_chunked

Make = Callable[[bytes, Path, ExitStack], Any]


def file_of_path(data: bytes, folder: Path, stack: ExitStack) -> Any:
    (folder / "plain").write_bytes(data)
    return stack.enter_context(pyio_chunked.open(folder / "plain"))


def file_of_descriptor(data: bytes, folder: Path, stack: ExitStack) -> Any:
    (folder / "plain").write_bytes(data)
    return stack.enter_context(pyio_chunked.open(os.open(folder / "plain", os.O_RDONLY)))


def file_with_small_chunk(data: bytes, folder: Path, stack: ExitStack) -> Any:
    (folder / "plain").write_bytes(data)
    return stack.enter_context(pyio_chunked.open(folder / "plain", chunk_size=4096))


def opened_gzip(data: bytes, folder: Path, stack: ExitStack) -> Any:
    (folder / "packed.gz").write_bytes(gzip.compress(data, 1))
    return stack.enter_context(pyio_chunked.open(folder / "packed.gz", compression="infer"))


def gzip_file(data: bytes, folder: Path, stack: ExitStack) -> Any:
    half = len(data) // 2
    (folder / "packed.gz").write_bytes(gzip.compress(data[:half], 1) + gzip.compress(data[half:], 1))
    return stack.enter_context(pyio_chunked.GzipFile(folder / "packed.gz"))


def gzip_file_of_object(data: bytes, folder: Path, stack: ExitStack) -> Any:
    return stack.enter_context(pyio_chunked.GzipFile(fileobj=io.BytesIO(gzip.compress(data, 1))))


def zlib_reader(data: bytes, folder: Path, stack: ExitStack) -> Any:
    return stack.enter_context(pyio_chunked.InflateReader(io.BytesIO(zlib.compress(data, 1)), "zlib"))


def raw_reader(data: bytes, folder: Path, stack: ExitStack) -> Any:
    packer = zlib.compressobj(1, wbits=-15)
    (folder / "raw").write_bytes(packer.compress(data) + packer.flush())
    return stack.enter_context(pyio_chunked.InflateReader(folder / "raw", "raw"))


def member(method: int, *, as_object: bool = False) -> Make:
    def make(data: bytes, folder: Path, stack: ExitStack) -> Any:
        path = folder / "archive.zip"
        with zipfile.ZipFile(path, "w", method, compresslevel=1 if method != 0 else None) as out:
            out.writestr("before", b"x" * 100)
            out.writestr("member", data)
        source: Any = io.BytesIO(path.read_bytes()) if as_object else path
        archive = stack.enter_context(pyio_chunked.ZipFile(source))
        return stack.enter_context(archive.open("member"))

    return make


def member_of_reference(data: bytes, folder: Path, stack: ExitStack) -> Any:
    path = folder / "archive.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
        out.writestr("member", data)
    with pyio_chunked.ZipFile(path) as archive:
        (reference,) = archive.refs()
    return stack.enter_context(reference.open())


def data_reader(data: bytes, folder: Path, stack: ExitStack) -> Any:
    (folder / "plain").write_bytes(data)
    return stack.enter_context(pyio_chunked.DataReader(folder / "plain"))


MAKERS: dict[str, Make] = {
    "File": file_of_path,
    "File of a descriptor": file_of_descriptor,
    "File, small chunk": file_with_small_chunk,
    "open infer": opened_gzip,
    "GzipFile": gzip_file,
    "GzipFile of an object": gzip_file_of_object,
    "InflateReader zlib": zlib_reader,
    "InflateReader raw": raw_reader,
    "deflated member": member(zipfile.ZIP_DEFLATED),
    "deflated member of an object": member(zipfile.ZIP_DEFLATED, as_object=True),
    "stored member": member(zipfile.ZIP_STORED),
    "bzip2 member": member(zipfile.ZIP_BZIP2),
    "EntryRef": member_of_reference,
    "DataReader": data_reader,
}

# Those whose descriptor, if any, does not lead to their bytes.
DECODED = [name for name in MAKERS if not name.startswith("File") and name != "DataReader"]


class Counting(io.BufferedIOBase):
    """Passes everything on, and counts the reading calls."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.calls = 0

    def counted(self, name: str, *arguments: Any) -> Any:
        self.calls += 1
        return getattr(self.inner, name)(*arguments)

    def read(self, size: int | None = -1, /) -> bytes:
        return self.counted("read", size)

    def read1(self, size: int = -1, /) -> bytes:
        return self.counted("read1", size)

    def readinto(self, buffer: Any, /) -> int:
        return self.counted("readinto", buffer)

    def readinto1(self, buffer: Any, /) -> int:
        return self.counted("readinto1", buffer)

    def readline(self, size: int | None = -1, /) -> bytes:
        return self.counted("readline", size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self.inner.seek(offset, whence)

    def tell(self) -> int:
        return self.inner.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self.inner.seekable()


def packed_with(module: Any, data: bytes) -> bytes:
    return {gzip: gzip.compress, bz2: bz2.compress}[module](data)
