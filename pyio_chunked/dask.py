# SPDX-License-Identifier: MIT
"""Members of many archives as a dask.bag.

>>> from pyio_chunked.dask import read_members
>>> bag = read_members("logs/*.zip", "*.csv")     # doctest: +SKIP
>>> bag.map(lambda item: len(item[1])).sum().compute()     # doctest: +SKIP

The archives' directories are read once, by the caller; a task gets references
to its members, reads them by position, and opens no directory again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyio_chunked

if TYPE_CHECKING:
    from pyio_chunked import EntryRef

__all__ = ["read_members"]


def read_members(
    paths: Any, pattern: str = "*", *, target_bytes: int = 64 << 20, max_member: int = 1 << 30
) -> Any:
    """A dask.bag of (name, bytes), one partition for about target_bytes of data.

    paths is what scan takes: a path, a glob, a folder, an iterable of these, or
    URLs that fsspec opens. pattern: fnmatch on whole member names.
    A member of more than max_member bytes is a LimitError before any work
    starts: stream such ones by EntryRef.open. An archive that changes after this
    call is an OSError in the task that reads it.
    """
    try:
        import dask.bag
    except ImportError as error:
        raise ImportError("read_members needs dask: pip install 'pyio_chunked[dask]'") from error
    refs = pyio_chunked.scan(paths, pattern)
    for ref in refs:
        if ref.size > max_member:
            raise too_large(ref, max_member)
    parts = pyio_chunked.partition(refs, target_bytes)
    # A bag of no partitions can't be.
    bag: Any = dask.bag
    return bag.from_sequence(parts, npartitions=max(len(parts), 1)).map_partitions(read_part)


def too_large(ref: EntryRef, allowed: int) -> pyio_chunked.LimitError:
    text = f"{ref.path}: {ref.name} has {ref.size} bytes, max_member is {allowed}: EntryRef.open streams it"
    return pyio_chunked.LimitError(text, "max_member", ref.size, allowed)


def read_part(parts: Any) -> list[tuple[str, bytes]]:
    return [(ref.name, ref.read()) for part in parts for ref in part]
