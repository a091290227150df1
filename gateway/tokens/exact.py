"""Exact counts of prompt tokens, asked for only where a decision hangs on them.

A local tokenizer answers where one is configured for the model, else an engine that serves it and may see the request.
What was counted is kept; of equal prompts at one time one is counted. Whatever goes wrong, the estimate stands.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import xxhash

from gateway.core.plan import Plan, Route
from gateway.core.request import Request
from gateway.core.snapshot import Snapshot
from gateway.core.uncertain import Stake, at_stake, with_count
from gateway.tokens.exact_engine import EngineCounts
from gateway.tokens.exact_local import LocalCounts
from gateway.tokens.measure import Measured
from gateway.tokens.tokenizer_file import Count
from gateway.wire.chat_request import ChatRequest
from gateway.wire.surfaces import SURFACES, Kind

__all__ = ["ExactCounts", "Prompt", "Subject"]

KEPT = 4096
"""Counts that are remembered."""
MOST_AT_ONCE = 32
"""Prompts that are being counted at one time; of more the estimate stands. Each holds its body."""
LONGEST = 8 << 20
"""Bytes of a body whose tokens are counted; engines take seconds for more, and others wait for them meanwhile."""
PATIENCE = {Stake.CUT: 0.25, Stake.OVERFLOW: 2.0, Stake.REFUSAL: 2.0}
"""Seconds that a request waits for its count. Engines answer in 5 to 60 ms where nothing else holds up their machine.
One that would be refused otherwise, by the gateway or by an engine, loses nothing by waiting longer."""
GIVEN_UP = 4.0
"""Seconds after which a count is not waited for by anybody: it may still serve the client's next try."""
_OPTIONS = frozenset(
    (
        "add_generation_prompt", "add_special_tokens", "chat_template", "chat_template_kwargs", "documents",
        "continue_final_message", "reasoning_effort", "response_format", "tool_choice",
    )
)  # fmt: skip
"""Members that change what a template makes of the same messages."""


class Subject(NamedTuple):
    """A described request with what it was described by."""

    request: Request
    route: Route
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is counted: a body, and what is known of it."""

    chat: ChatRequest
    body: bytes
    key: tuple[int, ...]


class ExactCounts:
    """Counts prompts, off the event loop or in an engine.

    `note` is told who was to count ("local" or "engine") and what came of it: "counted", "kept" (it was known already),
    "late" (the estimate had to do), "failed", or "unable" (nobody could be asked).
    """

    def __init__(
        self, engines: EngineCounts, local: LocalCounts, note: Callable[[str, str], None] = lambda _by, _how: None
    ) -> None:
        self.local = local
        self.note = note
        self.shown: Callable[[Request, str], None] = lambda _request, _backend: None
        """Called with a request and the name of a backend that is about to be shown its prompt."""
        self._engines = engines
        self._known: OrderedDict[tuple[object, ...], Count] = OrderedDict()
        self._under_way: dict[tuple[object, ...], asyncio.Task[Count | None]] = {}

    @property
    def under_way(self) -> int:
        """Prompts that are being counted now."""
        return len(self._under_way)

    async def settled(self, subject: Subject, measured: Measured, body: bytes, plan: Plan) -> Request:
        """The request with a counted prompt, where its decision hangs on that and it could be counted in time."""
        request = subject.request
        model, stake = at_stake(plan, request, subject.route, subject.snapshot)
        if stake is Stake.NOTHING:
            return request
        return await self._counted(subject, model, measured, body, PATIENCE[stake])

    async def asked_for(self, subject: Subject, measured: Measured, body: bytes) -> Request:
        """The same for a client that asks how many tokens there are."""
        return await self._counted(subject, subject.route.serves, measured, body, PATIENCE[Stake.REFUSAL])

    async def close(self) -> None:
        """Stop counting."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.local.close()

    async def _counted(self, subject: Subject, model: str, measured: Measured, body: bytes, patience: float) -> Request:
        request, chat = subject.request, measured.chat
        if not _can_be_counted(chat, body):
            return request
        prompt = Prompt(chat, body, _key(measured, body))
        by = "local" if self.local.knows(model) else "engine"
        key = (model, *prompt.key)
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
            self.note(by, "kept")
            return with_count(request, model, *found)
        task = self._under_way.get(key)
        if task is None:
            if len(self._under_way) >= MOST_AT_ONCE:
                self.note(by, "late")
                return request
            task = asyncio.create_task(self._count(key, subject, model, prompt), name="count tokens")
            self._under_way[key] = task
        try:
            async with asyncio.timeout(patience):
                found = await asyncio.shield(task)
        except TimeoutError:
            self.note(by, "late")
            return request
        return request if found is None else with_count(request, model, *found)

    async def _count(self, key: tuple[object, ...], subject: Subject, model: str, prompt: Prompt) -> Count | None:
        """One count, for all who wait for it; never raises but when it is cancelled."""
        by, how = "engine", "failed"
        found: Count | None = None
        try:
            async with asyncio.timeout(GIVEN_UP):
                if self.local.knows(model):
                    by, found = "local", await self.local.count(model, prompt.chat, prompt.body)
                if found is None:
                    by = "engine"
                    backends = self._engines.able(subject.request, model, prompt.chat, subject.snapshot)
                    if not backends:
                        how = "unable"
                    shown = partial(self.shown, subject.request)
                    tokens = await self._engines.count(subject.request, backends, prompt.chat, prompt.body, shown)
                    found = None if tokens is None else Count(tokens)
        except TimeoutError:
            return None  # whoever waited has noted it
        finally:
            self._under_way.pop(key, None)
        self.note(by, "counted" if found is not None else how)
        if found is not None:
            self._known[key] = found
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return found


def _can_be_counted(chat: ChatRequest, body: bytes) -> bool:
    """Whether the body says all of one prompt: not one that goes on from a kept answer, nor several at once."""
    generates = SURFACES[chat.surface].kind is Kind.GENERATION or chat.surface == "count_tokens"
    return (
        generates
        and chat.previous is None
        and chat.prompts == 1
        and chat.prompt_tokens is None
        and (len(body) <= LONGEST)
    )


def _key(measured: Measured, body: bytes) -> tuple[int, ...]:
    """What tells one prompt from another: its text, and what else a template is given."""
    chain, chat = measured.chain, measured.chat
    digest = xxhash.xxh3_64()
    for member in chat.members:
        if member.key in _OPTIONS:
            digest.update(memoryview(body)[member.key_start : member.value_end])
    if not chat.members:
        digest.update(body)
    return chain.whole, chain.total, digest.intdigest()
