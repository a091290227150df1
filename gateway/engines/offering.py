"""Which surface clients get of which engine, and how: a table for people, made from what the adapters say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gateway.engines.adapter import Engine
from gateway.engines.registry import ENGINES
from gateway.wire.surfaces import SURFACES

__all__ = ["How", "Row", "markdown", "offering"]


class How(StrEnum):
    """How an engine serves a surface."""

    NATIVE = "native"
    """Passed through: the engine speaks it."""
    TRANSLATED = "translated"
    """The engine speaks another that it is translated to."""
    IF_FOUND = "if found"
    """Passed through where discovery finds it: it hangs on model, version or start options."""
    IF_FOUND_ELSE_TRANSLATED = "if found, else translated"
    """Passed through where discovery finds it, else translated."""
    TRANSLATED_IF_FOUND = "if found, translated"
    """Translated to another where discovery finds that."""
    NOT_OFFERED = "-"
    """Not at all."""


@dataclass(frozen=True, slots=True)
class Row:
    """One surface: `cells` are (engine's name, how)."""

    surface: str
    cells: tuple[tuple[str, How], ...]


_COUNTED_HERE = "count_tokens"


def offering(spoken: Mapping[str, tuple[str, ...]]) -> tuple[Row, ...]:
    """A row for each surface that any engine offers. `spoken`: what each client's surface can be translated to."""
    rows = (
        Row(name, tuple((each, _how(adapter, name, spoken.get(name, ()))) for each, adapter in ENGINES.items()))
        for name in SURFACES
    )
    served = (row for row in rows if row.surface != _COUNTED_HERE)
    return tuple(row for row in served if any(how is not How.NOT_OFFERED for _, how in row.cells))


def _how(adapter: Engine, surface: str, instead: tuple[str, ...]) -> How:
    traits = adapter.traits
    if surface in traits.surfaces:
        return How.NATIVE
    translated = any(other in traits.surfaces for other in instead)
    if surface in traits.also:
        return How.IF_FOUND_ELSE_TRANSLATED if translated else How.IF_FOUND
    if translated:
        return How.TRANSLATED
    return How.TRANSLATED_IF_FOUND if any(other in traits.also for other in instead) else How.NOT_OFFERED


_LEGEND = f"""
`{How.NATIVE}`: bytes pass through. `{How.TRANSLATED}`: the engine is asked in another surface that it speaks, and its
answer is put back. `{How.IF_FOUND}`: where discovery finds the route, which hangs on the model, the version or how the
engine was started. `{How.NOT_OFFERED}`: not offered; such a request goes to another backend, or is refused with 404.

Tokens of a Messages request are counted by kvgate itself, as it would admit them; `x-kvgate-count` says whether the
number is exact or estimated. Messages with turns of the system's among them, as Claude Code sends, are translated for
engines that have chat too: most that copy the dialect refuse them. What a translation has no place for (a stored
response to go on from, a tool that the service itself runs) is served by engines that speak the surface, or refused
with 400 and the member's name.

A stream is whole when every choice has told why it ended. `[DONE]` alone, with text before it or without, is a failure
on every surface: status 502 before anything was sent, an error in the client's dialect after that. Where an answer is
translated, a reason that means that the engine gave it up (`abort`, `error`, `cancelled`, ...) is such a failure too;
reasons that nobody knows are not. Chat passed through has the engine's own word.
"""


def markdown(spoken: Mapping[str, tuple[str, ...]]) -> str:
    """The table, with its legend, for the documentation."""
    rows = [(SURFACES[row.surface].noun, *(how for _, how in row.cells)) for row in offering(spoken)]
    table = [("surface", *ENGINES), ("---",) * (len(ENGINES) + 1), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in table) + "\n" + _LEGEND
