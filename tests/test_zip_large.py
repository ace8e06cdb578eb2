# SPDX-License-Identifier: MIT
"""Members of more than 4 GiB: every size and position of theirs needs 64 bits."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import pytest
from hostile_build import DEFLATED, MAX32, STORED, M, archive, zip64_extra

from pyio_chunked import ZipFile

SIZE = 5 << 30
PIECE = bytes(16 << 20)
TAIL = b"the end"


def crc_of_large() -> int:
    crc = 0
    for _ in range(SIZE // len(PIECE)):
        crc = zlib.crc32(PIECE, crc)
    return zlib.crc32(TAIL, crc)


def large(name: str, method: int, csize: int) -> M:
    """Its header alone; the body is laid behind it by hand."""
    sizes = {"size": MAX32, "csize": MAX32}
    extra = zip64_extra(SIZE + len(TAIL), csize)
    return M(name, method=method, body=b"", crc=crc_of_large(), local=sizes, central=sizes, extra=extra)


def stored(path: Path) -> None:
    """A hole for nearly all of the body; the directory stands behind 4 GiB too."""
    member = large("stored", STORED, SIZE + len(TAIL))
    head = member.local_bytes()
    place = len(head) + SIZE + len(TAIL)
    with path.open("wb") as file:
        file.write(head)
        file.seek(len(head) + SIZE)
        file.write(TAIL)
        assert file.tell() == place
        small = M("behind", b"small", STORED)
        file.write(small.local_bytes())
        at = file.tell()
        far = zip64_extra(place)
        directory = member.central_bytes(0) + M(
            "behind", b"small", STORED, central={"offset": MAX32}, central_extra=far
        ).central_bytes(place)
        file.write(directory)
        empty = archive(
            [],
            zip64=True,
            end64={"here": 2, "total": 2, "size": len(directory), "offset": at},
            locator={"offset": at + len(directory)},
        )
        file.write(empty)


def deflated(path: Path) -> None:
    """One piece that ends at a byte and forgets the window, as often as needed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = packer.compress(PIECE) + packer.flush(zlib.Z_FULL_FLUSH)
    tail = packer.compress(TAIL) + packer.flush()
    body = piece * (SIZE // len(PIECE)) + tail
    member = large("deflated", DEFLATED, len(body))
    member.body = body
    path.write_bytes(archive([member]))


@pytest.mark.parametrize("make", [stored, deflated])
def test_a_member_of_5_gib(make, tmp_path):
    path = tmp_path / "large.zip"
    make(path)
    name = make.__name__
    with ZipFile(path) as ours, zipfile.ZipFile(path) as theirs:
        assert ours.namelist() == theirs.namelist()
        info = ours.getinfo(name)
        assert (info.file_size, info.compress_size) == (
            theirs.getinfo(name).file_size,
            theirs.getinfo(name).compress_size,
        )
        with ours.open(name) as member:
            buffer, last = bytearray(8 << 20), b""
            total = 0
            while n := member.readinto(buffer):  # the end compares the CRC
                total += n
                last = bytes(buffer[max(0, n - len(TAIL)) : n])
            assert total == member.tell() == SIZE + len(TAIL)
            assert last == TAIL
        if make is stored:
            assert ours.read("behind") == theirs.read("behind") == b"small"
            with ours.open(name) as member:
                assert member.seek(SIZE - 1) == SIZE - 1
                assert member.read() == b"\0" + TAIL
