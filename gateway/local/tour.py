"""The client of the demo's tour: asks through the gateway as any program would, and looks at what comes back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Protocol

import aiohttp

from gateway import clock
from gateway.local.launch import LlamaServer

__all__ = ["Answer", "Audience", "StepFailed", "Tour", "expect", "served"]


class StepFailed(Exception):
    """A promise of the tour did not hold; the message says which."""


class Audience(Protocol):
    """Whoever watches the tour."""

    def doing(self, what: str) -> None:
        """What is being waited for; holds until the next call of any kind."""

    def asked(self, text: str) -> None:
        """What the user says."""

    def token(self, piece: str) -> None:
        """The next piece of a streamed answer."""


@dataclass(slots=True)
class Answer:
    """What came back for one request. Times in seconds."""

    status: int
    headers: dict[str, str]
    text: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    ttft: float | None = None

    @property
    def backend(self) -> str:
        """Which backend answered."""
        return self.headers.get("x-kvgate-backend", "?")

    @property
    def decision(self) -> str:
        """The id for `kvgate explain`."""
        return self.headers.get("x-kvgate-decision", "")

    @property
    def prompt(self) -> int:
        """Prompt tokens as the engine counted them."""
        return int(self.usage.get("prompt_tokens") or 0)

    @property
    def output(self) -> int:
        """Output tokens as the engine counted them."""
        return int(self.usage.get("completion_tokens") or 0)

    @property
    def cached(self) -> int:
        """Prompt tokens that the engine itself says it took from its cache."""
        return int((self.usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)


@dataclass(slots=True)
class Tour:
    """What the steps share: the gateway's addresses, the engines behind it, and the conversation so far."""

    url: str
    admin: str
    real_model: str
    big_model: str
    engines: dict[str, LlamaServer]
    http: aiohttp.ClientSession
    audience: Audience
    turns: list[dict[str, str]] = field(default_factory=list)
    home: str = ""
    """The backend that holds the conversation."""
    decision: str = ""
    """A decision worth explaining."""

    async def chat(
        self, messages: list[dict[str, str]], *, model: str | None = None, shown: bool = True, **rest: Any
    ) -> Answer:
        """One streamed chat completion through the gateway; `shown` to the audience as it comes.

        Raises StepFailed when the stream breaks.
        """
        body: dict[str, Any] = {"model": model or self.real_model, "messages": messages, "stream": True, **rest}
        body["stream_options"] = {"include_usage": True}
        started = clock.monotonic()
        async with self.http.post(f"{self.url}/v1/chat/completions", json=body) as reply:
            answer = Answer(reply.status, {name.lower(): value for name, value in reply.headers.items()})
            if reply.status == 200:
                await self._read_stream(reply, answer, started, shown=shown)
            else:
                answer.error = (await reply.json()).get("error") or {}
        answer.seconds = clock.monotonic() - started
        return answer

    async def _read_stream(self, reply: aiohttp.ClientResponse, answer: Answer, started: float, *, shown: bool) -> None:
        done = False
        async for line in reply.content:
            if not line.startswith(b"data: "):
                continue
            if line.strip() == b"data: [DONE]":
                done = True
                continue
            event = json.loads(line[6:])
            if "error" in event:
                raise StepFailed(f"the stream ended with an error: {event['error'].get('message')}")
            answer.usage = event.get("usage") or answer.usage
            for choice in event.get("choices") or ():
                piece = choice.get("delta", {}).get("content") or ""
                if piece and answer.ttft is None:
                    answer.ttft = clock.monotonic() - started
                answer.text += piece
                if piece and shown:
                    self.audience.token(piece)
        if not done:
            raise StepFailed("the stream ended without its [DONE]")

    async def admin_json(self, path: str) -> Any:
        """GET from the admin port."""
        async with self.http.get(f"{self.admin}{path}") as reply:
            return await reply.json()

    async def engine_metric(self, engine: str, name: str) -> int:
        """A metric as the engine itself reports it, 0 where it reports none."""
        async with self.http.get(f"{self.engines[engine].url}/metrics") as reply:
            for line in (await reply.text()).splitlines():
                if line.startswith(f"{name} "):
                    return int(float(line.split()[1]))
        return 0


def expect(holds: bool, otherwise: str) -> None:
    """Raise StepFailed unless it holds."""
    if not holds:
        raise StepFailed(otherwise)


def served(answer: Answer) -> None:
    """Raise StepFailed unless the answer is a good one with text."""
    expect(answer.status == 200, f"HTTP {answer.status}: {answer.error.get('message')}")
    expect(bool(answer.text), "the answer has no text")
