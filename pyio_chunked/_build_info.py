"""What was built, what was found, and what that costs."""

from __future__ import annotations

import platform
from typing import Any

from pyio_chunked._core import __version__, _build_facts


def build_info() -> dict[str, Any]:
    """Versions, engines and kernel methods of this installation.

    Keys: "version" and "python" (str), "portable" (bool: built with POSIX calls
    alone), "libraries" (name -> version, None where not built in), "engines" (job
    -> library: "whole" members under a checksum, "stream", "raw" data, "crc32"),
    "kernel" (call -> present), "slower" (sentences: what is slower without what).

    >>> sorted(build_info()["engines"])
    ['crc32', 'raw', 'stream', 'whole']
    """
    portable, libraries, engines, kernel = _build_facts()
    refused = engines.pop("isal_refused")
    slower = []
    if libraries["libdeflate"] is None:
        slower.append("zip members and inflate() take about twice as long without libdeflate")
    if libraries["isal"] is None:
        slower.append("gzip and zip streams take about three times as long without ISA-L")
    elif refused:
        slower.append("ISA-L failed its test at start-up and is not used: streams go through zlib")
    if portable:
        slower.append("copies go through memory: built with PYIO_CHUNKED_PORTABLE=1")
    else:
        slower += [
            f"this kernel lacks {call}: another way is taken"
            for call, present in kernel.items()
            if not present
        ]
    return {
        "version": __version__,
        "python": platform.python_version(),
        "portable": portable,
        "libraries": libraries,
        "engines": engines,
        "kernel": kernel,
        "slower": slower,
    }
