# SPDX-License-Identifier: MIT
"""The verbs that tell: info, calibrate."""

from __future__ import annotations

import json
import os
import sys

import pyio_chunked
from pyio_chunked import _cli_output as output
from pyio_chunked._cli import DONE

TYPE_CHECKING = False  # typing's, without its import
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

# thresholds()' fields and the variables that set them at import.
VARIABLES = {
    "mapped": "PYIO_CHUNKED_MAPPED",
    "parallel": "PYIO_CHUNKED_PARALLEL",
    "huge_pages": "PYIO_CHUNKED_HUGE_PAGES",
}


def info(arguments: Namespace) -> int:
    facts = about_this_build() if arguments.file is None else about_file(arguments.file)
    if arguments.json:
        print(json.dumps(facts, indent=2, default=str))
    else:
        output.print_lines(lines_of(facts))
    return DONE


def about_this_build() -> dict[str, Any]:
    facts = dict(pyio_chunked.build_info())
    facts["thresholds"] = dict(pyio_chunked.thresholds()._asdict())
    facts["pool"] = dict(pyio_chunked.pool.stats()._asdict())
    return facts


def about_file(name: str) -> dict[str, Any]:
    if name == "-" or output.is_fifo(name):
        from pyio_chunked._cli_zip import open_archive

        with open_archive(name) as archive:
            return about_zip(name, archive)
    with open(name, "rb") as file:
        magic = file.read(4)
    if magic[:2] == b"\x1f\x8b":
        return about_gzip(name)
    if pyio_chunked.is_zipfile(name):
        with pyio_chunked.ZipFile(name) as archive:
            return about_zip(name, archive)
    size = os.stat(name).st_size
    return {"name": name, "kind": "file", "size": size, "compressed_size": size, "crc": None,
            "methods": copy_methods(name)}  # fmt: skip


def about_zip(name: str, archive: pyio_chunked.ZipFile) -> dict[str, Any]:
    members = archive.infolist()
    size = sum(member.file_size for member in members)
    compressed = sum(member.compress_size for member in members)
    return {
        "name": name,
        "kind": "zip",
        "members": len(members),
        "size": size,
        "compressed_size": compressed,
        "crc": None,
        "ratio": round(size / compressed, 2) if compressed else None,
        "comment": archive.comment.decode("utf-8", "replace"),
        "refused_by_strict": archive.check(),
    }


def about_gzip(name: str) -> dict[str, Any]:
    """Header and trailer of the only or last member: nobody vouches for them
    before the data was read."""
    with pyio_chunked.GzipFile(name) as reader:
        reader.read1(1)
        mtime = reader.mtime
    compressed = os.stat(name).st_size
    trailer = pyio_chunked.read_bytes(name, offset=max(compressed - 8, 0))
    return {
        "name": name,
        "kind": "gzip",
        "size": int.from_bytes(trailer[4:8], "little"),
        "compressed_size": compressed,
        "crc": int.from_bytes(trailer[:4], "little"),
        "mtime": mtime,
        "note": "size (modulo 4 GiB) and crc as the last member's trailer claims them",
    }


def copy_methods(name: str) -> list[str]:
    """By what a copy beside it would be made, in the order of trial."""
    return list(pyio_chunked.probe(name, f"{name}.copy"))


def lines_of(facts: dict[str, Any], indent: str = "") -> Iterator[str]:
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{name}:"
            yield from lines_of(value, indent + "  ")
        else:
            yield f"{indent}{name:{width}}  {shown_value(name, value)}"


def shown_value(name: str, value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "-"
    if value == sys.maxsize:
        return "never"
    if name in ("size", "compressed_size") and isinstance(value, int):
        return f"{value:,} ({output.human(value)})"
    text = "" if value is None else str(value)
    return output.shown(text) if text else "-"


def calibrate(arguments: Namespace) -> int:
    found = pyio_chunked.calibrate(
        arguments.directory, budget=arguments.budget, progress=output.progress_of(arguments.progress)
    )
    for field, variable in VARIABLES.items():
        print(f"export {variable}={getattr(found, field)}")
    return DONE
