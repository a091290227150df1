"""Find out which surfaces a server has routes for, without asking it to do anything.

FastAPI servers list their paths. Where there is no list, half a JSON object is posted: a server that has the route
fails to parse it (400 or so), one that lacks it says 404, 405 or 501. Text that is no JSON can start nothing, whatever
a server assumes for members that are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from gateway.engines.adapter import Answer, Probe
from gateway.wire.surfaces import SURFACES

__all__ = ["OPENAPI", "listed", "probed", "probes_of"]

OPENAPI = Probe("GET", "/openapi.json", kept=True)
"""FastAPI's list of its paths; it may be switched off."""

_UNFINISHED = b"{"
_ABSENT = frozenset((404, 405, 501))
_PRESENT = frozenset((400, 413, 415, 422, 429, 500))
"""429 and 500 come from behind the route; a server without it would not get that far."""
_NO_SUCH = b"Unexpected endpoint"
"""LM Studio says so with status 200."""


class _Paths(msgspec.Struct):
    paths: dict[str, msgspec.Raw] = {}


_DECODER = msgspec.json.Decoder(_Paths)


def probes_of(surfaces: Iterable[str]) -> tuple[Probe, ...]:
    """One harmless POST for each surface, kept for as long as the engine runs."""
    return tuple(Probe("POST", SURFACES[name].path, _UNFINISHED, kept=True) for name in surfaces)


def probed(answers: Mapping[str, Answer], surfaces: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """(present, told): those that have a route, and those of which the answers tell whether they do."""
    present, told = set(), set()
    for name in surfaces:
        answer = answers.get(SURFACES[name].path)
        if answer is None:
            continue
        if answer.status in _ABSENT or answer.status == 200:
            told.add(name)
            # An honest answer to half a JSON object is no 200: a page for everything, or LM Studio's way to say no.
        elif answer.status in _PRESENT:
            told.add(name)
            if _NO_SUCH not in answer.body:
                present.add(name)
    return frozenset(present), frozenset(told)


def listed(answers: Mapping[str, Answer], also: Mapping[str, str] | None = None) -> frozenset[str] | None:
    """The surfaces whose usual path, or the one in `also`, is in the list of paths; None where there is no list."""
    answer = answers.get(OPENAPI.key)
    if answer is None or answer.status != 200:
        return None
    try:
        paths = _DECODER.decode(answer.body).paths
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
    other = also or {}
    found = frozenset(name for name, each in SURFACES.items() if each.path in paths or other.get(name) in paths)
    return found or None
