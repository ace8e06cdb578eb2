# SPDX-License-Identifier: MIT
"""The command line's frame: grammar, exit codes, interruption, broken pipes.

Only the verb that was asked for gets a parser and its module imported: copying
a small file should cost little more than starting Python.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing's, without its import
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

PROG = "pyio-chunked"
DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class UsageError(Exception):
    """The arguments parse, but make no sense together: exit 2."""


# ---------------------------------------------------------------- running


def run_verb(verb: str, arguments: Any) -> int:
    if verb in ("copy", "gunzip"):
        from pyio_chunked import _cli_files

        return int(getattr(_cli_files, verb)(arguments))
    if verb == "demo":
        from pyio_chunked._demo import run as demo

        return int(demo(arguments.archive) or 0)
    if verb in ("info", "calibrate"):
        from pyio_chunked import _cli_info

        return int(getattr(_cli_info, verb)(arguments))
    from pyio_chunked import _cli_zip

    return int(getattr(_cli_zip, verb)(arguments))


def is_expected(error: BaseException) -> bool:
    """What data, files and limits bring about, not a mistake of ours."""
    if isinstance(error, (OSError, EOFError, ValueError, RuntimeError, MemoryError, ImportError)):
        return True
    # BadZipFile, zlib.error and the like: by name, since importing them costs.
    return any(cls.__module__.partition(".")[0] in ("zipfile", "zlib", "lzma") for cls in type(error).__mro__)


def each_failure(error: Exception) -> list[object]:
    """copytree's error holds one (source, target, words) for each file."""
    if error.args and isinstance(error.args[0], list):
        return [f"{source}: {words}" for source, _, words in error.args[0]]
    if isinstance(error, OSError):
        for end in ("filename", "filename2"):
            if isinstance(getattr(error, end), int):
                setattr(error, end, stream_name(getattr(error, end)))
    return [error]


def stream_name(descriptor: int) -> str:
    """What the user knows a descriptor as that a verb gave to a call."""
    return {0: "standard input", 1: "standard output"}.get(descriptor, str(descriptor))


def leave_stdout() -> None:
    """Nobody reads: what is still buffered must not fail again at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.close(devnull)


def fill_closed_streams() -> None:
    """A file that is opened while 0, 1 or 2 is free would get that number, and
    be read or written as a standard stream. The null device, opened the wrong way
    round, fails as the closed descriptor would."""
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_RDWR)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)
    # Python has no object for what was closed when it started.
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = open(2, "w", errors="backslashreplace", closefd=False)


def complain(words: object) -> None:
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(words))
    print(f"{PROG}: {text}", file=sys.stderr)


class PlainCopy:
    """What argparse makes of "copy" with whole, known words: its import would
    take longer than the copy of most files. A test compares the two."""

    force = json = symlinks = atomic = sync = False
    reflink = sparse = "auto"
    workers = progress = None
    source: str
    target: str


PLAIN_WORDS = {
    "-f": ("force", True),
    "--force": ("force", True),
    "--json": ("json", True),
    "--symlinks": ("symlinks", True),
    "--atomic": ("atomic", True),
    "--sync": ("sync", True),
    "--progress": ("progress", True),
    "--no-progress": ("progress", False),
}


def plain_copy(argv: Sequence[str]) -> PlainCopy | None:
    """None: argparse has to look at it."""
    copy = PlainCopy()
    ends = []
    words = iter(argv)
    for word in words:
        if word in PLAIN_WORDS:
            setattr(copy, *PLAIN_WORDS[word])
        elif word in ("--reflink", "--sparse"):
            value = next(words, None)
            if value not in ("auto", "always", "never"):
                return None
            setattr(copy, word[2:], value)
        elif word.startswith("-") and word != "-":
            return None
        else:
            ends.append(word)
    if len(ends) != 2:
        return None
    copy.source, copy.target = ends
    return copy


def verb_and_arguments(argv: Sequence[str]) -> tuple[str, Any] | None:
    if argv and argv[0] == "copy":
        plain = plain_copy(argv[1:])
        if plain is not None:
            return "copy", plain
    from pyio_chunked import _cli_arguments

    return _cli_arguments.parse(argv)


def run(argv: Sequence[str]) -> int:
    try:
        parsed = verb_and_arguments(argv)
    except SystemExit as stop:  # argparse has printed help or a complaint
        return int(stop.code or DONE)
    if parsed is None:
        complain("a VERB is missing; --help lists them")
        return USAGE
    verb, arguments = parsed
    try:
        return run_verb(verb, arguments)
    except UsageError as error:
        from pyio_chunked._cli_arguments import print_usage

        print_usage(verb)
        complain(error)
        return USAGE


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code."""
    fill_closed_streams()
    try:
        code = run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError as error:
        if error.filename is None or 1 in (error.filename, error.filename2):
            leave_stdout()  # whoever read it has seen enough
        else:
            complain(error)
        return FAILED
    except Exception as error:
        if not is_expected(error):
            raise
        for words in each_failure(error):
            complain(words)
        try:
            sys.stdout.flush()
        except OSError:
            leave_stdout()  # said once is enough
        return FAILED
