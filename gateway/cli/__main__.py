"""`python -m gateway.cli` is `kvgate`."""

from __future__ import annotations

import sys

from gateway.cli import main

if __name__ == "__main__":
    sys.exit(main())
