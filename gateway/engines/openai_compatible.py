"""Any server that speaks OpenAI's chat API and of which nothing else is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gateway.engines.adapter import Answer, Facts, Failure, FoundModel, Load, Probe, Traits
from gateway.engines.answers import count, json_list
from gateway.engines.asking import Asked
from gateway.engines.failures import classify
from gateway.engines.rewrites import shared_edits, with_usage
from gateway.wire.chat_request import ChatRequest

__all__ = ["OpenAiCompatible"]

_WINDOWS = ("max_model_len", "context_window", "context_length", "max_context_length", "n_ctx")


@dataclass(frozen=True, slots=True)
class OpenAiCompatible(Asked):
    """Load is what the gateway itself has running there; sharing of prefixes is not counted on."""

    name: ClassVar[str] = "openai"
    traits: ClassVar[Traits] = Traits(
        shares_prefix=False,
        block=1,
        stream_always=False,
        max_n_is_slots=False,
        abort_settle_s=1.0,
        poll_floor_s=5.0,
        reports_cached=False,
        default_slots=8,
        surfaces=frozenset(("chat", "completions")),
    )
    discovery: ClassVar[tuple[Probe, ...]] = (Probe("GET", "/v1/models"),)
    loading: ClassVar[tuple[Probe, ...]] = ()

    def facts(self, answers: Mapping[str, Answer]) -> Facts:
        """Models, with their windows where the list tells them under one of the names in use."""
        models = tuple(
            FoundModel(id=item["id"], window=_window(item))
            for item in json_list(answers, "/v1/models", "data")
            if isinstance(item.get("id"), str)
        )
        return Facts(
            models=models,
            abilities=frozenset({"tools", "json_schema", "logprobs"}),
            notes=("slots, KV pool and abilities of an OpenAI-compatible server can't be read: set them",),
        )

    def load(self, answers: Mapping[str, Answer]) -> Load:
        """Unknown."""
        del answers
        return Load()

    def failure(self, status: int, payload: bytes) -> Failure:
        """By status and the common wordings."""
        return classify(status, payload)

    def streams_upstream(self, req: ChatRequest) -> bool:
        """As the client asked."""
        return req.stream

    def edits(
        self, req: ChatRequest, *, served_as: str, stream: bool, max_tokens: int | None
    ) -> Mapping[str, bytes | None]:
        """A stream's usage is asked for unless the client said no."""
        edits = shared_edits(req, served_as, stream, max_tokens)
        if stream and req.include_usage is None:
            edits["stream_options"] = with_usage(req)
        return edits

    def headers(self, request_id: str) -> Mapping[str, str]:
        """OpenAI's own name for a caller's id."""
        return {"x-client-request-id": request_id}


def _window(item: Mapping[str, Any]) -> int | None:
    return next((found for name in _WINDOWS if (found := count(item.get(name))) is not None), None)
