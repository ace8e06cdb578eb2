# SPDX-License-Identifier: MIT
# The public API, typed. One section for each system, in the order of the docs.
import io
import os
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, TypeAlias, final, overload

from typing_extensions import Buffer, disjoint_base

from pyio_chunked._build_info import build_info as build_info
from pyio_chunked._data import DataReader as DataReader
from pyio_chunked._data import DataWriter as DataWriter
from pyio_chunked._data import ShortReadError as ShortReadError
from pyio_chunked._errors import BadStream as BadStream
from pyio_chunked._errors import CutShort as CutShort
from pyio_chunked._errors import GzipLimitError as GzipLimitError
from pyio_chunked._errors import LimitError as LimitError
from pyio_chunked._inflate import gzip_open as gzip_open
from pyio_chunked._limits import SAFE_LIMITS as SAFE_LIMITS
from pyio_chunked._limits import Limits as Limits
from pyio_chunked._transfer import Thresholds as Thresholds
from pyio_chunked._transfer import Transfer as Transfer
from pyio_chunked._transfer import calibrate as calibrate
from pyio_chunked._transfer import copy as copy
from pyio_chunked._transfer import copyfile as copyfile
from pyio_chunked._transfer import copyfileobj as copyfileobj
from pyio_chunked._transfer import copytree as copytree
from pyio_chunked._transfer import probe as probe
from pyio_chunked._transfer import set_thresholds as set_thresholds
from pyio_chunked._transfer import thresholds as thresholds
from pyio_chunked._transfer import transfer as transfer
from pyio_chunked._zip import ZipFile as ZipFile
from pyio_chunked._zip_path import Path as Path
from pyio_chunked._zip_path import is_zipfile as is_zipfile
from pyio_chunked._zip_refs import EntryRef as EntryRef
from pyio_chunked._zip_refs import partition as partition
from pyio_chunked._zip_refs import scan as scan

__all__ = [
    "SAFE_LIMITS",
    "DataReader",
    "DataWriter",
    "EntryRef",
    "File",
    "GzipFile",
    "InflateReader",
    "Inflater",
    "LimitError",
    "Limits",
    "Path",
    "PoolStats",
    "ShortReadError",
    "Thresholds",
    "Transfer",
    "ZipFile",
    "build_info",
    "calibrate",
    "copy",
    "copyfile",
    "copyfileobj",
    "copytree",
    "gzip_open",
    "inflate",
    "is_zipfile",
    "open",
    "partition",
    "pool",
    "probe",
    "read_bytes",
    "read_into",
    "scan",
    "set_thresholds",
    "thresholds",
    "transfer",
    "write_bytes",
]

__version__: str

def __dir__() -> list[str]: ...

_StrPath: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
_Progress: TypeAlias = Callable[[int, int | None], object] | bool | None

# ------------------------------------------------------------ bounded chunked I/O

_BinaryMode: TypeAlias = Literal[
    "r", "rb", "br", "r+", "+r", "rb+", "r+b", "br+", "b+r", "+rb", "+br",
    "w", "wb", "bw", "w+", "+w", "wb+", "w+b", "bw+", "b+w", "+wb", "+bw",
    "a", "ab", "ba", "a+", "+a", "ab+", "a+b", "ba+", "b+a", "+ab", "+ba",
    "x", "xb", "bx", "x+", "+x", "xb+", "x+b", "bx+", "b+x", "+xb", "+bx",
]  # fmt: skip
_TextMode: TypeAlias = Literal[
    "rt", "tr", "rt+", "r+t", "+rt", "tr+", "t+r", "+tr",
    "wt", "tw", "wt+", "w+t", "+wt", "tw+", "t+w", "+tw",
    "at", "ta", "at+", "a+t", "+at", "ta+", "t+a", "+ta",
    "xt", "tx", "xt+", "x+t", "+xt", "tx+", "t+x", "+tx",
]  # fmt: skip

@overload
def open(
    file: _StrPath | int, mode: _BinaryMode = "rb", *, chunk_size: int = 262144, compression: None = None
) -> File: ...
@overload
def open(
    file: _StrPath | int,
    mode: Literal["r", "rb", "br"] = "rb",
    *,
    chunk_size: int = 262144,
    compression: Literal["gzip"],
) -> GzipFile: ...
@overload
def open(
    file: _StrPath | int,
    mode: Literal["r", "rb", "br"] = "rb",
    *,
    chunk_size: int = 262144,
    compression: Literal["zlib"],
) -> InflateReader: ...
@overload
def open(
    file: _StrPath | int,
    mode: Literal["r", "rb", "br"] = "rb",
    *,
    chunk_size: int = 262144,
    compression: Literal["infer"],
) -> io.BufferedIOBase: ...
@overload
def open(
    file: _StrPath | int,
    mode: _TextMode,
    *,
    chunk_size: int = 262144,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    compression: Literal["infer", "gzip", "zlib"] | None = None,
) -> io.TextIOWrapper: ...
@overload
def open(
    file: _StrPath | int,
    mode: str,
    *,
    chunk_size: int = 262144,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    compression: Literal["infer", "gzip", "zlib"] | None = None,
) -> Any: ...

@disjoint_base
class File(io.BufferedIOBase):
    name: Any
    @property
    def mode(self) -> str: ...
    @property
    def chunk_size(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def __new__(cls, file: _StrPath | int, mode: str = "rb", *, chunk_size: int = 262144) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        type: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...
    # None: it would block, which only a non-blocking descriptor does.
    def read(self, size: int | None = -1, /) -> bytes: ...
    def read1(self, size: int = -1, /) -> bytes: ...
    def readinto(self, buffer: Buffer, /) -> int: ...
    def readinto1(self, buffer: Buffer, /) -> int: ...
    def read_buffer(self, size: int | None = -1, /) -> memoryview: ...
    def peek(self, size: int = 0, /) -> bytes: ...
    def _unread(self, data: bytes, /) -> None: ...
    def readline(self, size: int | None = -1, /) -> bytes: ...
    def pread(self, size: int | None, offset: int, /) -> bytes: ...
    def preadinto(self, buffer: Buffer, offset: int, /) -> int: ...
    def chunks(self, size: int | None = None) -> Iterator[bytes]: ...
    def write(self, data: Buffer, /) -> int: ...
    def writelines(self, lines: Iterable[Buffer], /) -> None: ...
    def pwrite(self, data: Buffer, offset: int, /) -> int: ...
    def flush(self) -> None: ...
    def sync(self, *, data_only: bool = False) -> None: ...
    def truncate(self, size: int | None = None, /) -> int: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...
    def tell(self) -> int: ...
    def fileno(self) -> int: ...
    def isatty(self) -> bool: ...
    def readable(self) -> bool: ...
    def writable(self) -> bool: ...
    def seekable(self) -> bool: ...
    def detach(self) -> io.FileIO: ...
    def close(self) -> None: ...

def read_bytes(
    file: _StrPath | int, *, offset: int = 0, size: int | None = -1, threads: int | None = None
) -> bytes: ...
def read_into(
    file: _StrPath | int, buffer: Buffer, *, offset: int = 0, threads: int | None = None
) -> int: ...
def write_bytes(
    file: _StrPath | int, data: Buffer | Iterable[Buffer], *, atomic: bool = False, sync: bool = False
) -> int: ...

# ------------------------------------------------------------------ pooled inflate

class PoolStats(NamedTuple):
    limit: int
    held: int
    in_use: int
    high_water: int
    hits: int
    misses: int
    discarded: int
    def _repr_html_(self) -> str: ...

@final
class _Pool:
    def stats(self) -> PoolStats: ...
    def set_limit(self, size: int, /) -> None: ...
    def trim(self, keep: int = 0, /) -> int: ...

pool: _Pool

_Format: TypeAlias = Literal["auto", "raw", "zlib", "gzip"]

@overload
def inflate(
    data: Buffer, format: _Format = "auto", *, max_size: int | None = None, out: None = None
) -> bytes: ...
@overload
def inflate(data: Buffer, format: _Format = "auto", *, max_size: int | None = None, out: Buffer) -> int: ...

@disjoint_base
class Inflater:
    def __new__(cls, wbits: int = 15, zdict: Buffer = b"") -> Self: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    def decompress(self, data: Buffer, /, max_length: int = 0) -> bytes: ...
    def flush(self, length: int = 16384, /) -> bytes: ...
    def copy(self) -> Self: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any, /) -> Self: ...

@disjoint_base
class InflateReader(io.BufferedIOBase):
    name: Any
    @property
    def mode(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    def __init__(
        self,
        source: Any,
        format: _Format = "auto",
        *,
        max_size: int | None = None,
        chunk_size: int | None = None,
    ) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        type: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...
    def read(self, size: int | None = -1, /) -> bytes: ...
    def read1(self, size: int = -1, /) -> bytes: ...
    def readinto(self, buffer: Buffer, /) -> int: ...
    def readinto1(self, buffer: Buffer, /) -> int: ...
    def peek(self, size: int = 0, /) -> bytes: ...
    def readline(self, size: int | None = -1, /) -> bytes: ...
    def seek(self, offset: int, whence: int = 0) -> int: ...
    def tell(self) -> int: ...
    def fileno(self) -> int: ...
    def source_fileno(self) -> int: ...
    def readable(self) -> bool: ...
    def writable(self) -> bool: ...
    def seekable(self) -> bool: ...
    def close(self) -> None: ...

class GzipFile(InflateReader):
    @property
    def mtime(self) -> int | None: ...
    @property
    def fileobj(self) -> Any: ...
    def __init__(
        self,
        filename: _StrPath | None = None,
        mode: str | None = None,
        compresslevel: int = 9,
        fileobj: Any = None,
        mtime: Any = None,
        *,
        threads: int | None = 1,
        max_size: int | None = None,
    ) -> None: ...
    def rewind(self) -> None: ...
