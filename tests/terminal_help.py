# SPDX-License-Identifier: MIT
"""Two ends of a terminal, where the system has any."""

from __future__ import annotations

import os

import pytest


def open_terminal() -> tuple[int, int]:
    try:
        return os.openpty()
    except OSError as error:
        pytest.skip(f"no terminals here: {error.strerror}")
