"""The two phases of serving a request, which devices are fast or slow at on their own."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Phase"]


class Phase(StrEnum):
    """What seconds were spent on."""

    PREFILL = "prefill"
    """Reading the prompt."""
    DECODE = "decode"
    """Writing the answer."""
