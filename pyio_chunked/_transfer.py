"""Transfer's rules about paths, trees and thresholds; the bytes move in C.

>>> import pyio_chunked
>>> pyio_chunked.copyfile("a.bin", "b.bin").method
'reflink'
"""

from __future__ import annotations

import os
import sys
from collections import namedtuple
from contextlib import suppress

from pyio_chunked import _core
from pyio_chunked._core import copyfile as copyfile
from pyio_chunked._core import probe as probe
from pyio_chunked._core import transfer as transfer

TYPE_CHECKING = False  # typing's, without its import
if TYPE_CHECKING:
    from typing import Any

    Path = Any  # str, bytes, os.PathLike
del TYPE_CHECKING

Transfer = namedtuple("Transfer", "count method holes fallbacks", module="pyio_chunked")
Transfer.__doc__ = """What a transfer did.

count: bytes that the target gained, holes included. method: what moved the
last bytes ("reflink", "copy_file_range", "sendfile", "splice", "mapped",
"chunked", "symlink"). holes: bytes of holes kept as holes. fallbacks: (method,
errno) of each method that was given up; errno 0: it said that the source had
ended when it had not."""


def _transfer_html(self: Any) -> str:
    """A table, for notebooks."""
    from pyio_chunked._html import transfer_html

    return transfer_html(self)


Transfer._repr_html_ = _transfer_html
_core._set_transfer_type(Transfer)

# ------------------------------------------------------------------ copyfile


def _copyfile_by_rules(
    src: Path,
    dst: Path,
    *,
    follow_symlinks: bool = True,
    reflink: str = "auto",
    sparse: str = "auto",
    method: str = "auto",
    atomic: bool = False,
    sync: bool = False,
    progress: Any = None,
    metadata: bool = False,
) -> Any:
    """copyfile where a link may be copied as a link."""
    if not follow_symlinks and os.path.islink(src):
        _check_options(reflink, sparse, method, sync, atomic, metadata)
        return _copy_link(src, dst, atomic=atomic, sync=sync, progress=_reporter(progress), metadata=metadata)
    return _core._copy_one(
        src,
        dst,
        reflink=reflink,
        sparse=sparse,
        method=method,
        atomic=atomic,
        sync=sync,
        progress=progress,
        metadata=metadata,
    )


def _check_options(*options: Any) -> None:
    """Refuses what reflink, sparse, method, sync, atomic, metadata can't be."""
    _core._copy_list([], [], 0, options, None, 0, 0)


def _reporter(progress: Any) -> Any:
    """None, or what is called with (done, total)."""
    if progress is True:
        from pyio_chunked._progress import bar

        return bar(None)
    if progress is None or progress is False or callable(progress):
        return progress or None
    raise TypeError(f"progress must be None, True or callable, not {progress!r}")


def _stat_or_none(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _refuse_same_file(src: Path, dst: Path) -> None:
    source, target = _stat_or_none(src), _stat_or_none(dst)
    if source is not None and target is not None and os.path.samestat(source, target):
        from shutil import SameFileError

        raise SameFileError(f"{src!r} and {dst!r} are the same file")


def _copy_link(src: Path, dst: Path, *, atomic: bool, sync: bool, progress: Any, metadata: bool) -> Any:
    from shutil import copystat

    _refuse_same_file(src, dst)
    place = _temporary_name(dst) if atomic else dst
    os.symlink(os.readlink(src), place)
    try:
        if metadata:
            copystat(src, place, follow_symlinks=False)
        if progress is not None:
            progress(0, 0)
        if atomic:
            os.replace(place, dst)
    except BaseException as why:
        with suppress(OSError):
            os.unlink(place)
        why.transferred = 0  # type: ignore[attr-defined]
        raise
    if sync:
        _sync_folder_of(dst)
    return Transfer(0, "symlink", 0, ())


def _sync_folder_of(path: Path) -> None:
    folder = os.path.dirname(os.fspath(path))
    fd = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _temporary_name(path: Path) -> Any:
    """A new name in the folder of path, and of path's type."""
    folder = os.path.dirname(os.fspath(path))
    name = f".{os.urandom(8).hex()}.tmp"
    return os.path.join(folder, os.fsencode(name) if isinstance(folder, bytes) else name)


def copy(src: Path, dst: Path, **options: Any) -> Any:
    """Copy a file with mode, times and extended attributes, as shutil.copy2.

    dst may be a folder. options are those of copyfile. Returns the new file's
    path."""
    if os.path.isdir(dst):
        dst = os.path.join(dst, os.path.basename(src))
    sys.audit("shutil.copyfile", src, dst)
    sys.audit("shutil.copystat", src, dst)
    _copyfile_by_rules(src, dst, metadata=True, **options)
    return dst


def copyfileobj(fsrc: Any, fdst: Any, length: int = 0) -> None:
    """Copy from one file object to another, as shutil.copyfileobj.

    Files with a descriptor, and BytesIO, go by transfer once they turn out to
    be larger than a first read; text and any other object by its own
    read(length) and write."""
    read, write = fsrc.read, fdst.write
    length = length or 65536
    data = read(length)
    if not data:
        return
    write(data)
    if len(data) >= length and _core._is_plain(fsrc) and _core._is_plain(fdst):
        transfer(fsrc, fdst)
        return
    while data := read(length):
        write(data)


# ------------------------------------------------------------------ copytree

_BATCH = 4096  # files that are listed before they are copied: a bound on memory


class _Tree:
    """One copytree under way: what is to be copied, and what failed."""

    def __init__(
        self,
        *,
        symlinks: bool,
        ignore: Any,
        dirs_exist_ok: bool,
        ignore_dangling_symlinks: bool,
        copy_function: Any | None,
        workers: int,
        options: tuple[str, str, str, bool, bool, bool],
        progress: Any,
    ) -> None:
        self.symlinks = symlinks
        self.ignore = ignore
        self.dirs_exist_ok = dirs_exist_ok
        self.ignore_dangling_symlinks = ignore_dangling_symlinks
        self.copy_function = copy_function
        self.workers = workers
        self.options = options
        self.progress = progress
        self.sources: list[Any] = []
        self.targets: list[Any] = []
        self.folders: list[tuple[Any, Any]] = []
        self.root: os.stat_result | None = None  # of the target
        self.errors: list[tuple[Any, Any, str]] = []
        self.done = 0
        self.total = 0

    def walk(self, src: Path, dst: Path) -> None:
        """List the files of src, making dst and what is no plain file."""
        sys.audit("shutil.copytree", src, dst)
        with os.scandir(src) as listing:
            entries = list(listing)
        ignored = self.ignore(os.fspath(src), [entry.name for entry in entries]) if self.ignore else ()
        os.makedirs(dst, exist_ok=self.dirs_exist_ok)
        if self.root is None:
            self.root = os.stat(dst)
        self.folders.append((src, dst))
        sep = b"/" if isinstance(os.fspath(src), bytes) else "/"
        from_prefix = os.path.join(os.fspath(src), sep[:0])
        to_prefix = os.path.join(os.fspath(dst), sep[:0])
        for entry in entries:
            name = entry.name
            if name in ignored:
                continue
            try:
                self.take(entry, from_prefix + name, to_prefix + name)
            except OSError as why:
                self.failed(from_prefix + name, to_prefix + name, why)

    def take(self, entry: os.DirEntry[Any], src: Any, dst: Any) -> None:
        if entry.is_symlink():
            if self.symlinks:
                from shutil import copystat

                os.symlink(os.readlink(src), dst)
                copystat(src, dst, follow_symlinks=False)
                return
            if self.ignore_dangling_symlinks and not os.path.exists(os.readlink(src)):
                return
        if entry.is_dir():
            # The target may lie in the source: its copy would have no end.
            if self.root is None or not os.path.samestat(entry.stat(), self.root):
                self.walk(src, dst)
        elif self.copy_function is not None:
            self.copy_function(src, dst)
        else:
            self.sources.append(src)
            self.targets.append(dst)
            if self.progress is not None:
                self.total += entry.stat().st_size
            elif len(self.sources) >= _BATCH:
                self.copy_listed()

    def failed(self, src: Any, dst: Any, why: OSError) -> None:
        from shutil import Error

        if type(why) is Error:
            self.errors.extend(why.args[0])
        else:
            self.errors.append((src, dst, str(why)))

    def copy_listed(self) -> None:
        if self.sources:
            sources, targets = self.sources, self.targets
            self.sources, self.targets = [], []
            nbytes, failures = _core._copy_list(
                sources, targets, self.workers, self.options, self.progress, self.done, self.total
            )
            self.done += nbytes
            for index, error in failures:
                if not isinstance(error, OSError):
                    raise error
                self.retry(sources[index], targets[index], error)

    def retry(self, src: Any, dst: Any, why: OSError) -> None:
        """A folder is in the file's place: copy2 copies into it."""
        if isinstance(why, IsADirectoryError) and os.path.isdir(dst):
            reflink, sparse, method, sync, atomic, _ = self.options
            try:
                copy(src, dst, reflink=reflink, sparse=sparse, method=method, sync=sync, atomic=atomic)
            except OSError as error:
                why = error
            else:
                return
        self.failed(src, dst, why)

    def finish(self) -> None:
        """Folders get their times last: files made in them change these."""
        from shutil import Error, copystat

        for src, dst in reversed(self.folders):
            try:
                copystat(src, dst)
            except OSError as why:
                self.errors.append((src, dst, str(why)))
        if self.progress is not None:
            try:
                self.progress(self.done, self.total)
            except BaseException as why:
                why.transferred = self.done  # type: ignore[attr-defined]
                raise
        if self.errors:
            raise Error(self.errors)


def copytree(
    src: Path,
    dst: Path,
    symlinks: bool = False,
    ignore: Any = None,
    *,
    dirs_exist_ok: bool = False,
    workers: int | None = None,
    copy_function: Any | None = None,
    ignore_dangling_symlinks: bool = False,
    progress: Any = None,
    reflink: str = "auto",
    sparse: str = "auto",
    method: str = "auto",
    atomic: bool = False,
    sync: bool = False,
) -> Any:
    """Copy a folder with all in it, as shutil.copytree.

    Files are copied by `workers` threads (None: as many as the machine gives
    this process). What fails is collected in one shutil.Error, the rest is
    copied. copy_function, where given, is called for each file, here. A dst that
    lies in src is not copied into itself. The other options are those of
    copyfile. Returns dst."""
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers!r}")
    progress = _reporter(progress)
    options = (reflink, sparse, method, bool(sync), bool(atomic), True)
    _check_options(*options)
    tree = _Tree(
        symlinks=symlinks,
        ignore=ignore,
        dirs_exist_ok=dirs_exist_ok,
        ignore_dangling_symlinks=ignore_dangling_symlinks,
        copy_function=copy_function,
        workers=workers or 0,
        options=options,
        progress=progress,
    )
    tree.walk(src, dst)
    tree.copy_listed()
    tree.finish()
    return dst


# ---------------------------------------------------------------- thresholds

Thresholds = namedtuple("Thresholds", "mapped parallel huge_pages", module="pyio_chunked")
Thresholds.__doc__ = """Sizes in bytes at which the method changes; sys.maxsize: never.

mapped: from here `mapped` beats `chunked`. parallel: from here read_bytes uses
more than one thread. huge_pages: from here results ask for huge pages."""


def thresholds() -> Any:
    """The sizes in bytes at which this process changes its method."""
    return Thresholds(*_core._thresholds())


def set_thresholds(
    *, mapped: int | None = None, parallel: int | None = None, huge_pages: int | None = None
) -> Any:
    """Set some of the sizes, in bytes; return all.

    sys.maxsize means never. ValueError below 0; then none is set."""
    _core._set_thresholds(mapped, parallel, huge_pages)
    return thresholds()


def _thresholds_of_environment() -> None:
    values = {}
    for name in Thresholds._fields:
        variable = f"PYIO_CHUNKED_{name.upper()}"
        text = os.environ.get(variable)
        if not text:
            continue
        if not text.isdecimal():
            raise ImportError(f"{variable} must be a number of bytes, not {text!r}")
        values[name] = min(int(text), sys.maxsize)
    if values:
        set_thresholds(**values)


_thresholds_of_environment()


def calibrate(directory: Path | None = None, *, budget: float = 2.0, progress: Any = None) -> Any:
    """Measure this machine and file system for about `budget` seconds, and set what it found.

    directory: where files of up to 64 MiB are written and removed (None: the
    temporary folder). progress is called with (milliseconds done, in all).
    Returns the Thresholds, which stay for this process."""
    from pyio_chunked import _calibrate

    return _calibrate.run(directory, budget, progress)


for _function in (copy, copyfileobj, copytree, thresholds, set_thresholds, calibrate):
    _function.__module__ = "pyio_chunked"
