# SPDX-License-Identifier: MIT
"""python -m pyio_chunked: the command line."""

import sys

from pyio_chunked._cli import main

if __name__ == "__main__":
    sys.exit(main())
