# SPDX-License-Identifier: MIT
"""What the verbs share: names for people, terminals, files to be written, bars."""

from __future__ import annotations

import os
import stat
import sys
import time

from pyio_chunked._cli import UsageError

TYPE_CHECKING = False  # typing's, without its import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Progress = Callable[[int, int | None], object] | None

STDIN, STDOUT = 0, 1
PIECE = 256 << 10
# Work shorter than this shows no bar, and doesn't wait for tqdm's import.
QUIET_SECONDS = 0.5

GREEN, RED = 32, 31


def is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def shown(name: str) -> str:
    """A name for a terminal: control characters could move the cursor or
    rename the window, so such a name is quoted."""
    if not is_terminal(STDOUT) or name.isprintable():
        return name
    return repr(name)


def colored(text: str, color: int) -> str:
    if not is_terminal(STDOUT) or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\033[{color}m{text}\033[0m"


def print_lines(lines: Iterable[str]) -> None:
    """Lines to standard output: all of each, where print loses what a pipe
    doesn't take at once under python -u; and what the locale can't write is
    escaped, as names of archives are anybody's."""
    sys.stdout.flush()
    encoding = sys.stdout.encoding or "utf-8"
    pending = bytearray()
    for line in lines:
        pending += line.encode(encoding, "backslashreplace") + b"\n"
        if len(pending) >= PIECE:
            write_all(pending)
            pending.clear()
    write_all(pending)


def write_all(data: bytes | bytearray) -> None:
    with memoryview(data) as view:
        done = 0
        while done < len(view):
            done += os.write(STDOUT, view[done:])


def human(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    value = float(size)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} TiB"


# ------------------------------------------------------------------ progress


def progress_of(wanted: bool | None) -> Progress:
    """The bar that --progress, --no-progress or neither of them means."""
    if wanted is None:
        return late_bar() if is_terminal(2) else None
    if wanted:
        from pyio_chunked._progress import bar

        return bar(None)
    return None


def late_bar() -> Callable[[int, int | None], None]:
    """A bar once the work lasts; none where tqdm is missing, as nobody asked."""
    start = time.monotonic()
    meter: Callable[[int, int | None], None] | None = None
    missing = False

    def report(done: int, total: int | None) -> None:
        nonlocal meter, missing
        if meter is None:
            ended = total is not None and done >= total
            if missing or ended or time.monotonic() - start < QUIET_SECONDS:
                return
            try:
                from pyio_chunked._progress import bar

                meter = bar(total)
            except ImportError:
                missing = True
                return
        meter(done, total)

    return report


# -------------------------------------------------------------- to a terminal


def looks_binary(piece: bytes) -> bool:
    """Bytes that a terminal would take for commands, or can't show."""
    controls = bytes(c for c in range(32) if c not in b"\t\n\v\f\r\b") + b"\x7f"
    if piece.translate(None, controls) != piece:
        return True
    try:
        piece.decode()
    except UnicodeDecodeError as error:
        # A character that the piece's end cuts in two is no fault.
        return error.end < len(piece) or error.reason != "unexpected end of data"
    return False


def write_stdout(pieces: Iterator[bytes], *, force: bool, what: str) -> int:
    """All pieces to standard output; binary ones to a terminal only by force."""
    guarded = is_terminal(STDOUT) and not force
    sys.stdout.flush()
    count = 0
    for piece in pieces:
        if guarded and looks_binary(piece):
            raise ValueError(f"{what} is binary and standard output a terminal: -f writes it all the same")
        write_all(piece)
        count += len(piece)
    return count


def refuse_binary_terminal(force: bool, what: str) -> None:
    """For what is moved without being looked at."""
    if is_terminal(STDOUT) and not force:
        raise ValueError(f"{what} may be binary and standard output is a terminal: -f writes it all the same")


# ------------------------------------------------------------ into the file system


def is_special(path: str) -> bool:
    """A device, pipe or socket: nothing in it could be overwritten."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def is_fifo(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False


def ask_for_force(path: str, force: bool) -> None:
    if not force and os.path.lexists(path) and not is_special(path):
        raise FileExistsError(17, "File exists; --force overwrites it", path)


class replacing:  # a context manager, written as a call
    """A new name beside the path, which takes its place when all went well."""

    def __init__(self, path: str) -> None:
        self.given = path
        self.path = os.path.realpath(path)
        folder, name = os.path.split(self.path)
        self.part = os.path.join(folder, f".{name[:200]}.{os.getpid()}.part")

    def __enter__(self) -> str:
        try:
            os.close(os.open(self.part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
        except OSError as error:
            error.filename = self.given  # the name that the caller knows
            raise
        return self.part

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is not None:
            if os.path.lexists(self.part):  # transfer removes a target that got nothing
                os.unlink(self.part)
            return
        if os.path.exists(self.path):
            os.chmod(self.part, stat.S_IMODE(os.stat(self.path).st_mode))
        os.replace(self.part, self.path)


def no_folder(path: str, role: str) -> None:
    if os.path.isdir(path):
        raise UsageError(f"{role} {path!r} is a folder")
