# SPDX-License-Identifier: MIT
"""Arrays out of .npz and .npy files, straight into their memory.

>>> from pyio_chunked import npz
>>> with npz.load("data.npz") as arrays:      # doctest: +SKIP
...     images = arrays["images"]

numpy.load copies each array through small pieces; here the whole member is
read or inflated by one call into the array's own memory, and its CRC checked.
Nothing is ever unpickled: arrays of objects are a ValueError.
"""

from __future__ import annotations

import io
import math
import os
import weakref
import zipfile
from typing import Any, BinaryIO

import pyio_chunked

try:
    import numpy as np
    from numpy.lib import format as npy
except ImportError:
    raise ImportError("pyio_chunked.npz needs numpy: pip install 'pyio_chunked[numpy]'")

__all__ = ["NpzFile", "load"]

# DEFLATE can't do better; a larger size field is a lie.
DEFLATE_RATIO = 1032
# Of an .npy header: numpy refuses a longer one, since parsing it is slow.
MAX_HEADER = 10_000
LOCAL_HEADER = 30


def load(path: str | os.PathLike[str], mmap: bool = False) -> Any:
    """What numpy.load gives for an .npz (a mapping that loads an array when it
    is asked for) or an .npy (the array), told apart by their first bytes.

    mmap=True maps stored members read-only instead of reading them; their CRC
    is not checked, and where the archive's writer didn't align them, arrays are
    unaligned (right, but slower). A compressed member can't be mapped: ValueError.

    Raises ValueError for arrays of objects (they are pickles) and for files of
    another kind; zipfile.BadZipFile where an archive's data is damaged.
    """
    path = os.fspath(path)
    with pyio_chunked.open(path, "rb") as file:
        magic = file.peek(len(npy.MAGIC_PREFIX))[: len(npy.MAGIC_PREFIX)]
        if magic == npy.MAGIC_PREFIX:
            return load_npy(path, file, mmap)
    if magic[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return NpzFile(path, mmap)
    raise ValueError(f"{path!r} is neither an .npy nor an .npz file: it begins with {magic!r}")


class Fields:
    """Arrays as attributes: loaded.f.name."""

    def __init__(self, arrays: NpzFile) -> None:
        # Weak: numpy's objects close themselves when the last reference goes.
        self._arrays = weakref.proxy(arrays)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._arrays[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> list[str]:
        return list(self._arrays)


class NpzFile(np.lib.npyio.NpzFile):
    """An .npz as numpy.load returns it: a mapping from names to arrays.

    Each access loads anew. The archive is closed by close() or a with block.
    """

    fid: Any
    zip: Any
    f: Any

    def __init__(self, path: Any, mmap: bool = False) -> None:
        # Not numpy's own __init__: that one opens the archive with zipfile.
        self.zip = pyio_chunked.ZipFile(path)
        self.fid = path
        self.mmap = mmap
        self.allow_pickle = False
        self.max_header_size = MAX_HEADER
        self.pickle_kwargs = None
        names = self.zip.namelist()
        self.files = [name.removesuffix(".npy") for name in names]
        self._files = dict(zip(self.files, names, strict=True)) | {name: name for name in names}
        self.f = Fields(self)

    def __getitem__(self, key: str) -> Any:
        try:
            name = self._files[key]
        except KeyError:
            raise KeyError(f"{key} is not a file in the archive") from None
        if self.zip is None:
            raise ValueError("the archive is closed")
        member = self.zip.getinfo(name)
        if self.mmap:
            return map_member(self.fid, self.zip, member)
        return read_member(self.fid, self.zip, member)

    def close(self) -> None:
        """Close the archive; arrays that were loaded stay."""
        if self.zip is not None:
            self.zip.close()
            self.zip = None
        self.f = None

    def __repr__(self) -> str:
        shown = ", ".join(self.files[:5]) + ("..." if len(self.files) > 5 else "")
        return f"NpzFile {os.fsdecode(self.fid)!r} with keys: {shown}"


# ------------------------------------------------------------------- headers


class Header:
    """Shape, order and type of an .npy, and where its data begins."""

    def __init__(self, file: BinaryIO) -> None:
        version = npy.read_magic(file)
        read: Any
        if version == (1, 0):
            read = npy.read_array_header_1_0
        elif version == (2, 0):
            read = npy.read_array_header_2_0
        else:  # (3, 0): the same but for UTF-8 in field names
            read = read_header_3
        self.shape, self.fortran, self.dtype = read(file, max_header_size=MAX_HEADER)
        if self.dtype.hasobject:
            raise ValueError("Object arrays cannot be loaded: they are pickles, which can run any code")
        self.offset = file.tell()
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize

    def view(self, buffer: Any) -> Any:
        """The array whose data stands in the buffer from offset on."""
        data = buffer[self.offset : self.offset + self.nbytes]
        if self.dtype.itemsize == 0:
            return np.empty(self.shape, self.dtype)
        flat = (
            data.view(self.dtype)
            if not self.misaligned(data)
            else np.frombuffer(data.tobytes(), self.dtype).copy()
        )
        return flat.reshape(self.shape, order="F" if self.fortran else "C")

    def misaligned(self, data: Any) -> bool:
        return bool(data.ctypes.data % self.dtype.alignment)


def read_header_3(file: BinaryIO, max_header_size: int) -> tuple[Any, bool, Any]:
    """numpy has no public reader of version 3: give its reader of version 2 the
    same header in ASCII, with escapes in place of what is beyond."""
    length = int.from_bytes(file.read(4), "little")
    if length > max_header_size:
        raise ValueError(f"the header is {length} bytes long, more than {max_header_size}")
    text = file.read(length).decode("utf-8")
    if len(text.encode()) != length:
        raise ValueError("the header ends early")
    plain = text.encode("ascii", "backslashreplace")
    result: tuple[Any, bool, Any] = npy.read_array_header_2_0(
        io.BytesIO(len(plain).to_bytes(4, "little") + plain), max_header_size=len(plain)
    )
    return result


# ---------------------------------------------------------------- one member


def read_member(path: Any, archive: Any, member: zipfile.ZipInfo) -> Any:
    size = plausible_size(path, member)
    if size is None:
        with archive.open(member) as stream:
            return read_stream(stream)
    buffer: Any = np.empty(size, np.uint8)
    count = archive.readinto(member, buffer)
    head = buffer[: min(count, MAX_HEADER + 16)].tobytes()
    if not head.startswith(npy.MAGIC_PREFIX):
        return buffer.tobytes()
    header = Header(io.BytesIO(head))
    if header.offset + header.nbytes > count:
        raise ValueError(
            f"{member.filename}: the header promises {header.nbytes} bytes of data,"
            f" the member holds {count - header.offset}"
        )
    return header.view(buffer)


def read_stream(stream: Any) -> Any:
    """For methods whose size field can't be checked beforehand."""
    data = np.frombuffer(bytearray(stream.read()), np.uint8)
    if not data[:6].tobytes().startswith(npy.MAGIC_PREFIX):
        return data.tobytes()
    header = Header(io.BytesIO(data[: MAX_HEADER + 16].tobytes()))
    if header.offset + header.nbytes > len(data):
        raise ValueError(f"the header promises {header.nbytes} bytes of data, but fewer follow")
    return header.view(data)


def plausible_size(path: Any, member: zipfile.ZipInfo) -> int | None:
    """How much memory to take; None where only reading can tell."""
    size, compressed = member.file_size, member.compress_size
    if compressed > os.path.getsize(path):
        raise zipfile.BadZipFile(f"{member.filename}: {compressed} bytes are more than the whole archive")
    if member.compress_type == zipfile.ZIP_DEFLATED:
        if size > compressed * DEFLATE_RATIO:
            raise zipfile.BadZipFile(f"{member.filename}: {compressed} bytes can't hold {size}")
        return size
    if member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 1:
        if size != compressed:
            raise zipfile.BadZipFile(f"{member.filename}: stored, but {size} and {compressed} bytes long")
        return size
    return None


def map_member(path: Any, archive: Any, member: zipfile.ZipInfo) -> Any:
    if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
        raise ValueError(
            f"{member.filename} is compressed or encrypted, so it can't be mapped: load with mmap=False"
        )
    plausible_size(path, member)
    with archive.open(member) as stream:
        if stream.peek(6)[:6] != npy.MAGIC_PREFIX:
            return stream.read()
        header = Header(stream)
    local = pyio_chunked.read_bytes(path, offset=member.header_offset, size=LOCAL_HEADER)
    name, extra = (int.from_bytes(local[at : at + 2], "little") for at in (26, 28))
    start = member.header_offset + LOCAL_HEADER + name + extra
    if header.offset + header.nbytes > member.file_size:
        raise ValueError(f"{member.filename}: the header promises more data than the member holds")
    return map_array(path, start + header.offset, header)


def map_array(path: Any, offset: int, header: Header) -> Any:
    if header.nbytes == 0:
        return np.empty(header.shape, header.dtype)
    return np.memmap(path, header.dtype, "r", offset, header.shape, "F" if header.fortran else "C")


def load_npy(path: Any, file: Any, mmap: bool) -> Any:
    header = Header(file)
    size = os.fstat(file.fileno()).st_size
    if header.offset + header.nbytes > size:
        raise ValueError(
            f"{path!r}: the header promises {header.nbytes} bytes, {size - header.offset} are there"
        )
    if mmap:
        return map_array(path, header.offset, header)
    array = np.empty(header.shape, header.dtype, order="F" if header.fortran else "C")
    if header.nbytes:
        # Its elements in the order of memory, whatever the order of its axes.
        flat: Any = array.reshape(-1, order="A").view(np.uint8)
        count = pyio_chunked.read_into(path, flat, offset=header.offset)
        if count != header.nbytes:
            raise ValueError(f"{path!r} got shorter while it was read")
    return array
