"""vLLM's OpenAI server. Facts were checked on 0.32, routes in its wheel; older metric names are read too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from gateway.engines.adapter import Answer, Counting, Facts, FoundModel, Load, Probe, Traits
from gateway.engines.answers import count, json_list, json_object, text
from gateway.engines.asking import Asked
from gateway.engines.counting import anthropic_count, asked_whole, picked
from gateway.engines.metrics_text import Sample, samples
from gateway.engines.routes import OPENAPI, listed
from gateway.engines.vllm_pool import block_of, engine_pool, pool_tokens

__all__ = ["Vllm"]

_CONFIG = "vllm:cache_config_info"
_RUNNING, _WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"
_USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
"""Now, and before 0.11."""
_PREEMPTIONS, _GENERATED = "vllm:num_preemptions_total", "vllm:generation_tokens_total"
_START = "process_start_time_seconds"
_FAMILIES = (_CONFIG, _RUNNING, _WAITING, *_USAGE, _PREEMPTIONS, _GENERATED, _START)
_LOAD_HEADER = "endpoint-load-metrics"
_TOKENIZED = {
    "chat": (
        "messages", "tools", "add_generation_prompt", "continue_final_message", "add_special_tokens", "chat_template",
        "chat_template_kwargs",
    ),
    "completions": ("prompt", "add_special_tokens"),
}  # fmt: skip
"""Members of a body, by surface, that say what its prompt is; `/tokenize` takes them too."""


@dataclass(frozen=True, slots=True)
class Vllm(Asked):
    """Blocks of a common prefix are shared between running requests; aborts are acted on at once."""

    name: ClassVar[str] = "vllm"
    traits: ClassVar[Traits] = Traits(
        shares_prefix=True,
        block=16,
        stream_always=False,
        max_n_is_slots=False,
        abort_settle_s=0.1,
        poll_floor_s=0.5,
        reports_cached=False,
        default_slots=256,
        surfaces=frozenset(("chat", "completions", "responses", "messages", "count_tokens", "tokenize", "detokenize")),
        also=frozenset(("embeddings", "rerank", "score", "transcriptions", "translations")),
        # A reused request id kills the engine, a priority jumps its queue, a salt undoes prefix sharing.
        drops=("request_id", "priority", "cache_salt", "kv_transfer_params"),
        resumes="ids",
        salted=frozenset(("chat", "completions", "responses")),
    )
    discovery: ClassVar[tuple[Probe, ...]] = (
        Probe("GET", "/v1/models"),
        Probe("GET", "/metrics"),
        Probe("GET", "/version"),
        OPENAPI,
    )
    loading: ClassVar[tuple[Probe, ...]] = (Probe("GET", "/metrics"),)

    def facts(self, answers: Mapping[str, Answer]) -> Facts:
        """Windows from `/v1/models`; pool, block and its start from `/metrics`.

        Surfaces come from its list of paths. Routes depend on what the model can do: an embedding model has no chat.
        """
        models = tuple(
            FoundModel(id=item["id"], window=count(item.get("max_model_len")))
            for item in json_list(answers, "/v1/models", "data")
            if isinstance(item.get("id"), str)
        )
        page = samples(text(answers, "/metrics"), (_CONFIG, _START))
        configs = page.get(_CONFIG, [])
        pool = pool_tokens(configs)
        version = json_object(answers, "/version").get("version")
        notes = [
            "vLLM does not tell how many requests it runs at once (max_num_seqs), nor whether it parses tool calls"
        ]
        if not configs:
            notes.append("vLLM's KV cache size is not known: is /metrics reachable?")
        return Facts(
            models=models,
            pool_tokens=pool,
            block=block_of(configs),
            pool=engine_pool(configs),
            capacity=_capacity(configs),
            started_at=min((sample.value for sample in page.get(_START, ())), default=None),
            version=version if isinstance(version, str) else None,
            abilities=frozenset({"tools", "json_schema", "logprobs"}),
            surfaces=listed(answers),
            notes=tuple(notes),
        )

    def load(self, answers: Mapping[str, Answer]) -> Load:
        """Summed over data-parallel engines and models; the KV usage is their mean."""
        found = samples(text(answers, "/metrics"), _FAMILIES)

        def total(name: str) -> float | None:
            family = found.get(name)
            return None if family is None else sum(sample.value for sample in family)

        shares = next(([sample.value for sample in found[name]] for name in _USAGE if name in found), [])
        usage = sum(shares) / len(shares) if shares else None
        configs = found.get(_CONFIG, [])
        pool = pool_tokens(configs)
        running, waiting = total(_RUNNING), total(_WAITING)
        return Load(
            running=None if running is None else int(running),
            waiting=None if waiting is None else int(waiting),
            kv_usage=usage,
            kv_tokens=None if usage is None or pool is None else round(usage * pool),
            preemptions=total(_PREEMPTIONS),
            tokens_generated=total(_GENERATED),
            restarted_at=total(_START),
            capacity=_capacity(configs),
        )

    def headers(self, request_id: str) -> Mapping[str, str]:
        """Its request id is the engine's own key: two alike at once break it. Whole answers bring a load report."""
        return {"x-request-id": request_id, f"{_LOAD_HEADER}-format": "JSON"}

    def counting(self, surface: str, body: bytes, served_as: str) -> Counting | None:
        """`/tokenize` renders messages with the chat template; a picture in them is one placeholder there."""
        if surface == "messages":
            return anthropic_count("/v1/messages/count_tokens", body, served_as)
        names = _TOKENIZED.get(surface)
        if names is None:
            return None
        return asked_whole("/tokenize", picked(body, names, model=msgspec.json.encode(served_as)))

    def reply_load(self, headers: Mapping[str, str]) -> Load | None:
        """The load report in the head of a whole answer (ORCA), or None when it has none."""
        kind, _, report = headers.get(_LOAD_HEADER, "").partition(" ")
        if kind != "JSON":
            return None
        try:
            metrics = msgspec.json.decode(report, type=dict[str, dict[str, float]]).get("named_metrics", {})
        except msgspec.MsgspecError:
            return None
        waiting = metrics.get("num_requests_waiting")
        return Load(
            waiting=None if waiting is None else int(waiting),
            kv_usage=metrics.get("kv_cache_usage_perc"),
        )


def _capacity(configs: list[Sample]) -> tuple[int, int] | None:
    pool = pool_tokens(configs)
    return (pool, block_of(configs) or 0) if pool else None
