# SPDX-License-Identifier: MIT
"""Archives as a file system of fsspec, protocol "czip".

>>> import fsspec
>>> with fsspec.open("czip://2026/05.csv::logs.zip") as file:     # doctest: +SKIP
...     file.readline()

The installed package registers the protocol by its entry point; register()
does so in a tree that was not installed, and makes fsspec gunzip by our reader.
"""

from __future__ import annotations

import io
import os
import zipfile
from typing import Any

import pyio_chunked

try:
    import fsspec
    from fsspec.archive import AbstractArchiveFileSystem
except ImportError:
    raise ImportError("pyio_chunked.fsspec needs fsspec: pip install 'pyio_chunked[fsspec]'")

__all__ = ["CZipFileSystem", "register"]


class CZipFileSystem(AbstractArchiveFileSystem):  # type: ignore[misc]  # it has no types
    """A zip archive, read only; names and results as fsspec's "zip".

    A local archive is read by position: one instance may serve many threads,
    and survives fork. fo: a path, a URL that fsspec opens (with
    target_protocol and target_options), or an open file.
    """

    root_marker = ""
    protocol = "czip"
    cachable = False

    def __init__(
        self,
        fo: Any = "",
        mode: str = "r",
        target_protocol: str | None = None,
        target_options: dict[str, Any] | None = None,
        profile: str = "compat",
        limits: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(self, **kwargs)
        if mode != "r":
            raise ValueError(f"mode {mode!r}: czip is read only, fsspec's zip writes")
        if fo == "":
            raise ValueError("czip needs an archive: fo=..., or a URL as czip://member::archive.zip")
        self.mode = mode
        self.fo = fo
        # What we opened ourselves, and so close.
        self.of: Any = None
        if isinstance(fo, (str, os.PathLike)):
            opened = fsspec.open(os.fspath(fo), "rb", protocol=target_protocol, **(target_options or {}))
            local = isinstance(opened.fs, fsspec.implementations.local.LocalFileSystem)
            if local and opened.compression is None:
                fo = opened.path
            else:
                self.of = opened
                fo = opened.__enter__()
        self.zip = pyio_chunked.ZipFile(fo, profile=profile, limits=limits)
        self.dir_cache: dict[str, dict[str, Any]] | None = None

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        # Paths are relative to the archive's root.
        return super()._strip_protocol(path).lstrip("/")

    def close(self) -> None:
        """Close the archive; members that are open stay readable."""
        self.zip.close()
        if self.of is not None:
            self.of.__exit__(None, None, None)
            self.of = None

    def __del__(self) -> None:
        if hasattr(self, "zip"):
            self.close()

    def _get_dirs(self) -> None:
        if self.dir_cache is not None:
            return
        folders = {name.rstrip("/") for name in self._all_dirnames(self.zip.namelist())}
        cache: dict[str, dict[str, Any]] = {
            name: {"name": name, "size": 0, "type": "directory"} for name in folders
        }
        for member in self.zip.infolist():
            entry = {slot: getattr(member, slot, None) for slot in zipfile.ZipInfo.__slots__}
            entry["name"] = member.filename.rstrip("/")
            entry["size"] = member.file_size
            entry["type"] = "directory" if member.is_dir() else "file"
            cache[member.filename.rstrip("/")] = entry
        self.dir_cache = cache

    def member(self, path: str) -> zipfile.ZipInfo:
        """Without the cache of folders: it costs more than many reads."""
        path = self._strip_protocol(path)
        try:
            return self.zip.getinfo(path)
        except KeyError:
            if self.isdir(path):
                raise IsADirectoryError(21, os.strerror(21), path) from None
            raise FileNotFoundError(2, os.strerror(2), path) from None

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: Any = None,
        **kwargs: Any,
    ) -> Any:
        if mode != "rb":
            raise io.UnsupportedOperation(f"mode {mode!r}: czip is read only, fsspec's zip writes")
        member = self.member(path)
        file: Any = self.zip.open(member)
        file.size = member.file_size
        file.name = member.filename
        return file

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        data = self.zip.read(self.member(path))
        return data if start is None and end is None else data[start:end]


def gunzip(infile: Any, mode: str = "rb", **kwargs: Any) -> Any:
    if "r" in mode:
        return pyio_chunked.GzipFile(fileobj=infile, mode="rb")
    import gzip

    return gzip.GzipFile(fileobj=infile, mode=mode, **kwargs)


def register() -> None:
    """Make fsspec know "czip", and read compression="gzip" by GzipFile.

    For this process, and everything in it that uses fsspec: pandas, dask, ...
    """
    fsspec.register_implementation("czip", CZipFileSystem, clobber=True)
    fsspec.compression.register_compression("gzip", gunzip, "gz", force=True)
