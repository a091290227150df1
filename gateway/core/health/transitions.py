"""The states of a backend and what moves it between them, as one table; the diagram in docs/states.md is made from it.

A state follows from facts (`states.health_of`): the operator's drain, the last probe, the breaker, and whether requests
there get tokens. So any change of one fact is a transition, and these are all there are.
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway.core.snapshot import Health

__all__ = ["MEANING", "TRANSITIONS", "diagram"]

_U, _T, _L, _O, _R, _D, _N = (
    Health.UP, Health.TRIAL, Health.LOADING, Health.OPEN, Health.RESTING, Health.DOWN, Health.UNKNOWN,
)  # fmt: skip

MEANING: Mapping[Health, str] = {
    Health.UNKNOWN: "not asked yet; gets nothing",
    Health.UP: "works; gets what it has room for",
    Health.TRIAL: "back after failures, or silent; gets one request at a time until one is answered",
    Health.OPEN: "failed repeatedly; gets nothing until its rest is over, each longer than the last",
    Health.RESTING: "works, and asked for a pause; gets nothing until then",
    Health.LOADING: "there, and loads its model; what waits for it waits on, nothing is held against it",
    Health.DOWN: "does not answer; gets nothing",
    Health.DRAINING: "kept from new requests by an operator or a reload; what runs there ends",
}
"""What each state is, and what it gets."""

TRANSITIONS: Mapping[tuple[Health, Health], str] = {
    (_N, _U): "its engine answered",
    (_N, _L): "its engine says that it loads",
    (_N, _D): "its port is closed, or it is silent",
    (_N, _O): "requests failed before it was asked",
    (_N, _R): "it asked for a pause before it was asked",
    (_N, _T): "its rest is over, and its engine answered",
    (_U, _L): "its engine says that it loads, or was started anew",
    (_U, _D): "its port is closed, or it is silent and nothing moves there",
    (_U, _O): "failures in a row, or one that is certain",
    (_U, _R): "it is full and named a time",
    (_U, _T): "requests there get no token for longer than predicted",
    (_T, _U): "an answer ended well, or a token came",
    (_T, _O): "the trial failed, and the rest is twice as long",
    (_T, _R): "it is full and named a time",
    (_T, _L): "its engine says that it loads, or was started anew",
    (_T, _D): "its port is closed, or it is silent",
    (_O, _T): "its rest is over, or it was started anew",
    (_O, _L): "its engine says that it loads, or was started anew",
    (_O, _D): "its port is closed, or it is silent",
    (_O, _N): "its rest is over, and it was never asked",
    (_R, _T): "the pause is over",
    (_R, _O): "failures in a row",
    (_R, _L): "its engine says that it loads, or was started anew",
    (_R, _D): "its port is closed, or it is silent",
    (_R, _N): "the pause is over, and it was never asked",
    (_L, _U): "its model is loaded",
    (_L, _D): "its port is closed, or it is silent",
    (_L, _O): "its model is loaded, and an earlier rest is not over",
    (_L, _R): "its model is loaded, and an earlier pause is not over",
    (_L, _T): "its model is loaded, and it had failed before",
    (_D, _U): "its engine answers",
    (_D, _L): "its engine says that it loads",
    (_D, _O): "its engine answers, and an earlier rest is not over",
    (_D, _R): "its engine answers, and an earlier pause is not over",
    (_D, _T): "its engine answers, and it had failed before",
}
"""(from, to): what happened. Besides, any state goes to DRAINING and back to what the facts say."""

_MAIN = frozenset(
    (
        (_N, _U), (_N, _L), (_N, _D), (_U, _L), (_U, _D), (_U, _O), (_U, _R), (_U, _T), (_T, _U), (_T, _O),
        (_O, _T), (_O, _D), (_R, _T), (_R, _O), (_L, _U), (_L, _D), (_D, _U), (_D, _L), (_D, _T),
    )
)  # fmt: skip
"""Those that a picture has room for."""


def diagram() -> str:
    """The usual transitions as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {Health.UNKNOWN}"]
    lines += [
        f"    {was} --> {becomes}: {why}" for (was, becomes), why in TRANSITIONS.items() if (was, becomes) in _MAIN
    ]
    lines += [f"    {Health.UP} --> {Health.DRAINING}: drained by hand or by a reload, from any state"]
    lines += [f"    {Health.DRAINING} --> [*]: removed, and nothing runs there any more"]
    return "\n".join(lines)
