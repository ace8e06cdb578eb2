# SPDX-License-Identifier: MIT
"""The verbs on files: copy, gunzip."""

from __future__ import annotations

import os
from contextlib import contextmanager

import pyio_chunked
from pyio_chunked import _cli_output as output
from pyio_chunked import _transfer
from pyio_chunked._cli import DONE, UsageError

TYPE_CHECKING = False  # typing's, without its import
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator


# ---------------------------------------------------------------------- copy


def copy(arguments: Namespace) -> int:
    source, target = arguments.source, arguments.target
    if arguments.json and target == "-":
        raise UsageError('--json and "-" as DST would share standard output')
    if source != "-" and target != "-" and os.path.isdir(target):
        # realpath: "folder/." and ".." have a name, too.
        target = os.path.join(target, os.path.basename(os.path.realpath(source)))
    if source != "-" and os.path.isdir(source):
        return copy_folder(source, target, arguments)
    if target == "-":
        output.refuse_binary_terminal(arguments.force, shown_source(source))
    else:
        output.ask_for_force(target, arguments.force)
    result = copy_file(source, target, arguments)
    if arguments.json:
        import json

        print(json.dumps({"source": source, "target": target, **result._asdict()}))
    return DONE


def shown_source(source: str) -> str:
    return "standard input" if source == "-" else source


def copy_file(source: str, target: str, arguments: Namespace) -> pyio_chunked.Transfer:
    progress = output.progress_of(arguments.progress)
    streams = "-" in (source, target) or output.is_special(source) or output.is_special(target)
    if streams:
        for option in ("atomic", "sync"):
            if getattr(arguments, option):
                raise UsageError(f"--{option} needs files as SRC and DST")
        return pyio_chunked.transfer(
            output.STDIN if source == "-" else source,
            output.STDOUT if target == "-" else target,
            progress=progress,
        )
    # With mode, times and extended attributes, as pyio_chunked.copy does, which
    # returns no Transfer.
    result: pyio_chunked.Transfer = _transfer._copyfile_by_rules(
        source,
        target,
        metadata=True,
        reflink=arguments.reflink,
        sparse=arguments.sparse,
        atomic=arguments.atomic,
        sync=arguments.sync,
        progress=progress,
    )
    return result


def copy_folder(source: str, target: str, arguments: Namespace) -> int:
    if "-" in (source, target):
        raise UsageError("a folder can't be copied to standard output")
    if arguments.json or arguments.atomic:
        raise UsageError("--json and --atomic are for one file")
    outer, inner = os.path.realpath(source), os.path.realpath(target)
    if os.path.commonpath([outer, inner]) == outer:
        raise ValueError(f"{source!r} can't be copied into itself, {target!r}")
    output.ask_for_force(target, arguments.force)
    pyio_chunked.copytree(
        source,
        target,
        symlinks=arguments.symlinks,
        dirs_exist_ok=arguments.force,
        workers=arguments.workers,
        reflink=arguments.reflink,
        sparse=arguments.sparse,
        sync=arguments.sync,
        progress=output.progress_of(arguments.progress),
    )
    return DONE


# -------------------------------------------------------------------- gunzip


def gunzip(arguments: Namespace) -> int:
    source, target = arguments.source, arguments.target
    if source != "-":
        output.no_folder(source, "SRC")
    if target != "-":
        output.no_folder(target, "DST")
        output.ask_for_force(target, arguments.force)
    progress = output.progress_of(arguments.progress)
    with open_gzip(source, arguments.workers) as reader:
        if target == "-":
            output.write_stdout(pieces_of(reader), force=arguments.force, what="the data")
        elif output.is_special(target):
            pyio_chunked.transfer(reader, target, progress=progress)
        else:
            # Half a file under the final name would pass for a whole one.
            with output.replacing(target) as part:
                pyio_chunked.transfer(reader, part, progress=progress)
    return DONE


@contextmanager
def open_gzip(source: str, threads: int) -> Iterator[pyio_chunked.GzipFile]:
    if source != "-":
        with pyio_chunked.GzipFile(source, threads=threads) as reader:
            yield reader
        return
    with (
        pyio_chunked.open(os.dup(output.STDIN), "rb") as file,
        pyio_chunked.GzipFile(fileobj=file, threads=threads) as reader,
    ):
        yield reader


def pieces_of(reader: pyio_chunked.InflateReader) -> Iterator[bytes]:
    while piece := reader.read1(output.PIECE):
        yield piece
