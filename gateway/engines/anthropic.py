"""Anthropic's hosted API, and services that speak it.

Read: the public API reference (messages, token counting, models, errors, rate limits; versions of 2026). Not called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gateway.engines.adapter import Answer, Counting, Facts, FoundModel, Probe, Traits
from gateway.engines.answers import count, json_list
from gateway.engines.asking import Asked
from gateway.engines.counting import anthropic_count

__all__ = ["Anthropic"]

_VERSION = ("anthropic-version", "2023-06-01")
"""The only version there is; required."""
_MODELS = "/v1/models"
_ABILITIES = {"image_input": "vision", "structured_outputs": "json_schema"}
"""Abilities by the name of the capability that the model list tells."""


@dataclass(frozen=True, slots=True)
class Anthropic(Asked):
    """Only messages and counts of their tokens. Prefixes are cached where a request marks them, by its own rules."""

    name: ClassVar[str] = "anthropic"
    traits: ClassVar[Traits] = Traits(
        shares_prefix=False,
        block=1,
        stream_always=False,
        max_n_is_slots=False,
        abort_settle_s=1.0,
        poll_floor_s=60.0,
        reports_cached=True,
        default_slots=32,
        surfaces=frozenset(("messages", "count_tokens")),
        counts_media=True,
    )
    discovery: ClassVar[tuple[Probe, ...]] = (Probe("GET", f"{_MODELS}?limit=1000", headers=(_VERSION,), name=_MODELS),)
    loading: ClassVar[tuple[Probe, ...]] = ()

    def facts(self, answers: Mapping[str, Answer]) -> Facts:
        """Models with the input that each takes; the output comes out of the same window."""
        models = tuple(_model(item) for item in json_list(answers, _MODELS, "data") if isinstance(item.get("id"), str))
        return Facts(
            models=models,
            abilities=frozenset({"tools", "vision"}),
            notes=("a hosted service does not tell its load: set `running` to what its rate limits bear",),
        )

    def credential(self, key: str) -> tuple[str, str]:
        """Its own header."""
        return "x-api-key", key

    def surface_headers(self, surface: str) -> Mapping[str, str]:
        """The version, without which it answers 400."""
        del surface
        return dict((_VERSION,))

    def counting(self, surface: str, body: bytes, served_as: str) -> Counting | None:
        """Its count of a message's tokens, pictures and documents included."""
        if surface != "messages":
            return None
        return anthropic_count("/v1/messages/count_tokens", body, served_as, (_VERSION,))


def _model(item: Mapping[str, Any]) -> FoundModel:
    told = item.get("capabilities")
    abilities = None
    if isinstance(told, dict):
        can = {name for name, value in told.items() if isinstance(value, dict) and value.get("supported") is True}
        abilities = frozenset({"tools"} | {_ABILITIES[name] for name in can if name in _ABILITIES})
    return FoundModel(id=item["id"], window=count(item.get("max_input_tokens")), abilities=abilities)
