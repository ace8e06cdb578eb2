# SPDX-License-Identifier: MIT
"""ZipFile: what is policy about reading archives; the loops are in C.

with pyio_chunked.ZipFile("data.zip") as zf:
    for name, data in zf.read_many():
        ...
"""

import io
import os
import zipfile
from collections.abc import Iterator
from typing import Any

from pyio_chunked import _core
from pyio_chunked._core import _ZipReader
from pyio_chunked._extract import Extracting
from pyio_chunked._limits import Limits, checked_limits
from pyio_chunked._zip_refs import EntryRef, refs_of

_core._set_zip_info(zipfile.ZipInfo)

# Attributes that ZipInfo has in this Python and has not in all.
_SLOTS = frozenset(zipfile.ZipInfo.__slots__)
_LEVEL = "compress_level" if "compress_level" in _SLOTS else "_compresslevel"
_HAS_END = "_end_offset" in _SLOTS

PROFILES = ("compat", "safe", "strict")


def _make_info(record: tuple[Any, ...], new: Any = zipfile.ZipInfo.__new__) -> zipfile.ZipInfo:
    """A ZipInfo as zipfile's own reader fills it."""
    info: Any = new(zipfile.ZipInfo)
    (
        info.orig_filename,
        info.filename,
        info.date_time,
        info.compress_type,
        info.comment,
        info.extra,
        info.create_system,
        info.create_version,
        info.extract_version,
        info.reserved,
        info.flag_bits,
        info.volume,
        info.internal_attr,
        info.external_attr,
        info.header_offset,
        info.CRC,
        info.compress_size,
        info.file_size,
        info._raw_time,
        end,
    ) = record
    setattr(info, _LEVEL, None)
    if _HAS_END:
        info._end_offset = end
    return info  # type: ignore[no-any-return]


class ZipFile(Extracting, _ZipReader):
    """Reading half of zipfile.ZipFile: same names and results, several times faster, safe to share.

    Threads and forked processes may use one object at once. The directory is kept compact: ZipInfo
    objects are made when asked for. Members that were opened stay readable after close(). Modes that
    write are zipfile's.

    file: a path, or a descriptor or binary file object that can seek and stays the caller's. profile:
    'compat' judges as zipfile does, 'safe' also refuses overlaps and names that lead elsewhere, 'strict'
    whatever two readers could understand differently (BadZipFile). limits: bounds beyond which all is a
    LimitError. compression to strict_timestamps are for writing and of no effect.
    """

    filename: Any
    pwd: bytes | None

    def __init__(
        self,
        file: Any,
        mode: str = "r",
        compression: int = zipfile.ZIP_STORED,
        allowZip64: bool = True,
        compresslevel: int | None = None,
        *,
        strict_timestamps: bool = True,
        metadata_encoding: str | None = None,
        profile: str = "compat",
        limits: Limits | None = None,
    ) -> None:
        if mode != "r":
            if mode in ("w", "x", "a"):
                raise ValueError(f"mode {mode!r}: this ZipFile only reads; zipfile.ZipFile writes")
            raise ValueError("ZipFile requires mode 'r'")
        if profile not in PROFILES:
            raise ValueError(f"profile must be one of {', '.join(PROFILES)}, not {profile!r}")
        limits = checked_limits(limits)
        if isinstance(file, bytes) and b"\0" in file:
            raise ValueError("bytes are a path here; an archive in memory is ZipFile(io.BytesIO(data))")
        self.mode = mode
        self.profile = profile
        self.debug = 0
        self.pwd = None
        self.compression = compression
        self.compresslevel = compresslevel
        self.metadata_encoding = metadata_encoding
        self._infos: dict[int, zipfile.ZipInfo] = {}
        self._all: list[zipfile.ZipInfo] | None = None
        self._by_name: dict[str, zipfile.ZipInfo] | None = None
        self._fp: Any = None
        self._closed = True
        self._load(
            file,
            metadata_encoding,
            profile == "strict",
            limits.directory_size,
            limits.entries,
            limits.name_length,
        )
        try:
            self._set_limits(limits)
            self._set_profile(PROFILES.index(profile))
        except BaseException:
            self._close()
            raise
        facts = self._facts()
        self._closed = False
        self._comment: bytes = facts["comment"]
        self.start_dir: int = facts["start_dir"]
        self.filename = facts["filename"]
        if not isinstance(file, (str, bytes, os.PathLike, int)):
            self._fp = file
            self._file_passed = True
        else:
            self._file_passed = False

    # ---------------------------------------------------------------- members

    def namelist(self) -> list[str]:
        """Names of all members, in the directory's order."""
        return self._names()

    def infolist(self) -> list[zipfile.ZipInfo]:
        """A zipfile.ZipInfo for each member; the same list and objects at each call."""
        return self.filelist

    @property
    def filelist(self) -> list[zipfile.ZipInfo]:
        """What infolist() returns, as zipfile has it."""
        if self._all is None:
            infos, record = self._infos, self._record
            self._all = [infos.get(i) or _make_info(record(i)) for i in range(len(self))]
            self._infos = dict(enumerate(self._all))
        return self._all

    @property
    def NameToInfo(self) -> dict[str, zipfile.ZipInfo]:
        """A dict from names to members, as zipfile has it; getinfo(name) makes one member alone."""
        if self._by_name is None:
            self._by_name = {info.filename: info for info in self.filelist}
        return self._by_name

    def getinfo(self, name: str) -> zipfile.ZipInfo:
        """The last member of that name; KeyError where there is none."""
        index = self._find(name)
        if index < 0:
            raise KeyError(f"There is no item named {name!r} in the archive")
        info = self._infos.get(index)
        if info is None:
            info = self._infos.setdefault(index, _make_info(self._record(index)))
        return info

    def __iter__(self) -> Iterator[str]:
        return iter(self.namelist())

    # What C doesn't undo itself: other methods than stored and deflated.

    def _read_special(self, name: Any, pwd: bytes | None, verify: bool) -> bytes:
        with self._open_special(name, pwd, verify) as stream:
            data: bytes = stream.readall() if hasattr(stream, "readall") else stream.read()
        return data

    def _open_special(self, name: Any, pwd: bytes | None, verify: bool) -> Any:
        info = name if isinstance(name, zipfile.ZipInfo) else self.getinfo(name)
        if info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            return self.open(name, pwd=pwd)  # encrypted, out of a batch
        raw = self._open_raw(name, pwd)
        try:
            from pyio_chunked._methods import MethodReader

            return MethodReader(raw, info, verify)
        except BaseException:
            raw.close()
            raise

    def refs(self) -> list[EntryRef]:
        """An EntryRef for each member; ValueError where the archive has no path.

        An EntryRef is read by itself, without the archive's profile: where that refuses a member this is
        BadZipFile.
        """
        return refs_of(self)

    # ------------------------------------------------------------------ words

    def printdir(self, file: Any = None) -> None:
        """A table of the members, as zipfile prints it."""
        print(f"{'File Name':<46} {'Modified    ':>19} {'Size':>12}", file=file)
        for info in self.filelist:
            date = "{:d}-{:02d}-{:02d} {:02d}:{:02d}:{:02d}".format(*info.date_time[:6])
            print(f"{info.filename:<46} {date} {info.file_size:12d}", file=file)

    def setpassword(self, pwd: bytes | None) -> None:
        """The password for encrypted members when a call gives none."""
        if pwd and not isinstance(pwd, bytes):
            raise TypeError(f"pwd: expected bytes, got {type(pwd).__name__}")
        self.pwd = pwd or None

    @property
    def comment(self) -> bytes:
        """The archive's comment."""
        return self._comment

    def __repr__(self) -> str:
        result = [f"<{type(self).__module__}.{type(self).__qualname__}"]
        if self._closed:
            result.append(" [closed]")
        else:
            if self._file_passed:
                result.append(f" file={self._fp!r}")
            elif self.filename is not None:
                result.append(f" filename={self.filename!r}")
            result.append(f" mode={self.mode!r}")
        return "".join([*result, ">"])

    def _repr_html_(self) -> str:
        """A table of at most 50 members, for notebooks."""
        from pyio_chunked._html import zip_html

        return zip_html(self)

    # ------------------------------------------------------------------- file

    @property
    def fp(self) -> Any:
        """A file object over the archive; None once it is closed, as zipfile's."""
        if self._closed:
            return None
        if self._fp is None:
            self._fp = io.open(self._fileno(), "rb", closefd=False)  # noqa: UP020
        return self._fp

    def close(self) -> None:
        """Close the archive; it can still be listed, and members that are open stay readable."""
        if not self._closed:
            self._closed = True
            if not self._file_passed and self._fp is not None:
                self._fp.close()
            self._fp = None
            self._close()

    def __enter__(self) -> "ZipFile":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
