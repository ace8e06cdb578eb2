# SPDX-License-Identifier: MIT
"""The command line: python -m pyio_chunked, or pyio-chunked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def demo(options: argparse.Namespace) -> int:
    from pyio_chunked import _demo

    return _demo.run(options.archive)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="pyio-chunked", description="Bulk I/O on a C core.")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    verb = verbs.add_parser("demo", help="the main job on real files, beside the standard library")
    verb.add_argument("archive", nargs="?", metavar="ARCHIVE", help="a zip file of your own")
    verb.set_defaults(run=demo)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    status: int = options.run(options)
    return status


if __name__ == "__main__":
    sys.exit(main())
