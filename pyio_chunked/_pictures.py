# SPDX-License-Identifier: MIT
"""What C returns and a notebook shows as a table, which _html makes when asked."""

from __future__ import annotations

from pyio_chunked._core import PoolStats as PoolStats


def _pool_stats_html(self: PoolStats) -> str:
    """A table, for notebooks."""
    from pyio_chunked._html import pool_html

    return pool_html(self)


PoolStats._repr_html_ = _pool_stats_html
