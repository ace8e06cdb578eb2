# SPDX-License-Identifier: MIT
"""What the tests of the ZIP reader share: data, archives, and the comparison with zipfile."""

from __future__ import annotations

import functools
import io
import random
import sys
import zipfile
from pathlib import Path
from typing import Any

from hostile_build import DEFLATED

from pyio_chunked import ZipFile

SLOTS = zipfile.ZipInfo.__slots__
# zipfile reads 0x7075 and looks for overlaps since 3.13 only; the verdicts are the newest ones.
NEWEST = sys.version_info >= (3, 13)
BOUNDS = (0, 1, 2, 8191, 8192, 8193, 16384, 32767, 32768, 32769, 65535, 65536, 65537,
          262143, 262144, 262145, 1 << 20, (1 << 20) + 1)  # fmt: skip


@functools.lru_cache(maxsize=64)
def text(n: int, seed: int = 0) -> bytes:
    """Compressible, and without a period that an engine could copy for ever."""
    rng = random.Random(seed)
    words = [bytes(rng.choices(b"abcdefghij", k=rng.randrange(2, 9))) for _ in range(300)]
    return b" ".join(rng.choices(words, k=n // 4 + 1))[:n]


def pack(path: Path, members: dict[str, bytes], method: int = DEFLATED, comment: bytes = b"") -> Path:
    with zipfile.ZipFile(path, "w", method) as zf:
        for name, data in members.items():
            zf.writestr(name, data)
        zf.comment = comment
    return path


def assert_same_info(ours: zipfile.ZipInfo, theirs: zipfile.ZipInfo) -> None:
    assert type(ours) is zipfile.ZipInfo
    for slot in SLOTS:
        if slot == "_end_offset" and theirs.header_offset < 0:
            continue  # no member lies there: how far it may go says nothing
        assert getattr(ours, slot) == getattr(theirs, slot), slot
        assert type(getattr(ours, slot)) is type(getattr(theirs, slot)), slot


def assert_same(source: Any, data: bytes, **options: Any) -> ZipFile:
    """Everything that both readers say about one archive is the same."""
    ours = ZipFile(source, **options)
    theirs = zipfile.ZipFile(io.BytesIO(data), **options)
    assert ours.namelist() == theirs.namelist()
    assert len(ours) == len(theirs.infolist())
    assert ours.comment == theirs.comment
    assert ours.start_dir == theirs.start_dir
    for mine, other in zip(ours.infolist(), theirs.infolist(), strict=True):
        assert_same_info(mine, other)
    assert list(ours.NameToInfo) == list(theirs.NameToInfo)
    for name, other in theirs.NameToInfo.items():
        assert_same_info(ours.getinfo(name), other)
        expected = theirs.read(name)
        assert ours.read(name) == expected
        assert ours.read(other) == expected
        with ours.open(name) as member:
            assert member.read() == expected
    return ours


class Duck:
    """A file object that has nothing but what a remote one would have."""

    def __init__(self, data: bytes, piece: int = 1 << 30) -> None:
        self.inner = io.BytesIO(data)
        self.piece = piece
        self.calls = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.inner.seek(offset, whence)

    def tell(self) -> int:
        return self.inner.tell()

    def read(self, n: int = -1) -> bytes:
        self.calls += 1
        return self.inner.read(min(n, self.piece) if n >= 0 else self.piece)


def refused_password(path, name):
    """One wrong password in 256 seems right until the data is read."""
    with zipfile.ZipFile(path) as archive:
        for pwd in (b"wrong", b"false", b"bad", b"no"):
            try:
                archive.open(name, pwd=pwd).close()
            except RuntimeError:
                return pwd
    raise AssertionError("every password is taken")
