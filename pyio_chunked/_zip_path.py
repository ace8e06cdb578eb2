# SPDX-License-Identifier: MIT
"""zipfile.Path over our ZipFile, and is_zipfile."""

import posixpath
import zipfile
from typing import Any

from pyio_chunked import _core
from pyio_chunked._zip import ZipFile


def is_zipfile(filename: Any) -> bool:
    """True when a path or file object has an end record where an archive has it, as zipfile's."""
    try:
        return _core._has_end(filename)
    except (OSError, zipfile.BadZipFile):
        return False


class _Root:
    """A ZipFile as zipfile.Path wants it: with the folders that only names imply."""

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        names = dict.fromkeys(archive.namelist())
        for name in list(names):
            parent = posixpath.dirname(name.rstrip("/"))
            while parent and parent + "/" not in names:
                names[parent + "/"] = None
                parent = posixpath.dirname(parent)
        self._names = names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._archive, name)

    def namelist(self) -> list[str]:
        return list(self._names)

    def _name_set(self) -> Any:
        return self._names.keys()

    def resolve_dir(self, name: str) -> str:
        return name + "/" if name not in self._names and name + "/" in self._names else name

    def getinfo(self, name: str) -> zipfile.ZipInfo:
        try:
            return self._archive.getinfo(name)
        except KeyError:
            if not name.endswith("/") or name not in self._names:
                raise
            return zipfile.ZipInfo(name)


class Path(zipfile.Path):
    """zipfile.Path over our ZipFile, reading."""

    def __init__(self, root: Any, at: str = "") -> None:
        if not isinstance(root, _Root):
            root = _Root(root if isinstance(root, ZipFile) else ZipFile(root))
        self.root = root
        self.at = at

    def __hash__(self) -> int:
        return hash((self.root, self.at))
