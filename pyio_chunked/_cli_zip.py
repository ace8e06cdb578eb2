# SPDX-License-Identifier: MIT
"""The verbs on zip archives: ls, cat, test, extract."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from fnmatch import fnmatchcase

import pyio_chunked
from pyio_chunked import _cli_output as output
from pyio_chunked._cli import DONE, FAILED, UsageError

TYPE_CHECKING = False  # typing's, without its import
if TYPE_CHECKING:
    import zipfile
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
METHODS = {0: "stored", 8: "deflated", 9: "deflate64", 12: "bzip2", 14: "lzma", 93: "zstd"}


# ------------------------------------------------------------- the archive


@contextmanager
def open_archive(name: str, **options: Any) -> Iterator[pyio_chunked.ZipFile]:
    if name != "-" and not output.is_fifo(name):
        with pyio_chunked.ZipFile(name, **options) as archive:
            yield archive
        return
    # The directory stands at the end, so a pipe has to be made seekable.
    import tempfile

    with tempfile.TemporaryFile() as spool:
        pyio_chunked.transfer(output.STDIN if name == "-" else name, spool)
        spool.seek(0)
        with pyio_chunked.ZipFile(spool, **options) as archive:
            yield archive


def limits_of(base: pyio_chunked.Limits, settings: list[str]) -> pyio_chunked.Limits:
    values: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if name not in base._fields or not equals:
            raise UsageError(
                f"--limit {setting!r}: it is NAME=VALUE with a NAME of {', '.join(base._fields)}"
            )
        try:
            values[name] = limit_value(name, text)
        except ValueError:
            raise UsageError(f"--limit {setting!r}: {text!r} is no number") from None
    return base._replace(**values)


def limit_value(name: str, text: str) -> int | float | None:
    if text == "none":
        return None
    if name == "ratio":
        value: int | float = float(text)
    else:
        unit = UNITS.get(text[-1:].upper(), 1)
        value = int(text[:-1] if unit > 1 else text) * unit
    if not value >= 0:
        raise ValueError
    return value


def selected(
    archive: pyio_chunked.ZipFile, patterns: list[str] | None, hint: str = ""
) -> list[zipfile.ZipInfo]:
    members = archive.infolist()
    if patterns is None:
        return members
    for pattern in patterns:
        # A name, not a pattern: left out silently it would not be missed.
        if not any(c in pattern for c in "*?[") and pattern not in archive:
            raise ValueError(f"no member matches {pattern!r}{hint}")
    found = [m for m in members if any(fnmatchcase(m.filename, pattern) for pattern in patterns)]
    if not found:
        raise ValueError(f"no member matches {' or '.join(patterns)}")
    return found


def row_of(member: zipfile.ZipInfo) -> dict[str, Any]:
    return {
        "name": member.filename,
        "size": member.file_size,
        "compressed_size": member.compress_size,
        "crc": member.CRC,
        "method": METHODS.get(member.compress_type, member.compress_type),
        "modified": "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}".format(*member.date_time),
        "encrypted": bool(member.flag_bits & 1),
    }


def print_rows(rows: list[dict[str, Any]]) -> None:
    """A JSON array, with one row on each line for those who read lines."""
    import json

    last = len(rows) - 1
    lines = (json.dumps(row) + ("," if i < last else "") for i, row in enumerate(rows))
    output.print_lines(["[", *lines, "]"])


# --------------------------------------------------------------------- verbs


def ls(arguments: Namespace) -> int:
    limits = limits_of(pyio_chunked.Limits(), arguments.limit)
    with open_archive(arguments.archive, profile=arguments.profile, limits=limits) as archive:
        members = selected(archive, arguments.only)
    if arguments.json:
        print_rows([row_of(member) for member in members])
        return DONE
    output.print_lines(lines_of(members))
    return DONE


def lines_of(members: list[zipfile.ZipInfo]) -> Iterator[str]:
    width = max([len(f"{member.file_size:,}") for member in members], default=1)
    for member in members:
        row = row_of(member)
        modified = row["modified"].replace("T", " ")
        yield (
            f"{row['size']:>{width},}  {percent(member):>4}  {row['method']!s:8}  {modified}  "
            f"{output.shown(row['name'])}"
        )
    size = sum(member.file_size for member in members)
    compressed = sum(member.compress_size for member in members)
    yield f"{counted(members)}, {output.human(size)}, {output.human(compressed)} compressed"


def counted(members: list[zipfile.ZipInfo]) -> str:
    return "1 member" if len(members) == 1 else f"{len(members)} members"


def percent(member: zipfile.ZipInfo) -> str:
    if member.file_size == 0:
        return "-"
    return f"{100 * member.compress_size // member.file_size}%"


def cat(arguments: Namespace) -> int:
    with open_archive(arguments.archive) as archive:
        for name in arguments.members:
            if name not in archive:
                raise ValueError(f"{arguments.archive}: there is no member {name!r}")
            with archive.open(name) as member:
                output.write_stdout(pieces_of(member), force=arguments.force, what=name)
    return DONE


def pieces_of(member: Any) -> Iterator[bytes]:
    while piece := member.read(output.PIECE):
        yield piece


def extract(arguments: Namespace) -> int:
    limits = limits_of(pyio_chunked.SAFE_LIMITS, arguments.limit)
    folder = "." if arguments.folder is None else arguments.folder
    if folder == "-":
        raise UsageError('"-" is no folder ("./-" is); cat writes members to standard output')
    # "--only '*.csv' out" has swallowed the folder.
    hint = "; DIR stands before --only" if arguments.folder is None else ""
    with open_archive(arguments.archive, profile=arguments.profile, limits=limits) as archive:
        # Without patterns nobody needs an object for each member.
        members = None if arguments.only is None else selected(archive, arguments.only, hint)
        if not arguments.force:
            names = archive.namelist() if members is None else [m.filename for m in members]
            taken = first_taken(folder, names)
            if taken is not None:
                raise FileExistsError(17, "File exists; --force overwrites it", taken)
        archive.extractall(
            folder,
            members,
            workers=arguments.workers,
            limits=limits,
            preserve=arguments.preserve,
            symlinks=arguments.symlinks,
            progress=output.progress_of(arguments.progress),
        )
        if output.is_terminal(2):
            members = archive.infolist() if members is None else members
            size = sum(member.file_size for member in members)
            print(f"extracted {counted(members)}, {output.human(size)}", file=sys.stderr)
    return DONE


def first_taken(folder: str, names: list[str]) -> str | None:
    """The first file to be made whose name something has already."""
    there: dict[str, bool] = {}  # folders; in one that is missing nothing need be looked for
    for name in names:
        if name.endswith("/"):
            continue
        parent = name.rpartition("/")[0]
        if parent not in there:
            there[parent] = os.path.lexists(os.path.join(folder, parent))
        if there[parent] and os.path.lexists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    return None


def test(arguments: Namespace) -> int:
    limits = limits_of(pyio_chunked.Limits(), arguments.limit)
    with open_archive(arguments.archive, profile=arguments.profile, limits=limits) as archive:
        members = selected(archive, arguments.only)
        if arguments.only is None and not arguments.json:
            bad = archive.testzip(workers=arguments.workers, progress=output.progress_of(arguments.progress))
            errors = {} if bad is None else {bad: error_of(archive, bad)}
        else:
            errors = {}
            for member in members:
                error = error_of(archive, member)
                if error is not None:
                    errors[member.filename] = error
    if arguments.json:
        print_rows([
            {**row_of(m), "ok": m.filename not in errors, "error": errors.get(m.filename)} for m in members
        ])  # fmt: skip
    else:
        print_verdict(members, errors)
    return FAILED if errors else DONE


def error_of(archive: pyio_chunked.ZipFile, member: Any) -> str | None:
    """What is wrong with the member; None: nothing."""
    import zlib
    from zipfile import BadZipFile

    buffer = bytearray(output.PIECE)
    try:
        with archive.open(member) as stream:
            while stream.readinto(buffer):
                pass
    except (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        return str(error)
    return None


def print_verdict(members: list[zipfile.ZipInfo], errors: dict[str, str | None]) -> None:
    lines = [
        f"{colored_bad()} {output.shown(name)}: {output.shown(error or 'bad data')}"
        for name, error in errors.items()
    ]
    if not errors:
        size = sum(member.file_size for member in members)
        lines = [f"{output.colored('ok', output.GREEN)} {counted(members)}, {output.human(size)}"]
    output.print_lines(lines)


def colored_bad() -> str:
    return output.colored("BAD", output.RED)
