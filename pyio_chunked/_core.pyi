# SPDX-License-Identifier: MIT
# The private half of the package: what is public is typed in __init__.pyi.
from typing import Any

def __getattr__(name: str) -> Any: ...
