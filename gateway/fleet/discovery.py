"""Ask an engine what it is: first what its adapter always asks, then what follows from the answers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Protocol

from gateway.engines.adapter import Answer, Engine, Probe
from gateway.fleet.probing import ProbeFailed, Target

__all__ = ["Asks", "discover"]


class Asks(Protocol):
    """Who puts questions to an engine; `fleet.probing.Prober` does."""

    async def ask(self, target: Target, probes: Iterable[Probe], timeout: float) -> Mapping[str, Answer]:
        """Return the answers by the probes' keys."""
        ...


async def discover(
    prober: Asks, target: Target, engine: Engine, timeout: float, kept: dict[str, Answer] | None = None
) -> dict[str, Answer]:
    """Return the answers to all of the adapter's questions, by key.

    An answer in `kept` to a probe that says it may be kept is not asked for again; new ones are put there. Such a probe
    may also go unanswered: an engine may be too busy for it, and is up all the same. `timeout` is in seconds for each
    question. Raises ProbeFailed when another one was not answered.
    """
    known = {} if kept is None else kept
    answers = await _round(prober, target, engine.discovery, timeout, known)
    answers |= await _round(prober, target, engine.follow_up(answers), timeout, known)
    return answers


async def _round(
    prober: Asks, target: Target, probes: Iterable[Probe], timeout: float, known: dict[str, Answer]
) -> dict[str, Answer]:
    asked = list(probes)
    answers = dict(await prober.ask(target, [each for each in asked if not each.kept], timeout))
    for each in asked:
        if not each.kept:
            continue
        if each.key not in known:
            with contextlib.suppress(ProbeFailed):
                known.update(await prober.ask(target, [each], timeout))
        if each.key in known:
            answers[each.key] = known[each.key]
    return answers
