# SPDX-License-Identifier: MIT
# Threshold-based transfer, typed; re-exported by the package.
import os
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypedDict, TypeVar, Unpack, overload

_StrPath: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
_Progress: TypeAlias = Callable[[int, int | None], object] | bool | None
_Method: TypeAlias = Literal[
    "auto", "reflink", "copy_file_range", "sendfile", "splice", "mapped", "chunked"
]  # fmt: skip
_Choice: TypeAlias = Literal["auto", "always", "never"]
_PathT = TypeVar("_PathT", str, bytes)
_DataT_co = TypeVar("_DataT_co", covariant=True)
_DataT_contra = TypeVar("_DataT_contra", contravariant=True)
_DataT = TypeVar("_DataT")

class _Reads(Protocol[_DataT_co]):
    def read(self, size: int, /) -> _DataT_co: ...

class _Writes(Protocol[_DataT_contra]):
    def write(self, data: _DataT_contra, /) -> object: ...

class _ReadsInto(Protocol):
    def readinto(self, buffer: memoryview, /) -> int | None: ...

class _WritesViews(Protocol):
    def write(self, data: memoryview, /) -> int | None: ...

class _HasFileno(Protocol):
    def fileno(self) -> int: ...

_Source: TypeAlias = _StrPath | int | _HasFileno | _ReadsInto | _Reads[bytes]
_Target: TypeAlias = _StrPath | int | _HasFileno | _WritesViews

class _CopyOptions(TypedDict, total=False):
    follow_symlinks: bool
    reflink: _Choice
    sparse: _Choice
    method: _Method
    atomic: bool
    sync: bool
    progress: _Progress

class Transfer(NamedTuple):
    count: int  # type: ignore[assignment]  # the field hides tuple.count
    method: str
    holes: int
    fallbacks: tuple[tuple[str, int], ...]
    def _repr_html_(self) -> str: ...

def transfer(
    source: _Source,
    target: _Target,
    count: int | None = None,
    *,
    source_offset: int | None = None,
    target_offset: int | None = None,
    method: _Method = "auto",
    threshold: int | None = None,
    chunk_size: int | None = None,
    sparse: _Choice = "never",
    progress: _Progress = None,
) -> Transfer: ...
def copyfile(
    src: _StrPath,
    dst: _StrPath,
    *,
    follow_symlinks: bool = True,
    reflink: _Choice = "auto",
    sparse: _Choice = "auto",
    method: _Method = "auto",
    atomic: bool = False,
    sync: bool = False,
    progress: _Progress = None,
) -> Transfer: ...
def _copyfile_by_rules(
    src: _StrPath,
    dst: _StrPath,
    *,
    follow_symlinks: bool = True,
    reflink: str = "auto",
    sparse: str = "auto",
    method: str = "auto",
    atomic: bool = False,
    sync: bool = False,
    progress: _Progress = None,
    metadata: bool = False,
) -> Transfer: ...
@overload
def copy(src: _PathT | os.PathLike[_PathT], dst: _PathT, **options: Unpack[_CopyOptions]) -> _PathT: ...
@overload
def copy(src: _StrPath, dst: _StrPath, **options: Unpack[_CopyOptions]) -> Any: ...
def copytree(
    src: _StrPath,
    dst: _StrPath,
    symlinks: bool = False,
    ignore: Callable[[Any, list[Any]], Iterable[Any]] | None = None,
    *,
    dirs_exist_ok: bool = False,
    workers: int | None = None,
    copy_function: Callable[[Any, Any], object] | None = None,
    ignore_dangling_symlinks: bool = False,
    progress: _Progress = None,
    reflink: _Choice = "auto",
    sparse: _Choice = "auto",
    method: _Method = "auto",
    atomic: bool = False,
    sync: bool = False,
) -> Any: ...
def copyfileobj(fsrc: _Reads[_DataT], fdst: _Writes[_DataT], length: int = 0) -> None: ...
def probe(source: _Source, target: _Target) -> tuple[str, ...]: ...

class Thresholds(NamedTuple):
    mapped: int
    parallel: int
    huge_pages: int

def thresholds() -> Thresholds: ...
def set_thresholds(
    *, mapped: int | None = None, parallel: int | None = None, huge_pages: int | None = None
) -> Thresholds: ...
def calibrate(
    directory: _StrPath | None = None, *, budget: float = 2.0, progress: _Progress = None
) -> Thresholds: ...
