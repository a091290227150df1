"""Prometheus text to samples, for the few families that an adapter wants.

prometheus_client's parser builds objects for all of a 70 kB vLLM page (tens of milliseconds); an adapter needs a dozen
lines of it, so lines are picked by name first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Sample", "samples"]

_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
_LABELS = rb'(?:\{((?:[^"}\n]|"(?:[^"\\\n]|\\.)*")*+)\})?'
_ESCAPE = re.compile(r"\\(.)")


class Sample(NamedTuple):
    """One line: its labels and its value."""

    labels: dict[str, str]
    value: float


def samples(page: bytes, names: Iterable[str]) -> dict[str, list[Sample]]:
    """The samples of the families `names` in a page of the text format (or OpenMetrics), by name.

    A family that is absent, or whose value is no finite number, is absent from the result: never zero.
    """
    found: dict[str, list[Sample]] = {}
    wanted = "|".join(re.escape(name) for name in names)
    lines = re.compile(rb"^(" + wanted.encode() + rb")" + _LABELS + rb"[ \t]+([^ \t\r\n]+)", re.MULTILINE)
    for line in lines.finditer(page):
        try:
            value = float(line[3])
        except ValueError:
            continue
        if math.isfinite(value):
            found.setdefault(line[1].decode(), []).append(Sample(_labels(line[2]), value))
    return found


def _labels(text: bytes | None) -> dict[str, str]:
    if not text:
        return {}
    return {
        name: _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], value)
        for name, value in _LABEL.findall(text.decode("utf-8", "replace"))
    }
