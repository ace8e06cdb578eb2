# SPDX-License-Identifier: MIT
"""Input for the tests of compressed streams, made by the standard library."""

from __future__ import annotations

import random
import struct
import zlib

WBITS = {"raw": -15, "zlib": 15, "gzip": 31}
BOUNDS = sorted({max(0, b + d) for b in (0, 8192, 32768, 65536, 131072, 262144, 524288) for d in (-1, 0, 1)})


def text(size: int, seed: int = 1) -> bytes:
    rng = random.Random(seed)
    words = [bytes(rng.choices(b"abcdefghij", k=rng.randint(2, 9))) for _ in range(500)]
    out = b" ".join(rng.choices(words, k=size // 5 + 1))
    return (out * (size // len(out) + 1))[:size]


def pack(data: bytes, format: str, level: int = 6, zdict: bytes | None = None) -> bytes:
    packer = (
        zlib.compressobj(level, zlib.DEFLATED, WBITS[format])
        if zdict is None
        else zlib.compressobj(level, zlib.DEFLATED, WBITS[format], zdict=zdict)
    )
    return packer.compress(data) + packer.flush()


def bgzf_block(data: bytes, level: int = 6) -> bytes:
    raw = pack(data, "raw", level)
    head = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0" + struct.pack("<H", len(raw) + 25)
    return head + raw + struct.pack("<II", zlib.crc32(data), len(data))


def bgzf(data: bytes, block: int = 65280) -> bytes:
    """With the empty block at its end."""
    return b"".join(bgzf_block(data[at : at + block]) for at in range(0, len(data) + block, block))


def outcome(call, *args, **kwargs):
    try:
        return call(*args, **kwargs)
    except Exception as error:
        return type(error)
