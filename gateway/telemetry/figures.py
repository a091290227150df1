"""Numbers as people read them: three digits or so, and a unit."""

from __future__ import annotations

__all__ = ["count", "ratio", "seconds"]


def seconds(value: object) -> str:
    """A duration given in seconds: milliseconds below one second; "" for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    size = abs(value)
    if size == 0:
        return "0"
    if size < 0.000_1:
        return "<0.1 ms"
    if size < 0.009_95:
        return f"{value * 1000:.1f} ms"
    if size < 0.999_5:
        return f"{value * 1000:.0f} ms"
    if size < 9.995:
        return f"{value:.2f} s"
    return f"{value:.1f} s" if size < 99.95 else f"{value:,.0f} s"


def count(value: object) -> str:
    """A number of tokens or requests, in thousands; "" for what is no number."""
    return f"{value:,.0f}" if isinstance(value, int | float) and not isinstance(value, bool) else ""


def ratio(measured: object, predicted: object) -> str:
    """How many times the prediction was measured; "" when either is missing or zero."""
    if not isinstance(measured, int | float) or not isinstance(predicted, int | float) or predicted <= 0:
        return ""
    times = measured / predicted
    return "" if times <= 0 else f"×{times:.2f}" if times < 9.95 else f"×{times:,.0f}"
