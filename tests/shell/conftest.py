from __future__ import annotations

from tests.shell.fixtures import start, unblocked

__all__ = ["start", "unblocked"]
