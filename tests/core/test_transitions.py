"""The table of states is what the code does: every change of one fact is in it, and nothing else."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from gateway.core.failure import FailureKind
from gateway.core.health.breaker import BackendBreaker
from gateway.core.health.states import Probed, health_of
from gateway.core.health.transitions import MEANING, TRANSITIONS, diagram
from gateway.core.plan import Breaker
from gateway.core.snapshot import Health

NOW = 1000.0
DOCS = Path(__file__).parents[2] / "docs" / "states.md"
_BREAKERS = {
    "closed": ("open", "rests"),
    "open": ("trial",),
    "rests": ("trial", "open"),
    "trial": ("closed", "open", "rests"),
}
"""How a breaker changes, and to what."""
_PROBES = {Probed.UNKNOWN: (Probed.UP, Probed.LOADING, Probed.DOWN)} | {
    was: tuple(one for one in (Probed.UP, Probed.LOADING, Probed.DOWN) if one is not was)
    for was in (Probed.UP, Probed.LOADING, Probed.DOWN)
}


def breaker(state: str) -> BackendBreaker:
    made = BackendBreaker(Breaker())
    if state == "rests":
        made.rest_until(NOW + 10.0, NOW)
    elif state == "open":
        made.failed(FailureKind.CREDENTIALS, NOW)
    elif state == "trial":
        made.failed(FailureKind.CREDENTIALS, NOW - 500.0)
    return made


def health(probed: Probed, state: str, silent: bool) -> Health:
    return health_of(probed, breaker(state), False, NOW, silent=60.0 if silent else 0.0)[0]


def test_the_table_has_every_change_of_one_fact_and_no_other() -> None:
    found = set()
    for probed, state, silent in product(_PROBES, _BREAKERS, (False, True)):
        was = health(probed, state, silent)
        after = [health(other, state, silent) for other in _PROBES[probed]]
        after += [health(probed, other, silent) for other in _BREAKERS[state]]
        after += [health(probed, state, not silent)]
        found |= {(was, becomes) for becomes in after if becomes is not was}
    assert found == set(TRANSITIONS)


def test_a_drain_overrules_everything_and_its_end_brings_back_what_the_facts_say() -> None:
    for probed, state in product(_PROBES, _BREAKERS):
        assert health_of(probed, breaker(state), True, NOW)[0] is Health.DRAINING


def test_the_diagram_in_the_docs_is_this_one() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert f"```mermaid\n{diagram()}\n```" in text, (
        "python -c 'from gateway.core.health.transitions import *; print(diagram())'"
    )
    for state, meaning in MEANING.items():
        assert f"| `{state}` | {meaning} |" in text
    for (was, becomes), why in TRANSITIONS.items():
        assert f"| `{was}` | `{becomes}` | {why} |" in text
    assert set(MEANING) == set(Health)
