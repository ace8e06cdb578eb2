# SPDX-License-Identifier: MIT
"""The command line in another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "pyio_chunked"]


def run(*arguments: str | Path, data: bytes | None = None, **options) -> subprocess.CompletedProcess[bytes]:
    if data is None:
        options.setdefault("stdin", subprocess.DEVNULL)
    else:
        options["input"] = data
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, timeout=60, **options)


def good(*arguments: str | Path, **options) -> bytes:
    done = run(*arguments, **options)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def bad(*arguments: str | Path, code: int = 1, **options) -> str:
    done = run(*arguments, **options)
    assert done.returncode == code, (done.stdout, done.stderr)
    assert b"Traceback" not in done.stderr
    return done.stderr.decode()
