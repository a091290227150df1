"""Ask the engines of a file what they serve, once, all at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from gateway.config.endpoint import Endpoint
from gateway.engines.adapter import Facts
from gateway.engines.registry import engine
from gateway.fleet.discovery import discover
from gateway.fleet.probing import ProbeFailed, Prober, Target

__all__ = ["ask_engines"]


def ask_engines(endpoints: Sequence[Endpoint], timeout: float = 5.0) -> Mapping[str, Facts | str]:
    """By backend name: what its engine says, or why it said nothing within `timeout` seconds a question."""
    return asyncio.run(_ask_all(endpoints, timeout))


async def _ask_all(endpoints: Sequence[Endpoint], timeout: float) -> Mapping[str, Facts | str]:
    prober = Prober()
    try:
        answers = await asyncio.gather(*(_ask(prober, one, timeout) for one in endpoints))
    finally:
        await prober.close()
    return {one.name: answer for one, answer in zip(endpoints, answers, strict=True)}


async def _ask(prober: Prober, endpoint: Endpoint, timeout: float) -> Facts | str:
    adapter = engine(endpoint.engine)
    key = endpoint.key.reveal() if endpoint.key and not endpoint.key.missing else None
    target = Target(endpoint.name, endpoint.url, adapter.credential(key) if key else None)
    try:
        answers = await discover(prober, target, adapter, timeout)
    except ProbeFailed as error:
        return str(error)
    facts = adapter.facts(answers)
    if facts.models or facts.loading:
        return facts
    statuses = sorted({answers[probe.key].status for probe in adapter.discovery if probe.key in answers})
    if {401, 403} & set(statuses):
        return f"answers {statuses[0]}: " + ("its key is not accepted" if key else "it wants a `key`")
    return f"answers, but lists no models (HTTP {', '.join(map(str, statuses))}): is it {endpoint.engine}?"
