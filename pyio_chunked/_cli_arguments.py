# SPDX-License-Identifier: MIT
"""The command line's grammar, by argparse; a parser for the one verb that was
asked for."""

from __future__ import annotations

import argparse
import sys

from pyio_chunked._cli import PROG

TYPE_CHECKING = False  # typing's, without its import
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

# verb: (what it does, arguments, an example)
VERBS: dict[str, tuple[str, str]] = {
    "copy": ("copy a file or a folder", "copy photos/ /mnt/backup/"),
    "cat": ("write members to standard output", "cat logs.zip 2026/05.csv | head"),
    "ls": ("list an archive's members", "ls --json logs.zip --only '*.csv'"),
    "extract": ("extract an archive into a folder", "extract logs.zip out --limit total_size=10G"),
    "test": ("read every member and check it", "test --profile strict logs.zip"),
    "gunzip": ("decompress a .gz file", "gunzip access.log.gz access.log"),
    "info": ("tell what this build has, or what a file is", "info --json logs.zip"),
    "calibrate": ("measure this machine's thresholds", 'eval "$(pyio-chunked calibrate /data)"'),
    "demo": ("show the main jobs on real files", "demo logs.zip"),
}


class Formatter(argparse.RawDescriptionHelpFormatter):
    """argparse asks for one at every add_argument, and its own imports shutil
    each time to learn the terminal's width."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=100)


class Version(argparse.Action):
    """argparse's own wants the text before anybody asks."""

    def __call__(self, parser: ArgumentParser, *unused: object) -> None:
        from pyio_chunked import __version__

        print(f"{PROG} {__version__}")
        parser.exit()


def general_parser() -> ArgumentParser:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {verb:{width}}  {what}" for verb, (what, _) in VERBS.items())
    parser = argparse.ArgumentParser(
        prog=PROG,
        usage=f"{PROG} [-h] [--version] VERB ...",
        description="Bulk I/O on a C core: copy, gunzip, and zip archives.",
        epilog=f"verbs:\n{verbs}\n\n'{PROG} VERB --help' tells more.\n"
        '"-" is standard input as SRC or ARCHIVE, standard output as DST.\n'
        "Exit codes: 0 done, 1 failed or bad data, 2 wrong usage, 130 interrupted.\n\n"
        f"example:\n  {PROG} extract logs.zip out",
        formatter_class=Formatter,
    )
    parser.add_argument("--version", action=Version, nargs=0, help="print the version and exit")
    parser.add_argument("verb", nargs="?", metavar="VERB", choices=VERBS, help="what to do; see below")
    return parser


# argparse would print ARCHIVE last, where --only takes it for a pattern.
SELECTION = (
    "[--only MEMBER-GLOB ...] [--profile {compat,safe,strict}]\n"
    "                            [--limit NAME=VALUE] [--workers N]"
)
USAGE: dict[str, str] = {
    "ls": f"%(prog)s [-h] ARCHIVE [--json] {SELECTION}",
    "test": f"%(prog)s [-h] ARCHIVE [--json] [--progress | --no-progress]\n"
    f"                            {SELECTION}",
    "extract": f"%(prog)s [-h] ARCHIVE [DIR] [-f] [--preserve] [--symlinks] [--progress | --no-progress]\n"
    f"                            {SELECTION}",
}


class VerbParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        if message.endswith("required: ARCHIVE") and "--only" in str(self.usage):
            message += " (before --only, which takes all words up to the next option)"
        super().error(message.replace(MASK, ""))


def verb_parser(verb: str) -> ArgumentParser:
    what, example = VERBS[verb]
    if not example.startswith("eval"):
        example = f"{PROG} {example}"
    parser = VerbParser(
        prog=f"{PROG} {verb}",
        usage=USAGE.get(verb),
        description=what[0].upper() + what[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=Formatter,
    )
    ADD_ARGUMENTS[verb](parser)
    return parser


# ---------------------------------------------------------------- arguments


def add_progress(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="a bar on standard error (the default where that is a terminal)",
    )


def add_json(parser: ArgumentParser, what: str) -> None:
    parser.add_argument("--json", action="store_true", help=f"print {what} as JSON")


def add_force(parser: ArgumentParser, what: str) -> None:
    parser.add_argument("-f", "--force", action="store_true", help=what)


def add_selection(parser: ArgumentParser, profile: str) -> None:
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        metavar="MEMBER-GLOB",
        help="only members whose whole name matches one of these patterns; behind ARCHIVE, as it takes all"
        " words up to the next option",
    )
    parser.add_argument(
        "--profile",
        choices=("compat", "safe", "strict"),
        default=profile,
        help="how much to refuse (default: %(default)s)",
    )
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="entries, directory_size, name_length, entry_size, total_size (K, M, G, T for powers of"
        " 1024), ratio; 'none' lifts one; may be given several times",
    )
    parser.add_argument(
        "--workers", type=workers, metavar="N", help="threads at work (default: the CPUs, up to 8)"
    )


def workers(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return value


def seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def copy_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", metavar="SRC", help='a file, a folder, or "-"')
    parser.add_argument("target", metavar="DST", help='a file, a folder to copy into, or "-"')
    add_force(parser, "overwrite what is there; write binary data to a terminal")
    choices = ("auto", "always", "never")
    parser.add_argument("--reflink", choices=choices, default="auto", help="share the file system's blocks")
    parser.add_argument("--sparse", choices=choices, default="auto", help="keep or make holes")
    parser.add_argument("--symlinks", action="store_true", help="of a folder: keep links as links")
    parser.add_argument(
        "--atomic", action="store_true", help="of a file: a failure leaves the old one as it was"
    )
    parser.add_argument("--sync", action="store_true", help="done only when the data is on the device")
    parser.add_argument("--workers", type=workers, metavar="N", help="of a folder: threads at work")
    add_json(parser, "what moved, and how (of a file only),")
    add_progress(parser)


def cat_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("archive", metavar="ARCHIVE", help='a zip archive, or "-"')
    parser.add_argument("members", metavar="MEMBER", nargs="+", help="whole names")
    add_force(parser, "write binary data to a terminal, too")


def ls_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("archive", metavar="ARCHIVE", help='a zip archive, or "-"')
    add_json(parser, "the members")
    add_selection(parser, "compat")


def extract_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("archive", metavar="ARCHIVE", help='a zip archive, or "-"')
    parser.add_argument("folder", metavar="DIR", nargs="?", help="default: the current one")
    add_force(parser, "overwrite files that are there")
    parser.add_argument("--preserve", action="store_true", help="keep times and permission bits")
    parser.add_argument("--symlinks", action="store_true", help="make the links that the archive holds")
    add_selection(parser, "safe")
    add_progress(parser)


def test_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("archive", metavar="ARCHIVE", help='a zip archive, or "-"')
    add_json(parser, "each member's verdict")
    add_selection(parser, "compat")
    add_progress(parser)


def gunzip_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", metavar="SRC", help='a .gz file, or "-"')
    parser.add_argument("target", metavar="DST", help='a file, or "-"')
    add_force(parser, "overwrite what is there; write binary data to a terminal")
    parser.add_argument(
        "--workers", type=workers, default=1, metavar="N", help="threads, of use for BGZF files"
    )
    add_progress(parser)


def info_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help='a file, or "-" (an archive); without: this build'
    )
    add_json(parser, "it")


def calibrate_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "directory",
        metavar="DIR",
        nargs="?",
        default=".",
        help="where to measure (default: the current folder)",
    )
    parser.add_argument("--budget", type=seconds, default=2.0, metavar="SECONDS", help="default: %(default)s")
    add_progress(parser)


def demo_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "archive", metavar="ARCHIVE", nargs="?", help="a zip of yours; without one, one is made"
    )


ADD_ARGUMENTS: dict[str, Callable[[ArgumentParser], None]] = {
    "copy": copy_arguments,
    "cat": cat_arguments,
    "ls": ls_arguments,
    "extract": extract_arguments,
    "test": test_arguments,
    "gunzip": gunzip_arguments,
    "info": info_arguments,
    "calibrate": calibrate_arguments,
    "demo": demo_arguments,
}


# Intermixed parsing forgets in its second pass that a word stood behind "--",
# so such a word must not look like an option. No argument of a process has a NUL.
MASK = "\0"


def unmasked(value: Any) -> Any:
    if isinstance(value, list):
        return [unmasked(item) for item in value]
    return value.removeprefix(MASK) if isinstance(value, str) else value


def parse(argv: Sequence[str]) -> tuple[str, argparse.Namespace] | None:
    """The verb and its arguments; None where nothing was asked for."""
    if argv and argv[0] in VERBS:
        end = argv.index("--") + 1 if "--" in argv else len(argv)
        words = [*argv[1:end], *(MASK + word for word in argv[end:])]
        # Intermixed: options may stand between ARCHIVE and an optional DIR.
        arguments = verb_parser(argv[0]).parse_intermixed_args(words)
        for name, value in vars(arguments).items():
            setattr(arguments, name, unmasked(value))
        return argv[0], arguments
    parser = general_parser()
    parser.parse_args(argv[:1])
    parser.print_usage(sys.stderr)
    return None


def print_usage(verb: str) -> None:
    verb_parser(verb).print_usage(sys.stderr)
