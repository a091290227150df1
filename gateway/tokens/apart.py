"""A long body measured in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.apart import work_apart

if TYPE_CHECKING:
    from gateway.tokens.measure import Measured

__all__ = ["WORK", "measure_apart", "measured"]

WORK = "gateway.tokens.apart:measured"
"""What the process is asked to do."""


def measure_apart(surface: str, body: bytes, salt: bytes) -> object:
    """Return what `measure` returns in a fresh process, or the GatewayError that it raises there.

    Blocks its thread, without holding the interpreter. NoRoom when the process did not come to an end.
    """
    return work_apart(WORK, (surface, salt), (body,))[0]


def measured(told: tuple[str, bytes], body: bytes) -> tuple[Measured, bytes]:
    """The work itself: `told` is the surface and the salt."""
    from gateway.tokens.measure import measure

    surface, salt = told
    return measure(surface, body, salt), b""
