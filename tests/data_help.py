# SPDX-License-Identifier: MIT
"""What the tests of typed streams share."""

from __future__ import annotations

import io
from typing import Any


class Drip(io.RawIOBase):
    """A source that gives a byte or three at a time and can't seek."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = min(len(buffer), 1 + self.at % 3, len(self.data) - self.at)
        buffer[:n] = self.data[self.at : self.at + n]
        self.at += n
        return n
