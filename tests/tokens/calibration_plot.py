"""A calibration plot as SVG: the predicted quantile against the share that was observed within it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

__all__ = ["plot"]

_SIZE, _LEFT, _TOP = 420, 56, 24
_COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7b4fa3", "#8a6d1d")
_TOLERANCE = 0.03
_TICKS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)


def plot(curves: Mapping[str, Mapping[float, float]]) -> str:
    """One line a curve, over the diagonal of perfect calibration and the band of 3 points around it."""
    width, height = _LEFT + _SIZE + 24, _TOP + _SIZE + 56 + 18 * len(curves)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<polygon points="{_path(((0, _TOLERANCE), (1 - _TOLERANCE, 1), (1, 1 - _TOLERANCE), (_TOLERANCE, 0)))}" '
        'fill="#e8e8e8"/>',
        f'<polyline points="{_path(((0, 0), (1, 1)))}" stroke="#888" stroke-dasharray="4 3"/>',
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIZE}" height="{_SIZE}" fill="none" stroke="#444"/>',
    ]
    for tick in _TICKS:
        x, y = _at(tick, tick)
        out.append(f'<text x="{x:.1f}" y="{_TOP + _SIZE + 16}" text-anchor="middle">{tick:.0%}</text>')
        out.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:.0%}</text>')
    out.append(f'<text x="{_LEFT + _SIZE / 2}" y="{_TOP + _SIZE + 36}" text-anchor="middle">predicted quantile</text>')
    out.append(f'<text x="{_LEFT}" y="{_TOP - 8}">share of answers within it</text>')
    for index, (name, shares) in enumerate(curves.items()):
        colour = _COLOURS[index % len(_COLOURS)]
        points = sorted(shares.items())
        out.append(f'<polyline points="{_path(points)}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        for level, share in points:
            x, y = _at(level, share)
            out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
        y = _TOP + _SIZE + 56 + 18 * index
        out.append(f'<circle cx="{_LEFT + 5}" cy="{y - 4}" r="4" fill="{colour}"/>')
        out.append(f'<text x="{_LEFT + 16}" y="{y}">{escape(name)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def _at(level: float, share: float) -> tuple[float, float]:
    return _LEFT + level * _SIZE, _TOP + (1.0 - share) * _SIZE


def _path(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in (_at(level, share) for level, share in points))
