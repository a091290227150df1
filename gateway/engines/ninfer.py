"""NInfer (ninfer-serve): registered Qwen checkpoints on one NVIDIA card.

Read: Neroued/ninfer, docs/serving.md and README.md (September 2026), src/serve/openai_common.cpp (model list, error
members) and an early http_server.cpp. Nothing of it was run.

It refuses what it cannot do (JSON schemas, log probabilities, forced tool choice, more than one choice) by name.
Admission reserves prompt and budget together; one to eight requests run, sixteen more wait, then 429.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from gateway.engines.adapter import Answer, Facts, FoundModel, Load, Probe, Traits
from gateway.engines.answers import count, json_list
from gateway.engines.asking import Asked

__all__ = ["Ninfer"]


@dataclass(frozen=True, slots=True)
class Ninfer(Asked):
    """Streams are always asked for: they are watched for a client that leaves, also while they wait or prefill.

    Its window is told, its KV pool (`--kv-capacity`) and slots (`--max-concurrency`) are not.
    """

    name: ClassVar[str] = "ninfer"
    traits: ClassVar[Traits] = Traits(
        shares_prefix=False,
        block=1,
        stream_always=True,
        max_n_is_slots=False,
        abort_settle_s=1.0,
        poll_floor_s=2.0,
        reports_cached=True,
        default_slots=1,
        surfaces=frozenset(("chat", "responses", "messages", "count_tokens")),
    )
    discovery: ClassVar[tuple[Probe, ...]] = (Probe("GET", "/v1/models"),)
    loading: ClassVar[tuple[Probe, ...]] = (Probe("GET", "/health"),)

    def facts(self, answers: Mapping[str, Answer]) -> Facts:
        """The one model and its window."""
        models = tuple(
            FoundModel(id=item["id"], window=count(item.get("max_model_len")))
            for item in json_list(answers, "/v1/models", "data")
            if isinstance(item.get("id"), str)
        )
        return Facts(
            models=models,
            block=self.traits.block,
            abilities=frozenset({"tools"}),
            notes=(
                "NInfer does not tell its slots and KV pool: set `running` to --max-concurrency and `kv_pool` to "
                "--kv-capacity",
                "NInfer does not tell whether it sees images: set abilities.vision where it runs with --vision",
            ),
        )

    def load(self, answers: Mapping[str, Answer]) -> Load:
        """No figures; after a failure of the whole engine `/health` says 503 until it is started anew."""
        health = answers.get("/health")
        return Load(loading=health is not None and health.status == 503)
