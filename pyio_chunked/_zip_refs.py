# SPDX-License-Identifier: MIT
"""EntryRef, scan and partition: members that travel to other processes without their archive's directory.

refs = pyio_chunked.scan("data/*.zip", "*.json")
for part in pyio_chunked.partition(refs):
    pool.apply_async(work, (part,))  # each ref.read() is one read and an inflate
"""

import fnmatch
import glob
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pyio_chunked import _core

_IN_C = (0, 8)  # stored, deflated
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::|://)")


class EntryRef(NamedTuple):
    """One member of an archive: small, picklable, opens by itself.

    path is absolute, or a URL for fsspec; offset is the local header's, in bytes; fingerprint holds the
    archive's size, mtime in nanoseconds and inode (portable: the size; of a URL size and etag).
    """

    path: str
    fingerprint: tuple[Any, ...]
    name: str
    offset: int
    compressed_size: int
    size: int
    crc: int
    method: int

    def read(self, *, verify: bool = True) -> bytes:
        """The member's bytes. OSError where the archive changed; BadZipFile as ZipFile.read."""
        if self.method not in _IN_C:
            with self._open_special(verify) as stream:
                plain: bytes = stream.readall()
            return plain
        if _URL.match(self.path):
            with _open_url(self.path, self.fingerprint) as file:
                data: bytes = _core._zip_ref_read(file, *self[1:], verify)
        else:
            data = _core._zip_ref_read(*self, verify)
        return data

    def open(self) -> Any:
        """The member as ZipFile.open gives it."""
        if self.method not in _IN_C:
            return self._open_special(True)
        return self._open_in_c(True)

    def _open_in_c(self, verify: bool) -> Any:
        if _URL.match(self.path):
            return _core._zip_ref_open(_open_url(self.path, self.fingerprint), *self[1:], verify)
        return _core._zip_ref_open(*self, verify)

    def _open_special(self, verify: bool) -> Any:
        from zipfile import ZipInfo

        from pyio_chunked._methods import MethodReader

        if self.size < 0:
            raise OverflowError("an EntryRef's size is never negative")
        info = ZipInfo()
        info.filename, info.compress_type = self.name, self.method
        info.file_size, info.CRC = self.size, self.crc
        # C hands out the bytes as they lie in the file: as a stored member of that size.
        raw = self._replace(size=self.compressed_size, method=0)._open_in_c(False)
        try:
            return MethodReader(raw, info, verify)
        except BaseException:
            raw.close()
            raise


EntryRef.__module__ = "pyio_chunked"


def _filesystem(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise ImportError(f"{url!r} needs fsspec: pip install pyio_chunked[fsspec]") from None
    fs, path = url_to_fs(url)
    return fs, path


def _url_fingerprint(fs: Any, path: str) -> tuple[Any, ...]:
    info = fs.info(path)
    etag = info.get("ETag") or info.get("etag") or fs.ukey(path)
    return (info["size"], etag)


def _open_url(url: str, fingerprint: tuple[Any, ...]) -> Any:
    fs, path = _filesystem(url)
    found = _url_fingerprint(fs, path)[: len(fingerprint)]
    if found != fingerprint:
        raise OSError(
            f"{url!r} changed since the reference was made: expected {fingerprint!r}, found {found!r}"
        )
    return fs.open(path, "rb")


def _make_refs(zf: Any, path: str, fingerprint: tuple[Any, ...]) -> list[EntryRef]:
    return [EntryRef(path, fingerprint, *fields) for fields in zf._ref_fields()]


def refs_of(zf: Any) -> list[EntryRef]:
    facts = zf._facts()
    path = facts["filename"]
    if not isinstance(path, (str, bytes)) or facts["fingerprint"] is None:
        raise ValueError("refs need an archive that was opened by path")
    return _make_refs(zf, os.path.abspath(os.fsdecode(path)), facts["fingerprint"])


def _expand_url(url: str) -> Iterator[str]:
    fs, path = _filesystem(url)
    if glob.has_magic(path):
        found = sorted(fs.glob(path))
    elif fs.isdir(path):
        found = sorted(name for name in fs.ls(path, detail=False) if name.endswith(".zip"))
    else:
        yield url
        return
    for name in found:
        yield fs.unstrip_protocol(name)


def _expand(path: Any) -> Iterator[str]:
    name = os.fsdecode(path)
    if _URL.match(name):
        yield from _expand_url(name)
    elif os.path.isdir(name):
        yield from sorted(
            entry.path for entry in os.scandir(name) if entry.name.endswith(".zip") and entry.is_file()
        )
    elif glob.has_magic(name) and not os.path.lexists(name):
        yield from sorted(glob.glob(name, recursive=True))
    else:
        yield name


def _scan_one(path: str, wanted: re.Pattern[str], portable: bool) -> list[EntryRef]:
    from pyio_chunked._zip import ZipFile

    if _URL.match(path):
        fs, inner = _filesystem(path)
        fingerprint = _url_fingerprint(fs, inner)
        with fs.open(inner, "rb") as file, ZipFile(file) as zf:
            refs = _make_refs(zf, path, fingerprint[:1] if portable else fingerprint)
    else:
        with ZipFile(path) as zf:
            refs = zf.refs()
        if portable:
            refs = [ref._replace(fingerprint=ref.fingerprint[:1]) for ref in refs]
    return [ref for ref in refs if wanted.match(ref.name)]


def scan(paths: Any, pattern: str = "*", *, portable: bool = False) -> list[EntryRef]:
    """References to the members of archives whose whole name matches the pattern (fnmatch, case matters).

    paths: a path, a glob, a folder (its *.zip), a URL for fsspec, or an iterable of these. A path that
    isn't there is FileNotFoundError; a glob or pattern that nothing matches gives no references. portable
    leaves mtime and inode out of the fingerprint, for other mounts of the same file.
    """
    wanted = re.compile(fnmatch.translate(pattern))
    if isinstance(paths, (str, bytes, os.PathLike)):
        paths = (paths,)
    return [ref for path in paths for one in _expand(path) for ref in _scan_one(one, wanted, portable)]


def partition(refs: Iterable[EntryRef], target_bytes: int = 64 << 20) -> list[list[EntryRef]]:
    """Parts of about target_bytes of member size: an archive's members together, in the order of their offsets."""
    if target_bytes < 1:
        raise ValueError(f"target_bytes must be at least 1, not {target_bytes}")
    archives: dict[str, list[EntryRef]] = {}
    for ref in refs:
        archives.setdefault(ref.path, []).append(ref)
    parts: list[list[EntryRef]] = []
    room = 0
    for members in archives.values():
        members.sort(key=lambda ref: ref.offset)
        for ref in members:
            if not parts or (ref.size > room and parts[-1]):
                parts.append([])
                room = target_bytes
            parts[-1].append(ref)
            room -= ref.size
    return parts
