# SPDX-License-Identifier: MIT
"""Hostile and odd ZIP archives, made by code, each with what every profile says.

A verdict is one word, and for members that are refused their places in the directory:

    "ok"             opens, and every member reads as it was packed
    "open"           refused when opened: BadZipFile
    "read 0 2"       opens; members 0 and 2 are refused when read, the others are right
    "read"           opens; every member is refused

`error` names the class where it isn't BadZipFile. `rules` is what check() has to name (a part of each
line). `names` are the paths that extraction leaves below the target; extraction judges as safe does, or as
strict where the archive was opened so.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hostile_build import (
    BZIP2,
    CENTRAL,
    DEFLATED,
    ENCRYPTED,
    END,
    LZMA,
    MAX32,
    STORED,
    STREAMED,
    UTF8,
    M,
    archive,
    deflate,
    unicode_extra,
    zip64_extra,
)

TEXT = b"It was a dark and stormy night; the rain fell in torrents.\n" * 12
OTHER = bytes(range(256)) * 3


def members(verdict: str, count: int) -> set[int]:
    """Places of the members that a verdict refuses."""
    word, *places = verdict.split()
    return set() if word != "read" else set(map(int, places)) if places else set(range(count))


@dataclass
class Hostile:
    name: str
    kind: str
    make: Callable[[], bytes]
    compat: str = "ok"
    safe: str = "ok"
    strict: str = "ok"
    rules: tuple[str, ...] = ()
    error: str = "BadZipFile"
    names: tuple[str, ...] | None = None  # None: not looked at
    limits: dict[str, Any] = field(default_factory=dict)  # refused under these by LimitError
    limit: str = ""  # its name

    def blob(self) -> bytes:
        """The archive; made once in a process."""
        return _made(self.name)


CORPUS: list[Hostile] = []


@cache
def _made(name: str) -> bytes:
    return next(h for h in CORPUS if h.name == name).make()


def add(name: str, kind: str, make: Callable[[], bytes], verdicts: str = "ok", **more: Any) -> None:
    """verdicts: of compat, safe, strict, parted by "|"; fewer: the last one stands for the rest."""
    parts = [part.strip() for part in verdicts.split("|")]
    parts += [parts[-1]] * (3 - len(parts))
    CORPUS.append(Hostile(name, kind, make, *parts, **more))


def a(**more: Any) -> M:
    return M("a.txt", TEXT, **more)


def b(**more: Any) -> M:
    return M("b.txt", OTHER, **more)


# ------------------------------------------------------------------------- what is all right

add("plain", "good", lambda: archive([a(), b()]), names=("a.txt", "b.txt"))
add("stored", "good", lambda: archive([a(method=STORED)]))
add("empty archive", "good", lambda: archive([]), names=())
add("empty members", "good", lambda: archive([M("e", b"", STORED), M("f", b""), M("d/", b"", STORED)]),
    names=("e", "f", "d"))  # fmt: skip
add("commented", "good", lambda: archive([a(comment=b"one")], comment=b"all of it"))
for form in ("I", "Q", "sI", "sQ"):
    add(f"streamed, descriptor {form}", "good",
        lambda form=form: archive([a(descriptor=form), b(method=STORED, descriptor=form)]))  # fmt: skip
add("zip64 end record", "good", lambda: archive([a(), b()], zip64=True))
add("zip64 end record, extensible data", "good", lambda: archive([a()], zip64=True, sector=b"\1\0\4\0data"))
add("zip64 sizes", "good", lambda: archive([a(
    local={"size": MAX32, "csize": MAX32}, extra=zip64_extra(len(TEXT), len(deflate(TEXT))),
    central={"size": MAX32, "csize": MAX32})]))  # fmt: skip
add(
    "zip64 size alone",
    "good",
    lambda: archive([a(central={"size": MAX32}, central_extra=zip64_extra(len(TEXT)))]),
)
add("zip64 offset alone", "good", lambda: archive(
    [a(central={"offset": MAX32}, central_extra=zip64_extra(0)), b()]))  # fmt: skip
add("UTF-8 names", "good", lambda: archive([M("grün/ß.txt", TEXT)]), names=("grün/ß.txt",))
add("cp437 name", "good", lambda: archive([M(b"gr\x81n.txt", TEXT)]), names=("grün.txt",))
add("Unicode path of the right CRC", "good", lambda: archive(
    [M(b"raw.txt", TEXT, extra=unicode_extra("grün.txt", b"raw.txt"))]))  # fmt: skip
add("names that differ in case", "good", lambda: archive([M("A", TEXT), M("a", OTHER)]), names=("A", "a"))
add("names of dots", "good", lambda: archive([M("...", TEXT), M("a/..b", TEXT), M(".c", TEXT)]),
    names=("...", "a/..b", ".c"))  # fmt: skip
add("single dots and empty parts", "good", lambda: archive([M("./a//b/./c", TEXT)]), names=("a/b/c",))
add("deflated, stored blocks only", "good", lambda: archive([a(body=deflate(TEXT, 0))]))
add("deflated, empty block first", "good", lambda: archive([a(body=b"\0\0\0\xff\xff" + deflate(TEXT))]))
add("directory in another order", "good", lambda: _reordered())


def _reordered() -> bytes:
    blob = archive([a(), b(), M("c", b"c" * 99)])
    start = blob.index(b"PK\1\2")
    end = blob.index(b"PK\5\6")
    entries = [b"PK\1\2" + part for part in blob[start:end].split(b"PK\1\2")[1:]]
    return blob[:start] + b"".join(entries[::-1]) + blob[end:]


# ------------------------------------------------------------------------- names

for word, raw in {
    "traversal": "../evil",
    "traversal, deep": "a/b/../../../../evil",
    "traversal inside": "a/../b",
    "traversal at the end": "a/..",
    "traversal alone": "..",
    "traversal of a folder": "../evil/",
}.items():
    add(f"name: {word}", "name", lambda raw=raw: archive([M(raw, b"" if raw.endswith("/") else TEXT), b()]),
        "ok | read 0", rules=("traversal",), names=())  # fmt: skip
for word, raw, rule in (
    ("absolute", "/tmp/pyio-evil", "absolute"),
    ("two slashes", "//tmp/pyio-evil", "absolute"),
    ("drive", "C:/evil", "drive"),
    ("drive, relative", "c:evil", "drive"),
    ("UNC", "\\\\host\\share\\evil", "UNC"),
    ("backslash traversal", "..\\evil", "traversal"),
    ("backslash", "a\\b", "backslash"),
):
    add(f"name: {word}", "name", lambda raw=raw: archive([b(), M(raw, TEXT)]), "ok | read 1", rules=(rule,))
add(
    "name: NUL inside", "name", lambda: archive([M(b"a.txt\0.exe", TEXT), b()]), "ok | read 0", rules=("NUL",)
)
add("name: NUL hides a traversal", "name", lambda: archive([M(b"a\0/../../evil", TEXT)]), "ok | read 0",
    rules=("traversal",))  # fmt: skip
add("name: newline", "name", lambda: archive([M(b"a\nb", TEXT)]), "ok | ok | read 0", rules=("control",))
add("name: escape", "name", lambda: archive([M(b"\x1b]0;owned\x07", TEXT)]), "ok | ok | read 0",
    rules=("control",))  # fmt: skip
add("name: DEL", "name", lambda: archive([M(b"a\x7f", TEXT)]), "ok | ok | read 0", rules=("control",))
add("name: HTML", "name", lambda: archive([M("<script>alert(1)</script>", TEXT)]))
add("name: empty", "name", lambda: archive([M("", TEXT), b()]))
add("name: only dots", "name", lambda: archive([M(".", TEXT)]))
add("name: long component", "name", lambda: archive([M("n" * 300, TEXT)]))
add("name: 65,535 bytes", "name", lambda: archive([M("n" * 65535, TEXT)]), limits={"name_length": 4096},
    limit="name_length")  # fmt: skip
add("name: 32,000 folders", "name", lambda: archive([M("d/" * 32000 + "f", TEXT)]), limits={"name_length": 4096},
    limit="name_length")  # fmt: skip
add("name: flagged UTF-8 and isn't", "name", lambda: archive([M(b"\xff\xfe", TEXT, flags=UTF8)]), "open",
    error="UnicodeDecodeError")  # fmt: skip
add("name: overlong UTF-8 of a slash", "name", lambda: archive([M(b"..\xc0\xafevil", TEXT, flags=UTF8)]), "open",
    error="UnicodeDecodeError")  # fmt: skip
add("name: Unicode path leads out", "name", lambda: archive(
    [M(b"plain", TEXT, extra=unicode_extra("../evil", b"plain"))]), "ok | read 0", rules=("traversal",))  # fmt: skip
add("name: Unicode path of another CRC", "name", lambda: archive(
    [M(b"plain", TEXT, extra=unicode_extra("../evil", b"other"))]), names=("plain",))  # fmt: skip
add("name: Unicode path in the local header only", "name", lambda: archive(
    [M(b"plain", TEXT, extra=unicode_extra("other", b"plain"), central_extra=b"")]),
    "ok | ok | read 0", rules=("extra",))  # fmt: skip
add("name: the same twice", "name", lambda: archive([M("a", TEXT), M("a", OTHER)]), "ok | ok | open",
    rules=("duplicate",))  # fmt: skip
add("name: the same a hundred times", "name", lambda: archive([M("a", b"%d" % i) for i in range(100)]),
    "ok | ok | open", rules=("duplicate",))  # fmt: skip
add("name: file, then below it", "name", lambda: archive([M("a", TEXT), M("a/b", OTHER)]))
add("name: folder and file", "name", lambda: archive([M("a/", b"", STORED), M("a", OTHER)]))
add("name: same by NUL", "name", lambda: archive([M(b"a\0x", TEXT), M(b"a\0y", OTHER)]), "ok | read | open",
    rules=("NUL", "duplicate"))  # fmt: skip

# ------------------------------------------------------------------------- links and modes

add(
    "link to /etc/passwd",
    "link",
    lambda: archive([M("l", b"/etc/passwd", STORED, mode=0o120777)]),
    names=("l",),
)
add("link to a folder outside, then through it", "link", lambda: archive(
    [M("l", b"..", STORED, mode=0o120777), M("l/evil", TEXT)]))  # fmt: skip
add("setuid", "link", lambda: archive([M("s", TEXT, mode=0o106755)]), names=("s",))
add("device node", "link", lambda: archive([M("null", TEXT, mode=0o020666)]), names=("null",))
add("FIFO", "link", lambda: archive([M("pipe", TEXT, mode=0o010666)]), names=("pipe",))

# ------------------------------------------------------------------------- sizes and checksums

for word, forged in {
    "CRC wrong": {"crc": 0x12345678},
    "CRC 0": {"crc": 0},
    "size one less": {"size": len(TEXT) - 1},
    "size one more": {"size": len(TEXT) + 1},
    "size 0": {"size": 0},
    "size 4 GiB": {"size": MAX32 - 1},
}.items():
    for method in (STORED, DEFLATED):
        add(f"{word}, method {method}", "size",
            lambda forged=forged, method=method: archive([a(method=method, **forged), b()]), "read 0")  # fmt: skip
add("size 2^63", "size", lambda: archive(
    [a(central={"size": MAX32}, central_extra=zip64_extra(1 << 63)), b()]), "read 0")  # fmt: skip
add("compressed size one less", "size", lambda: archive([a(csize=len(deflate(TEXT)) - 1)]), "ok | ok | read 0",
    rules=("unused",))  # fmt: skip
add("compressed size half", "size", lambda: archive([a(csize=len(deflate(TEXT)) // 2)]), "read 0")
add("compressed size 0", "size", lambda: archive([a(csize=0), b()]), "read 0")
add("compressed size one more", "size", lambda: archive([a(csize=len(deflate(TEXT)) + 1), b()]), "read 0 | read",
    rules=("overlap",))  # fmt: skip
add("compressed size 4 GiB", "size", lambda: archive([a(csize=MAX32 - 1), b()]), "read 0 | read",
    rules=("overlap",))  # fmt: skip
add("compressed size 2^63", "size", lambda: archive(
    [a(central={"csize": MAX32}, central_extra=zip64_extra(1 << 63)), b()]), "read 0 | read", rules=("overlap",))  # fmt: skip
add("data cut", "size", lambda: archive([a(body=deflate(TEXT)[:-3])]), "read 0")
add("data broken", "size", lambda: archive([a(body=b"\xff" * 50), b()]), "read 0")
add("bytes behind the stream", "size", lambda: archive([a(body=deflate(TEXT) + b"more")]))
add("stored, sizes differ", "size", lambda: archive([a(method=STORED, size=len(TEXT) + 5)]), "read 0")

# ------------------------------------------------------------------------- local header against directory

for word, local, rule, compat in (
    ("flags", {"flags": 1 << 13 | 1}, "flags", "ok"),
    ("method", {"method": STORED}, "method", "ok"),
    ("time", {"time": 1}, "time", "ok"),
    ("date", {"date": 1}, "time", "ok"),
    ("CRC", {"crc": 1}, "CRC", "ok"),
    ("size", {"size": 1}, "size", "ok"),
    ("compressed size", {"csize": 1}, "size", "ok"),
    ("sizes 0", {"csize": 0, "size": 0}, "size", "ok"),
):
    add(f"local {word}", "header", lambda local=local: archive([a(local=local), b()]), f"{compat} | ok | read 0",
        rules=(f"local header's {rule}",))  # fmt: skip
add("local name", "header", lambda: archive([a(local_name=b"z.txt"), b()]), "read 0", rules=("name",))
add("local name of another length", "header", lambda: archive([a(local_name=b"other.txt"), b()]), "read 0",
    rules=("name",))  # fmt: skip
add("local name under another flag", "header", lambda: archive(
    [M(b"gr\xc3\xbcn", TEXT, flags=UTF8, local={"flags": 0}), b()]), "read 0", rules=("flags",))  # fmt: skip
add("local signature", "header", lambda: archive([a(local={"signature": b"PK\3\5"}), b()]), "read 0",
    rules=("local header",))  # fmt: skip
add("local extra broken", "header", lambda: archive([a(extra=b"\1\2\xff\xff12", central_extra=b"")]),
    "ok | ok | read 0", rules=("extra",))  # fmt: skip
add("local zip64 extra lies", "header", lambda: archive([a(
    local={"size": MAX32, "csize": MAX32}, extra=zip64_extra(7, 7), central_extra=b"")]), "ok | ok | read 0",
    rules=("size",))  # fmt: skip
add("no local header at all", "header", lambda: archive([a(written=False), b()]), "read 0 | read",
    rules=("overlap",))  # fmt: skip
for form, change in (("sI", 4), ("sQ", 8), ("I", 0)):

    def _lying(form: str = form, change: int = change) -> bytes:
        blob = bytearray(archive([a(descriptor=form)]))
        place = blob.index(deflate(TEXT)) + len(deflate(TEXT)) + change
        blob[place] ^= 0x55
        return bytes(blob)

    add(f"descriptor {form} lies", "header", _lying, "ok | ok | read 0", rules=("descriptor",))
add("descriptor missing", "header", lambda: archive([a(flags=STREAMED), b()]), "ok | ok | read 0",
    rules=("descriptor",))  # fmt: skip
add("descriptor flag only in the local header", "header", lambda: archive([a(local={"flags": STREAMED})]),
    "ok | ok | read 0", rules=("flags",))  # fmt: skip
add("directory extra broken", "header", lambda: archive([a(central_extra=b"\1\0\xff\xff12")]), "open")
add("zip64 extra without the size", "header", lambda: archive([a(central={"size": MAX32})]), "read 0",
    rules=())  # fmt: skip
add("zip64 extra too short", "header", lambda: archive(
    [a(central={"size": MAX32, "csize": MAX32}, central_extra=zip64_extra(len(TEXT)))]), "open")  # fmt: skip

# ------------------------------------------------------------------------- overlap

add("two entries of one offset", "overlap", lambda: _same_offset(), "ok | read 0 1 | open",
    rules=("overlap", "duplicate"))  # fmt: skip
add("overlap by one byte", "overlap", lambda: archive(
    [M("a.txt", TEXT, STORED, csize=len(TEXT) + 1), b()]),
    "read 0 | read", rules=("overlap",))  # fmt: skip
add("entry inside another", "overlap", lambda: _quoted(), "read 0 | read", rules=("overlap",))
add("local extra over the next entry", "overlap", lambda: _extra_over(), "read 0 | read", rules=("overlap",))
add("entry over the directory", "overlap", lambda: archive([a(csize=len(deflate(TEXT)) + 10)]), "read 0",
    rules=("overlap",))  # fmt: skip
add(
    "offset inside the directory",
    "overlap",
    lambda: _into_directory(),
    "read 1 | read 1 | read",
    rules=("overlap",),
)
add("offset behind the file", "overlap", lambda: archive([a(), b(offset=10**6)]), "read 1 | read 1 | read",
    rules=("overlap",))  # fmt: skip
add("offset 2^63", "overlap", lambda: archive(
    [a(), b(central={"offset": MAX32}, central_extra=zip64_extra(1 << 63))]),
    "read 1 | read 1 | read", rules=("local header",))  # fmt: skip
add("fifty entries of one offset", "overlap", lambda: _kernel(50),
    f"read {' '.join(map(str, range(1, 50)))} | read", rules=("overlap",))  # fmt: skip
add("fully overlapping bomb", "overlap", lambda: _fifield(60),
    f"read {' '.join(map(str, range(59)))} | read", rules=("overlap",))  # fmt: skip
add("neighbours that touch", "good", lambda: archive([a(method=STORED), b(method=STORED)]))


def _same_offset() -> bytes:
    first = a()
    return archive([first, M("a.txt", TEXT, written=False, offset=0), b()])


def _quoted() -> bytes:
    inner = b(method=STORED)
    data = b"x" * 100 + inner.local_bytes() + b"y" * 100
    outer = M("outer", data, STORED)
    return archive([outer, b(method=STORED, written=False, offset=30 + 5 + 100)])


def _extra_over() -> bytes:
    """The first header's extra field, longer than the directory tells, covers the second entry."""
    second = b(method=STORED).local_bytes()
    data = b"z" * 40
    first = M("a", data, STORED, local={"extra_length": len(second)})
    blob = first.local_bytes()[:31] + second + data
    tail = archive([first, b(method=STORED, offset=31)])
    start = tail.index(b"PK\1\2")
    directory = tail[start : tail.index(b"PK\5\6")]
    end = END.pack(b"PK\5\6", 0, 0, 2, 2, len(directory), len(blob), 0)
    return blob + directory + end


def _into_directory() -> bytes:
    blob = archive([a(), b()])
    place = blob.index(b"PK\1\2")
    return archive([a(), b(offset=place + 3)])


def _kernel(count: int) -> bytes:
    return archive([a()] + [M(f"n{i}", TEXT, written=False, offset=0) for i in range(count - 1)])


def _fifield(count: int) -> bytes:
    """Every entry's data quotes all later local headers: a non-recursive bomb."""
    kernel = b"A" * 20000
    body = deflate(kernel)
    parts: list[bytes] = []
    sizes: list[tuple[int, int, int]] = []
    rest_head = rest_body = rest = b""
    plain = kernel
    for i in reversed(range(count)):
        name = b"%03d" % i
        if not rest:
            member = M(name, kernel, body=body)
            packed, data = body, kernel
        else:
            quote = struct.pack("<BHH", 0, len(rest_head), 0xFFFF - len(rest_head)) + rest_head
            packed, data = quote + rest_body, rest_head + plain
            member = M(name, data, body=packed)
        head = member.local_bytes()[: 30 + len(name)]
        sizes.append((len(packed), len(data), zlib.crc32(data)))
        rest_head, rest_body, plain, rest = head, packed, data, head + packed
        parts.append(head)
    parts.reverse()
    sizes.reverse()
    blob = rest
    directory, place = b"", 0
    for i, (csize, size, crc) in enumerate(sizes):
        name = b"%03d" % i
        directory += M(name, b"", csize=csize, size=size, crc=crc).central_bytes(place)
        place += len(parts[i]) + (5 if i + 1 < count else 0)
    end = END.pack(b"PK\5\6", 0, 0, count, count, len(directory), len(blob), 0)
    return blob + directory + end


# ------------------------------------------------------------------------- end records and what lies around

add("bytes before", "frame", lambda: archive([a()], prefix=b"#!/bin/sh\nexit\n"), "ok | ok | open",
    rules=("before",))  # fmt: skip
add("bytes before, offsets count them", "frame", lambda: archive([a()], prefix=b"MZ" * 50, shifted=True),
    "ok | ok | open", rules=("before",))  # fmt: skip
add("bytes before a zip64 archive", "frame", lambda: archive([a()], prefix=b"#" * 80, zip64=True),
    "ok | ok | open", rules=("before",))  # fmt: skip
add("empty archive behind bytes", "frame", lambda: archive([], prefix=b"#" * 80), "ok | ok | open",
    rules=("before",))  # fmt: skip
add("archive behind an archive", "frame", lambda: archive([b()]) + archive([a()]), "ok | ok | open",
    rules=("before",))  # fmt: skip
add("bytes behind", "frame", lambda: archive([a()], trailing=b"\0" * 10), "ok | ok | open", rules=("behind",))
add("64 KiB behind", "frame", lambda: archive([a()], trailing=b"\0" * 65000), "ok | ok | open",
    rules=("behind",))  # fmt: skip
add("70 KiB behind", "frame", lambda: archive([a()], trailing=b"\0" * 70000), "open")
add("comment shorter than its length", "frame", lambda: archive([a()], end={"comment_length": 9}),
    "ok | ok | open", rules=("comment",))  # fmt: skip
add("end record in the comment, empty", "frame",
    lambda: archive([a()], comment=b"..PK\5\6" + b"\0" * 30), "ok | ok | open", rules=("second end record",))  # fmt: skip
add("another archive's end in the comment", "frame",
    lambda: archive([a()], comment=archive([b()])), "ok | ok | open", rules=("before",))  # fmt: skip
add("signature alone in the comment", "frame", lambda: archive([a()], comment=b"..PK\5\6.."), "open")
add("second end record behind", "frame", lambda: archive([a()]) + END.pack(b"PK\5\6", 0, 0, 0, 0, 0, 0, 0),
    "ok | ok | open", rules=("before",))  # fmt: skip
for word, end in {
    "count too large": {"total": 5, "here": 5},
    "count too small": {"total": 1, "here": 1},
    "counts differ": {"here": 1},
}.items():
    add(word, "frame", lambda end=end: archive([a(), b()], end=end), "ok | ok | open", rules=("count",))
add("count 65,535 and more, no zip64", "frame", lambda: archive(
    [M(b"%d" % i, b"", STORED) for i in range(65537)], end={"here": 1, "total": 1}), "ok | ok | open",
    rules=("count",))  # fmt: skip
add("disk number", "frame", lambda: archive([a()], end={"disk": 1}), "ok | ok | open", rules=("disk",))
add("directory on another disk", "frame", lambda: archive([a()], end={"start_disk": 3}), "ok | ok | open",
    rules=("disk",))  # fmt: skip
add("directory offset too large", "frame", lambda: archive([a()], end={"offset": 10**6}), "read | read | open",
    rules=("offset",))  # fmt: skip
add("directory offset too small", "frame", lambda: archive([a()], end={"offset": 0}), "read | read | open",
    rules=("before",))  # fmt: skip
add("directory size too large", "frame", lambda: archive([a()], end={"size": 10**6}), "open")
add(
    "directory size one more",
    "frame",
    lambda: archive([a()], end={"size": len(a().central_bytes(0)) + 1}),
    "open",
)
add("directory size 0", "frame", lambda: archive([a()], end={"size": 0}), "ok | ok | open", rules=("count",))
add("directory size 4 GiB", "frame", lambda: archive([a()], end={"size": MAX32 - 1}), "open",
    limits={"directory_size": 1 << 20})  # fmt: skip
add("directory cut inside an entry", "frame", lambda: _cut_directory(), "read 1 | read 1 | open",
    rules=("directory size",))  # fmt: skip
add("no directory entry where one must be", "frame", lambda: archive([a()], directory_tail=b"x" * 46), "open")
add("no end record", "frame", lambda: archive([a()])[:-22], "open")
add("end record cut", "frame", lambda: archive([a()])[:-1], "open")
add("nothing at all", "frame", lambda: b"", "open")
add("an end record alone, lying", "frame", lambda: END.pack(b"PK\5\6", 0, 0, 9, 9, 500, 500, 0), "open")
add("unused bytes between members", "frame", lambda: archive([a(), b(gap=b"hidden" * 9)]), "ok | ok | read 0",
    rules=("unused",))  # fmt: skip
add("member that no entry lists", "frame", lambda: archive([a(), M("h", OTHER, listed=False), b()]),
    "ok | ok | read 0", rules=("unused",))  # fmt: skip
add("unused bytes before the directory", "frame", lambda: archive([a()], directory_gap=b"sig" * 9),
    "ok | ok | read 0", rules=("unused",))  # fmt: skip
add("zip64 locator points elsewhere", "frame", lambda: archive([a()], zip64=True, locator={"offset": 3}),
    "ok | ok | open", rules=("locator",))  # fmt: skip
add("zip64 locator of two disks", "frame", lambda: archive([a()], zip64=True, locator={"disks": 2}), "open")
add(
    "zip64 record's signature",
    "frame",
    lambda: archive([a()], zip64=True, end64={"signature": b"PK\6\0"}),
    "open",
)
add("zip64 and plain record differ", "frame", lambda: archive([a(), b()], zip64=True, end={"total": 7}),
    "ok | ok | open", rules=("zip64",))  # fmt: skip
add("zip64 count lies", "frame", lambda: archive([a(), b()], zip64=True, end64={"total": 1 << 40}),
    "ok | ok | open", rules=("count",))  # fmt: skip
add("zip64 directory size 2^63", "frame", lambda: archive([a()], zip64=True, end64={"size": 1 << 63}), "open")
add("zip64 directory offset 2^64-1", "frame", lambda: archive([a()], zip64=True, end64={"offset": (1 << 64) - 1}),
    "read | read | open", rules=("offset",))  # fmt: skip
add("multi-volume entry", "frame", lambda: archive([a(central={"disk": 1})]), "ok")

# ------------------------------------------------------------------------- methods and encryption

add("unknown method", "method", lambda: archive([a(method=99, body=TEXT), b()]), "read 0",
    error="NotImplementedError")  # fmt: skip
for method in (1, 6, 9, 97):
    add(f"method {method}", "method", lambda method=method: archive([a(method=method, body=TEXT)]), "read",
        error="NotImplementedError")  # fmt: skip
add("patched data", "method", lambda: archive([a(flags=1 << 5)]), "read", error="NotImplementedError")
add(
    "strong encryption", "method", lambda: archive([a(flags=1 << 6 | 1)]), "read", error="NotImplementedError"
)
add("encrypted, no password", "method", lambda: archive([a(flags=ENCRYPTED, body=b"x" * 300)]), "read",
    error="RuntimeError")  # fmt: skip
add("needs a newer reader", "method", lambda: archive([a(central={"version": 64})]), "open",
    error="NotImplementedError")  # fmt: skip
add("bzip2 of rubbish", "method", lambda: archive([a(method=BZIP2, body=b"BZh9" + b"x" * 90)]), "read",
    error="OSError")  # fmt: skip
add("LZMA of rubbish", "method", lambda: archive([a(method=LZMA, body=b"\x09\x04\x05\0" + b"\xff" * 90)]), "read",
    error="LZMAError")  # fmt: skip

# ------------------------------------------------------------------------- bombs

add("flat bomb", "bomb", lambda: archive([M("bomb", bytes(20 << 20))]), limits={"ratio": 500}, limit="ratio")
add("flat bomb by size", "bomb", lambda: archive([M("bomb", bytes(20 << 20))]), limits={"entry_size": 10 << 20},
    limit="entry_size")  # fmt: skip
add("many small bombs", "bomb", lambda: archive([M(f"b{i}", bytes(1 << 20)) for i in range(20)]),
    limits={"total_size": 5 << 20}, limit="total_size")  # fmt: skip
add("nested bomb", "bomb", lambda: archive(
    [M("1.zip", archive([M("2.zip", archive([M("3", bytes(5 << 20))]))]))]))  # fmt: skip
add("many entries", "bomb", lambda: archive([M(f"{i}", b"", STORED) for i in range(20000)]),
    limits={"entries": 10000}, limit="entries")  # fmt: skip
add("large directory", "bomb", lambda: archive([M(f"{i}", b"", STORED, comment=b"c" * 60000) for i in range(40)]),
    limits={"directory_size": 1 << 20}, limit="directory_size")  # fmt: skip
add("ratio beyond what DEFLATE can", "bomb", lambda: archive([a(size=1 << 31)]), "read")

assert len({h.name for h in CORPUS}) == len(CORPUS)
__all__ = ["CENTRAL", "CORPUS", "OTHER", "TEXT", "Hostile"]


def _cut_directory() -> bytes:
    blob = archive([a(), b()])
    start, end = blob.index(b"PK\1\2"), blob.index(b"PK\5\6")
    cut = end - start - 3
    return blob[: end - 3] + END.pack(b"PK\5\6", 0, 0, 2, 2, cut, start, 0)
