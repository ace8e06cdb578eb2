# SPDX-License-Identifier: MIT
"""Typed data streams: their names."""

from pyio_chunked._core import DataReader as DataReader
from pyio_chunked._core import DataWriter as DataWriter
from pyio_chunked._core import ShortReadError as ShortReadError
