"""A question of one token to backends that rest after failures: its answer says whether a client should be sent there.

Of our own words, never a client's; one at a time for each backend, given up after `PATIENCE`; not to backends off
premises, which charge for it, nor to engines that would load another model for it. Off unless the file says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from gateway import clock
from gateway.core.backend import Offer
from gateway.engines.adapter import Answer, Engine, Probe
from gateway.fleet.member import Member
from gateway.fleet.probing import ProbeFailed, Prober, Target

__all__ = ["Canary", "question", "verdict"]

PATIENCE = 10.0
"""Seconds for the answer: a token takes a healthy engine less than one, a busy one rarely more."""
UNABLE = 300.0
"""Seconds for which an engine is not asked again that found fault with the question."""
_BODIES: dict[str, dict[str, object]] = {
    "chat": {"messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 1},
    "completions": {"prompt": "Say yes.", "max_tokens": 1},
    "messages": {"messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 1},
    "embeddings": {"input": "yes"},
}
"""In this order the first that the engine speaks; one token is a thought, too, where the model thinks."""
_ANSWERS = ("choices", "content", "data")

log = logging.getLogger("kvgate.fleet")


class Canary:
    """Asks. `answered` is told a backend's name and whether it did; None: it could not be asked so."""

    def __init__(self, prober: Prober, answered: Callable[[str, bool | None], None]) -> None:
        self._prober = prober
        self._answered = answered
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._not_before: dict[str, float] = {}

    def ask(self, member: Member, target: Target) -> bool:
        """Ask that backend, unless a question to it is open or it can't be asked; True if it is asked now."""
        name = member.backend.name
        if name in self._asking or clock.monotonic() < self._not_before.get(name, 0.0):
            return False
        if member.backend.off_premises or member.backend.one_model or not member.offers:
            return False
        asked = question(member.engine, member.offers[0])
        if asked is not None:
            self._asking[name] = asyncio.create_task(self._ask(name, target, asked), name=f"canary {name}")
        return asked is not None

    async def stop(self) -> None:
        """Give up what is open."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, name: str, target: Target, asked: Probe) -> None:
        found: bool | None = False
        why = ""
        try:
            answers = await self._prober.ask(target, (asked,), PATIENCE)
            found = verdict(answers[asked.key])
        except ProbeFailed as error:
            why = f" ({error})"
        finally:
            self._asking.pop(name, None)
        if found is None:
            self._not_before[name] = clock.monotonic() + UNABLE
        else:
            log.info("backend %s: %s a question of one token%s", name, "answered" if found else "did not answer", why)
        self._answered(name, found)


def question(engine: Engine, offer: Offer) -> Probe | None:
    """What an engine is asked about that model; None where no question of one token fits it."""
    spoken = offer.surfaces if offer.surfaces is not None else engine.traits.surfaces
    surface = next((surface for surface in _BODIES if surface in spoken), None)
    if surface is None:
        return None
    body = msgspec.json.encode({"model": offer.served_as, **_BODIES[surface]})
    return Probe("POST", engine.path(surface), body, tuple(engine.surface_headers(surface).items()), name="canary")


def verdict(answer: Answer) -> bool | None:
    """Whether that is an answer; None where it tells nothing: the engine loads, or doesn't take the question."""
    if 400 <= answer.status < 500 or answer.status == 503:
        return None
    if answer.status != 200:
        return False
    try:
        said = msgspec.json.decode(answer.body)
    except msgspec.DecodeError:
        return False
    return isinstance(said, dict) and any(said.get(member) for member in _ANSWERS)
