# SPDX-License-Identifier: MIT
"""Exception classes that derive from the standard library's zip and gzip ones.

Imported when first raised or asked for: zipfile and gzip cost at start-up.

    try:
        zf.read(name)
    except pyio_chunked.LimitError as error:
        print(error.limit, error.value, error.allowed)
"""

import gzip
import zipfile
import zlib


class LimitError(zipfile.BadZipFile, ValueError):
    """A bound of `Limits`, or max_size, would be passed; raised before memory is taken."""

    limit: str
    value: int
    allowed: int

    def __init__(self, message: str = "", limit: str = "", value: int = 0, allowed: int = 0) -> None:
        super().__init__(message)
        self.limit = limit
        self.value = value
        self.allowed = allowed

    def __reduce__(self) -> tuple[type, tuple[str, str, int, int]]:
        return type(self), (str(self), self.limit, self.value, self.allowed)


class GzipLimitError(LimitError, gzip.BadGzipFile):
    """LimitError out of a gzip stream."""

    __module__ = "pyio_chunked"

    def __new__(cls, message: str = "", *_: object) -> "GzipLimitError":
        # OSError's own, which would take more than a message for errno and so on.
        return gzip.BadGzipFile.__new__(cls, message)


class BadStream(zipfile.BadZipFile, zlib.error):
    """A member's compressed bytes break DEFLATE's rules: zipfile lets zlib.error through."""

    __module__ = "pyio_chunked"


class CutShort(zipfile.BadZipFile, EOFError):
    """The file ends inside a member's data: zipfile raises EOFError."""

    __module__ = "pyio_chunked"


LimitError.__module__ = "pyio_chunked"
