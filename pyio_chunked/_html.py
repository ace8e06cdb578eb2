# SPDX-License-Identifier: MIT
"""Pictures for notebooks: an archive, a transfer and the pool as HTML tables.

Names in archives are anybody's: every text is escaped, and at most MAX_ROWS
members are shown, so that showing an archive costs the same for any size.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyio_chunked import PoolStats, Transfer, ZipFile

MAX_ROWS = 50
# A name of 64 KiB would fill the page.
MAX_NAME = 200


def human(size: float) -> str:
    if size < 1024:
        return f"{size:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:.1f} TiB"


def safe(text: object) -> str:
    """Escaped, with what can't be seen made visible and no more than fits."""
    words = str(text)
    if len(words) > MAX_NAME:
        words = words[:MAX_NAME] + "…"
    return escape("".join(c if c.isprintable() else repr(c)[1:-1] for c in words))


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    cells = "".join(f"<th>{safe(name)}</th>" for name in head)
    lines = "".join(
        "<tr>" + "".join(f"<td style='text-align: left'>{safe(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><caption>{safe(caption)}</caption><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>"


def bar(share: float) -> str:
    """A bar of text, as long as the share of what is left after compression."""
    return "█" * round(10 * min(max(share, 0.0), 1.0))


def zip_html(archive: ZipFile) -> str:
    count = len(archive)
    rows = []
    # By name: infolist() would make an object for each of 100,000 members.
    for member in map(archive.getinfo, islice(archive, MAX_ROWS)):
        share = member.compress_size / member.file_size if member.file_size else 0.0
        ratio = f"{100 * share:.0f} %" if member.file_size else ""
        rows.append(
            (member.filename, human(member.file_size), human(member.compress_size), ratio, bar(share))
        )
    if count > MAX_ROWS:
        rows.append((f"… {count - MAX_ROWS:,} more", "", "", "", ""))
    # The whole path would end up in every notebook that is given away.
    name = os.path.basename(os.fsdecode(archive.filename)) if archive.filename else "ZipFile"
    return table(f"{name}: {count:,} members", ("name", "size", "compressed", "ratio", ""), rows)


def transfer_html(result: Transfer) -> str:
    rows: list[tuple[object, object]] = [
        ("moved", f"{result.count:,} bytes ({human(result.count)})"),
        ("by", result.method),
        ("holes kept", human(result.holes)),
    ]
    rows += [(f"given up: {method}", error_name(number)) for method, number in result.fallbacks]
    return table("Transfer", ("", ""), rows)


def error_name(number: int) -> str:
    import errno

    return f"{errno.errorcode.get(number, number)}: {os.strerror(number)}"


def pool_html(stats: PoolStats) -> str:
    rows: list[tuple[object, object]] = [
        (name, human(getattr(stats, name))) for name in ("limit", "held", "in_use", "high_water")
    ]
    rows += [(name, f"{getattr(stats, name):,}") for name in ("hits", "misses", "discarded")]
    return table("Pool", ("", ""), rows)
