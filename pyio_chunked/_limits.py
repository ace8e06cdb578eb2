# SPDX-License-Identifier: MIT
"""Bounds that an archive of unknown origin has to keep, checked before memory is taken.

limits = pyio_chunked.SAFE_LIMITS._replace(total_size=1 << 30, ratio=200)
zf.extractall("out", limits=limits)
"""

from typing import NamedTuple


class Limits(NamedTuple):
    """What an archive may have at most; None: no limit.

    entries: members in the directory. directory_size: its bytes. name_length: bytes of a member's name as
    the archive holds it. entry_size: bytes of one member. total_size: bytes of all members of one call.
    ratio: a member's size by its compressed size.
    """

    entries: int | None = None
    directory_size: int | None = None
    name_length: int | None = None
    entry_size: int | None = None
    total_size: int | None = None
    ratio: float | None = None


# Sizes and ratios are the caller's to set: what is a bomb here is a backup there.
SAFE_LIMITS = Limits(entries=1_000_000, directory_size=256 << 20, name_length=4096)


def checked_limits(limits: Limits | None) -> Limits:
    """What a caller gave as limits, or TypeError and ValueError that name the field."""
    if limits is None:
        return Limits()
    if limits is SAFE_LIMITS:
        return limits
    if not isinstance(limits, Limits):
        raise TypeError(f"limits must be a Limits or None, not {type(limits).__name__}")
    for name, bound in zip(Limits._fields, limits, strict=True):
        if bound is None:
            continue
        if not isinstance(bound, (int, float) if name == "ratio" else int):
            raise TypeError(f"limits: {name} must be a number or None, not {bound!r}")
        if not bound >= 0:
            raise ValueError(f"limits: {name} must be at least 0, not {bound!r}")
    return limits
