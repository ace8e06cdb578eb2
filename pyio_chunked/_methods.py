# SPDX-License-Identifier: MIT
"""Members by other methods than stored and deflated, through the standard library's modules.

C reads and decrypts the compressed bytes; here they are decoded in bounded pieces and checked.
"""

import io
import struct
import zipfile
import zlib
from typing import Any

ZSTANDARD = 93
PIECE = 65536


def _both(name: str, theirs: type[Exception]) -> type[Exception]:
    """What broken data raises: BadZipFile, and the module's own class, which zipfile lets through."""
    return type(name, (zipfile.BadZipFile, theirs), {})


class _Lzma:
    """LZMA with the header that APPNOTE 5.8.8 puts before it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.head = b""
        self.decoder: Any = None

    def decompress(self, data: bytes, max_length: int) -> bytes:
        if self.decoder is None:
            self.head += data
            if len(self.head) < 9:
                return b""
            data = self.head[9:]
            self.decoder = self._decoder(self.head[:9])
        return self.decoder.decompress(data, max_length)  # type: ignore[no-any-return]

    def _decoder(self, head: bytes) -> Any:
        import lzma

        length, code, dictionary = struct.unpack("<2xHBI", head)
        if length != 5 or code >= 9 * 5 * 5:
            raise lzma.LZMAError("Invalid or unsupported options")
        # A dictionary beyond the member's size is memory on a header's word: nothing reaches back so far.
        dictionary = max(4096, min(dictionary, self.size))
        filters = {"id": lzma.FILTER_LZMA1, "dict_size": dictionary,
                   "lc": code % 9, "lp": code // 9 % 5, "pb": code // 45}  # fmt: skip
        return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[filters])

    @property
    def needs_input(self) -> bool:
        return self.decoder is None or self.decoder.needs_input

    @property
    def eof(self) -> bool:
        return self.decoder is not None and self.decoder.eof


def _zstd() -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found]  # Python 3.14
    except ImportError:
        try:
            from backports import zstd  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError:
            raise NotImplementedError(
                "compression method 93 (zstd) needs Python 3.14 or pip install 'pyio_chunked[zstd]'"
            ) from None
    return zstd


def _make(method: int, size: int) -> tuple[Any, type[Exception], type[Exception]]:
    """A decoder, what it raises for bad data, and what we raise in place of it."""
    if method == zipfile.ZIP_BZIP2:
        import bz2

        return bz2.BZ2Decompressor(), OSError, _both("BadBzip2", OSError)
    if method == zipfile.ZIP_LZMA:
        import lzma

        return _Lzma(size), lzma.LZMAError, _both("BadLzma", lzma.LZMAError)
    if method == ZSTANDARD:
        zstd = _zstd()
        return zstd.ZstdDecompressor(), zstd.ZstdError, _both("BadZstd", zstd.ZstdError)
    names: dict[int, str] = zipfile.compressor_names  # type: ignore[attr-defined]
    name = f" ({names[method]})" if method in names else ""
    raise NotImplementedError(f"That compression method is not supported: compression type {method}{name}")


class _Decoder(io.RawIOBase):
    """Plain bytes of a member, from a stream over its compressed ones."""

    def __init__(self, raw: Any, info: zipfile.ZipInfo, verify: bool) -> None:
        self.raw = raw
        self.info = info
        self.verify = verify
        self.name = info.filename
        self._start()

    def _start(self) -> None:
        self.decoder, self.fault, self.bad = _make(self.info.compress_type, self.info.file_size)
        self.done = 0
        self.crc = 0
        self.ended = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def _decode(self, size: int) -> bytes:
        """At least one byte, at most size; none at the end."""
        while not self.decoder.eof:
            data = b""
            if self.decoder.needs_input:
                data = self.raw.read(PIECE)
                if not data:
                    break
            try:
                plain: bytes = self.decoder.decompress(data, size)
            except self.fault as error:
                raise self.bad(f"{self.info.filename!r} is broken: {error}") from error
            if plain:
                return plain
        return b""

    def _end(self) -> None:
        info = self.info
        if self.done != info.file_size:
            raise zipfile.BadZipFile(
                f"Bad size of file {info.filename!r}: expected {info.file_size} bytes, found {self.done}"
            )
        if self._decode(1):
            raise zipfile.BadZipFile(
                f"Bad size of file {info.filename!r}: expected {info.file_size} bytes, found more"
            )
        if self.verify and self.crc != info.CRC:
            raise zipfile.BadZipFile(
                f"Bad CRC-32 for file {info.filename!r}: expected {info.CRC:08x}, found {self.crc:08x}"
            )
        self.ended = True

    def readinto(self, buffer: Any) -> int:
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        view = memoryview(buffer).cast("B")
        left = self.info.file_size - self.done
        plain = self._decode(min(len(view), left)) if left and len(view) else b""
        view[: len(plain)] = plain
        self.done += len(plain)
        self.crc = zlib.crc32(plain, self.crc)
        if not self.ended and len(view) and (not plain or self.done == self.info.file_size):
            self._end()
        return len(plain)

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence == 1:
            offset += self.done
        elif whence == 2:
            offset += self.info.file_size
        offset = max(0, min(offset, self.info.file_size))
        if offset < self.done:
            self.raw.seek(0)
            self._start()
        while self.done < offset and self.readinto(bytearray(min(PIECE, offset - self.done))):
            pass
        return self.done

    def tell(self) -> int:
        self._checkClosed()
        return self.done

    def close(self) -> None:
        if not self.closed:
            self.raw.close()
        super().close()


class MethodReader(io.BufferedReader):
    """A member as a binary, seekable stream; size and CRC are checked at its end."""

    mode = "r"

    def __init__(self, raw: Any, info: zipfile.ZipInfo, verify: bool = True) -> None:
        super().__init__(_Decoder(raw, info, verify), PIECE)

    @property
    def name(self) -> str:
        return self.raw.name  # type: ignore[no-any-return,attr-defined]

    def readall(self) -> bytes:
        """All that is left, in memory that follows what comes."""
        return b"".join(iter(lambda: self.read(1 << 20), b""))
