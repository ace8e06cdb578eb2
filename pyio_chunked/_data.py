# SPDX-License-Identifier: MIT
"""Typed data streams: their names, and errors that are rarely needed."""

from pyio_chunked._core import DataReader as DataReader
from pyio_chunked._core import DataWriter as DataWriter
from pyio_chunked._core import ShortReadError as ShortReadError


def __getattr__(name: str) -> object:
    # struct is imported when the first of its errors is raised.
    if name == "StructError":
        from struct import error

        return error
    if name == "StructRangeError":
        from struct import error

        class StructRangeError(error, OverflowError):
            """A value of write_struct is out of range: what struct raises, and
            what every other write method does."""

        StructRangeError.__qualname__ = "StructRangeError"
        globals()[name] = StructRangeError
        return StructRangeError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
