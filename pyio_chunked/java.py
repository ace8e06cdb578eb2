# SPDX-License-Identifier: MIT
"""java.io.DataOutputStream and DataInputStream by Java's names.

>>> from pyio_chunked.java import DataInput
>>> DataInput(bytes.fromhex("000000ff0005e284a20021")).readInt()
255

The wire format, the truncation of numbers, the one NaN, the leniency of
readUTF, and what is lost where the input ends inside a value are a JDK's. Its
exceptions have counterparts: EOFException is ShortReadError,
UTFDataFormatException is UTFDataFormatError (a ValueError),
IndexOutOfBoundsException is IndexError.
"""

from pyio_chunked._core import DataInput as DataInput
from pyio_chunked._core import DataOutput as DataOutput
from pyio_chunked._core import ShortReadError as ShortReadError
from pyio_chunked._core import UTFDataFormatError as UTFDataFormatError
from pyio_chunked._core import UTFLengthError as UTFLengthError

__all__ = ["DataInput", "DataOutput", "ShortReadError", "UTFDataFormatError", "UTFLengthError"]
