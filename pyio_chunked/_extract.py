# SPDX-License-Identifier: MIT
"""Extraction: what is policy. C makes the files; nothing here joins a path that is written to.

with pyio_chunked.ZipFile("upload.zip") as zf:
    zf.extractall("inbox", limits=pyio_chunked.SAFE_LIMITS._replace(total_size=1 << 30))
"""

import os
import stat
import sys
import time
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pyio_chunked import _core
from pyio_chunked._limits import SAFE_LIMITS, Limits, checked_limits

CHUNK = 1 << 18
# Passing through a folder takes no permission to list it.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


def _attributes(info: zipfile.ZipInfo) -> tuple[int | None, int | None]:
    """Mode and mtime of a member that C doesn't extract."""
    mode = (info.external_attr >> 16) & 0o777
    try:
        mtime = int(time.mktime((*info.date_time, 0, 0, -1)))
    except (ValueError, OverflowError):
        mtime = None
    extra = info.extra
    while len(extra) >= 4:
        kind, length = int.from_bytes(extra[:2], "little"), int.from_bytes(extra[2:4], "little")
        if kind == 0x5455 and length >= 5 and len(extra) >= 4 + length and extra[4] & 1:
            mtime = int.from_bytes(extra[5:9], "little", signed=True)
            break
        extra = extra[4 + length :]
    return (mode if info.create_system == 3 and info.external_attr >> 16 else None), mtime


@contextmanager
def _opened(target: str) -> Iterator[int]:
    folder = target or os.curdir  # "" is the current folder, as zipfile has it
    os.makedirs(folder, exist_ok=True)
    fd = os.open(folder, _FOLDER)
    try:
        yield fd
    finally:
        os.close(fd)


class Extracting:
    """The part of ZipFile that writes files."""

    pwd: bytes | None

    def extract(self, member: Any, path: Any = None, pwd: bytes | None = None) -> str:
        """Extract one member below path (the current folder) and return where it lies.

        Judged at least as the safe profile does. Errors as extractall.
        """
        target = os.getcwd() if path is None else os.fsdecode(path)
        info = member if isinstance(member, zipfile.ZipInfo) else self.getinfo(member)  # type: ignore[attr-defined]
        self._extract_members(target, [info], pwd, 1, SAFE_LIMITS, False, False, None)
        return os.path.normpath(os.path.join(target, os.fsdecode(_core._clean_path(info.filename))))

    def extractall(
        self,
        path: Any = None,
        members: Iterable[Any] | None = None,
        pwd: bytes | None = None,
        *,
        workers: int | None = None,
        limits: Limits | None = SAFE_LIMITS,
        preserve: bool = False,
        symlinks: bool = False,
        progress: Any = None,
    ) -> None:
        """Extract members (names or ZipInfo; None: all) below path, by several C threads.

        Nothing is written outside path: names that lead out are BadZipFile, links that lie on the way
        OSError. The first member that fails stops the work and leaves no half file; what came before it
        stays. preserve keeps permission bits and times. symlinks makes links that lead nowhere outside;
        otherwise a link becomes a file with its text. limits are checked before the first file is made.
        progress is called with bytes. In place of zipfile's ZipFile.extractall.
        """
        target = os.getcwd() if path is None else os.fsdecode(path)
        if workers is None:
            workers = 0
        elif workers < 1:
            raise ValueError("workers must be at least 1")
        limits = checked_limits(limits)
        self._extract_members(target, members, pwd, workers, limits, preserve, symlinks, progress)

    def _extract_members(
        self,
        target: str,
        members: Iterable[Any] | None,
        pwd: bytes | None,
        workers: int,
        limits: Limits,
        preserve: bool,
        symlinks: bool,
        progress: Any,
    ) -> None:
        if members is not None:
            members = list(members)
        pwd = pwd or self.pwd
        if pwd is not None and not isinstance(pwd, bytes):
            raise TypeError(f"pwd: expected bytes, got {type(pwd).__name__}")
        if not (len(self) if members is None else members):  # type: ignore[arg-type]
            return
        with _opened(target) as fd:
            leftovers, folders, done, total, progress, failure = self._extract(  # type: ignore[attr-defined]
                fd, target, members, pwd, workers, preserve, symlinks, limits, progress
            )
            if leftovers or folders:
                rest = _Rest(self, _core._Tree(fd, target), pwd, done, total, progress)
                try:
                    rest.extract(leftovers, preserve, symlinks)
                    for item in reversed(folders):
                        rest.tree.attributes(*item)
                except BaseException as error:
                    error.transferred = rest.done  # type: ignore[attr-defined]
                    raise
                done = rest.done
            if failure is not None:
                raise failure
            if progress is not None:
                progress(done, total)


class _Rest:
    """Members that C hands back: other methods, file objects without a descriptor, links."""

    def __init__(
        self, archive: Any, tree: Any, pwd: bytes | None, done: int, total: int, progress: Any
    ) -> None:
        self.archive = archive
        self.tree = tree
        self.pwd = pwd
        self.done = done
        self.total = total
        self.progress = progress
        self.reported = 0.0

    def extract(self, members: list[tuple[Any, bytes]], preserve: bool, symlinks: bool) -> None:
        links = []
        for member, path in members:
            info = member if isinstance(member, zipfile.ZipInfo) else self.archive.getinfo(member)
            if info.filename.endswith("/"):
                self.tree.folder(path)
            elif symlinks and info.create_system == 3 and stat.S_ISLNK(info.external_attr >> 16):
                links.append((info, path))
            else:
                self._file(info, path, _attributes(info) if preserve else (None, None))
        # Links last: then no file of this archive can pass through one of them.
        for info, path in links:
            self._link(info, path)

    def _file(self, info: zipfile.ZipInfo, path: bytes, attributes: tuple[int | None, int | None]) -> None:
        with self.archive.open(info, pwd=self.pwd) as source:
            self.tree.begin(path)
            try:
                while data := source.read(CHUNK):
                    self.tree.write(data)
                    self.done += len(data)
                    self._report()
                self.tree.finish(*attributes)
            except BaseException:
                self.tree.drop()
                raise

    def _link(self, info: zipfile.ZipInfo, path: bytes) -> None:
        if info.file_size >= 4096:
            raise zipfile.BadZipFile(f"{info.filename!r} is refused: link too long")
        text = self.archive.read(info, self.pwd)
        sys.audit("os.symlink", text, path, -1)
        if not self.tree.link(path, text):
            raise zipfile.BadZipFile(f"{info.filename!r} is refused: link that leads outside")
        self.done += len(text)

    def _report(self) -> None:
        now = time.monotonic()
        if self.progress is not None and now >= self.reported + 0.05:
            self.reported = now
            self.progress(self.done, self.total)
