"""Any server that speaks OpenAI's chat API and of which nothing else is known, in the house or hosted.

Read: the public API reference of OpenAI, and reports on LM Studio, TabbyAPI, LiteLLM and text-generation-inference.
Nothing of them was run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gateway.engines.adapter import Answer, Facts, FoundModel, Probe, Traits
from gateway.engines.answers import count, json_list
from gateway.engines.asking import Asked
from gateway.engines.routes import OPENAPI, listed, probed, probes_of
from gateway.wire.chat_request import ChatRequest

__all__ = ["OpenAiCompatible"]

_WINDOWS = (
    "max_model_len",
    "context_window",
    "context_length",
    "loaded_context_length",
    "max_context_length",
    "n_ctx",
    "max_input_tokens",
)
_ASKED_FOR = (
    "completions",
    "responses",
    "messages",
    "count_tokens",
    "embeddings",
    "rerank",
    "score",
    "images",
    "speech",
    "transcriptions",
    "translations",
    "image_edits",
)
"""Not tokenization: servers that have it differ in its members."""
_REASONS = re.compile(r"(?:.*/)?(?:o[1-9]|gpt-[5-9])(?:\D|$)")
"""OpenAI's names of models that refuse `max_tokens` and take only `max_completion_tokens`."""


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
        also=frozenset(_ASKED_FOR) - {"completions"},
    )
    discovery: ClassVar[tuple[Probe, ...]] = (Probe("GET", "/v1/models"), OPENAPI)
    loading: ClassVar[tuple[Probe, ...]] = ()

    def follow_up(self, answers: Mapping[str, Answer]) -> tuple[Probe, ...]:
        """Which routes it has, where it has no list of them."""
        return () if "chat" in (listed(answers) or ()) else probes_of(_ASKED_FOR)

    def facts(self, answers: Mapping[str, Answer]) -> Facts:
        """Models, with windows where the list tells them under one of the names in use; surfaces by its routes."""
        models = tuple(
            FoundModel(id=item["id"], window=_window(item))
            for item in json_list(answers, "/v1/models", "data")
            if isinstance(item.get("id"), str)
        )
        return Facts(
            models=models,
            abilities=frozenset({"tools", "json_schema", "logprobs"}),
            surfaces=_surfaces(answers, self.traits.surfaces),
            notes=("slots, KV pool and abilities of an OpenAI-compatible server can't be read: set them",),
        )

    def edits(
        self, req: ChatRequest, *, served_as: str, stream: bool, max_tokens: int | None
    ) -> Mapping[str, bytes | None]:
        """A budget that the client did not name gets the name that the model takes."""
        edits = dict(Asked.edits(self, req, served_as=served_as, stream=stream, max_tokens=max_tokens))
        if max_tokens is not None and req.max_tokens_field is None and _REASONS.match(served_as):
            edits["max_completion_tokens"] = edits["max_tokens"]
            edits["max_tokens"] = None
        return edits

    def headers(self, request_id: str) -> Mapping[str, str]:
        """OpenAI's own name for a caller's id."""
        return {"x-client-request-id": request_id}


def _window(item: Mapping[str, Any]) -> int | None:
    return next((found for name in _WINDOWS if (found := count(item.get(name))) is not None), None)


def _surfaces(answers: Mapping[str, Answer], usual: frozenset[str]) -> frozenset[str] | None:
    paths = listed(answers)
    if paths is not None and "chat" in paths:
        return paths & {"chat", *_ASKED_FOR}
    present, told = probed(answers, _ASKED_FOR)
    return (usual - told) | present if told else None
