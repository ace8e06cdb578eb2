# SPDX-License-Identifier: MIT
"""ZIP archives of which every field can be forged, made byte by byte."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

STORED, DEFLATED, BZIP2, LZMA = 0, 8, 12, 14
ENCRYPTED, STREAMED, UTF8 = 1, 8, 0x800

LOCAL = struct.Struct("<4s5H3I2H")
LOCAL_FIELDS = "signature version flags method time date crc csize size name_length extra_length".split()
CENTRAL = struct.Struct("<4s6H3I5H2I")
CENTRAL_FIELDS = (
    "signature made version flags method time date crc csize size name_length extra_length"
    " comment_length disk internal external offset"
).split()
END = struct.Struct("<4s4H2IH")
END_FIELDS = "signature disk start_disk here total size offset comment_length".split()
END64 = struct.Struct("<4sQ2H2I4Q")
END64_FIELDS = "signature record_size made version disk start_disk here total size offset".split()
LOCATOR = struct.Struct("<4sIQI")
LOCATOR_FIELDS = "signature disk offset disks".split()

MAX32 = 0xFFFFFFFF
DATE, TIME = (2020 - 1980) << 9 | 5 << 5 | 17, 12 << 11 | 34 << 5 | 28


def pack(shape: struct.Struct, names: list[str], values: dict[str, Any], forged: dict[str, Any]) -> bytes:
    assert forged.keys() <= set(names), forged
    return shape.pack(*({**values, **forged}[name] for name in names))


def deflate(data: bytes, level: int = 9) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def zip64_extra(*values: int) -> bytes:
    return struct.pack(f"<HH{len(values)}Q", 1, 8 * len(values), *values)


def unicode_extra(text: str, raw: bytes, *, crc: int | None = None) -> bytes:
    """0x7075: the UTF-8 name, which counts where the CRC of the raw one is right."""
    body = text.encode()
    crc = zlib.crc32(raw) if crc is None else crc
    return struct.pack("<HHBI", 0x7075, 5 + len(body), 1, crc) + body


@dataclass
class M:
    """One member. `local` and `central` overwrite fields by name; `body` replaces the
    packed data; `offset` the place that the directory gives; `gap` comes before it."""

    name: str | bytes
    data: bytes = b""
    method: int = DEFLATED
    _: Any = field(default=None, repr=False)
    flags: int = 0
    body: bytes | None = None
    crc: int | None = None
    size: int | None = None
    csize: int | None = None
    extra: bytes = b""
    central_extra: bytes | None = None
    comment: bytes = b""
    mode: int = 0o100644
    made: int = 3 << 8 | 20
    descriptor: str = ""  # "<I", "<Q" with "s": a signature in front
    local_name: bytes | None = None
    local: dict[str, Any] = field(default_factory=dict)
    central: dict[str, Any] = field(default_factory=dict)
    offset: int | None = None
    gap: bytes = b""
    listed: bool = True
    written: bool = True

    def raw_name(self) -> bytes:
        return self.name if isinstance(self.name, bytes) else self.name.encode()

    def fields(self) -> dict[str, Any]:
        body = self.packed()
        name = self.raw_name()
        flags = self.flags | (STREAMED if self.descriptor else 0)
        if not isinstance(self.name, bytes) and not self.name.isascii():
            flags |= UTF8
        return {
            "made": self.made,
            "version": 20,
            "flags": flags,
            "method": self.method,
            "time": TIME,
            "date": DATE,
            "crc": zlib.crc32(self.data) if self.crc is None else self.crc,
            "csize": len(body) if self.csize is None else self.csize,
            "size": len(self.data) if self.size is None else self.size,
            "name_length": len(name),
            "extra_length": len(self.extra),
            "comment_length": len(self.comment),
            "disk": 0,
            "internal": 0,
            "external": self.mode << 16 | (0x10 if name.endswith(b"/") else 0),
        }

    def packed(self) -> bytes:
        if self.body is not None:
            return self.body
        if self.method == DEFLATED:
            return deflate(self.data)
        assert self.method == STORED, "give the body of a member of another method"
        return self.data

    def local_bytes(self) -> bytes:
        values = {**self.fields(), "signature": b"PK\3\4"}
        name = self.raw_name() if self.local_name is None else self.local_name
        values["name_length"] = len(name)
        tail = b""
        if self.descriptor:
            sizes = self.descriptor.replace("s", "")
            tail = struct.pack("<I" + 2 * sizes[-1], values["crc"], values["csize"], values["size"])
            if "s" in self.descriptor:
                tail = b"PK\7\10" + tail
            values.update(crc=0, csize=0, size=0)
        return pack(LOCAL, LOCAL_FIELDS, values, self.local) + name + self.extra + self.packed() + tail

    def central_bytes(self, offset: int) -> bytes:
        extra = self.extra if self.central_extra is None else self.central_extra
        values = {**self.fields(), "signature": b"PK\1\2", "offset": offset, "extra_length": len(extra)}
        head = pack(CENTRAL, CENTRAL_FIELDS, values, self.central)
        return head + self.raw_name() + extra + self.comment


def archive(
    members: Iterable[M],
    *,
    prefix: bytes = b"",
    shifted: bool = False,  # offsets count the prefix
    directory_gap: bytes = b"",
    comment: bytes = b"",
    trailing: bytes = b"",
    end: dict[str, Any] | None = None,
    zip64: bool = False,
    end64: dict[str, Any] | None = None,
    sector: bytes = b"",  # zip64 extensible data
    locator: dict[str, Any] | None = None,
    between: bytes = b"",  # between the zip64 parts and the end record
    directory_tail: bytes = b"",  # counted as directory bytes
) -> bytes:
    base = len(prefix) if shifted else 0
    out = bytearray()
    places = []
    members = list(members)
    for member in members:
        out += member.gap
        places.append(base + len(out) if member.offset is None else member.offset)
        if member.written:
            out += member.local_bytes()
    out += directory_gap
    start = base + len(out)
    listed = [(m, place) for m, place in zip(members, places, strict=True) if m.listed]
    directory = b"".join(m.central_bytes(place) for m, place in listed) + directory_tail
    out += directory
    count = len(listed)
    values: dict[str, Any] = {
        "disk": 0, "start_disk": 0, "here": count, "total": count,
        "size": len(directory), "offset": start,
    }  # fmt: skip
    if zip64:
        place = base + len(out)
        record = {"signature": b"PK\6\6", "record_size": 44 + len(sector), "made": 45, "version": 45}
        out += pack(END64, END64_FIELDS, {**values, **record}, end64 or {}) + sector
        pointer = {"signature": b"PK\6\7", "disk": 0, "offset": place, "disks": 1}
        out += pack(LOCATOR, LOCATOR_FIELDS, pointer, locator or {})
        values.update(here=0xFFFF, total=0xFFFF, size=MAX32, offset=MAX32)
    out += between
    values.update(signature=b"PK\5\6", comment_length=len(comment))
    values["here"], values["total"] = min(values["here"], 0xFFFF), min(values["total"], 0xFFFF)
    out += pack(END, END_FIELDS, values, end or {}) + comment + trailing
    return prefix + bytes(out)
