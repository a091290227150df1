"""SGLang's OpenAI server.

Read: sgl-project/sglang, python/sglang/srt/entrypoints/http_server.py (as of autumn 2025 and of mid-2026) and
v1_loads.py, managers/tokenizer_manager.py, the scheduler's internal state and metrics collector, and
docs/references/production_metrics. Nothing of it was run.

`/health` is not asked: it makes the engine generate a token. `/server_info` goes through the scheduler, so it is asked
once; it holds every start option, the API key too, of which only sizes and switches are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from gateway.core.kv.engine_pool import EnginePool
from gateway.engines.adapter import Answer, Counting, Facts, FoundModel, Load, Probe, Traits
from gateway.engines.answers import count, json_list, json_object, text
from gateway.engines.asking import Asked
from gateway.engines.counting import anthropic_count, asked_whole, picked
from gateway.engines.metrics_text import Sample, samples
from gateway.engines.routes import OPENAPI, listed

__all__ = ["SgLang"]

_RUNNING, _WAITING = "sglang:num_running_reqs", "sglang:num_queue_reqs"
_USED, _USAGE = "sglang:num_used_tokens", "sglang:token_usage"
_GENERATED, _START = "sglang:generation_tokens_total", "process_start_time_seconds"
_FAMILIES = (_RUNNING, _WAITING, _USED, _USAGE, _GENERATED, _START)
_GIB = 1024**3
_RANKS = ("tp_rank", "pp_rank", "moe_ep_rank")
"""Labels of ranks that work on the same requests; data-parallel ranks have requests of their own."""
_INFO, _INFO_BEFORE = Probe("GET", "/server_info", kept=True), Probe("GET", "/get_server_info", kept=True)
_MODEL, _MODEL_BEFORE = Probe("GET", "/model_info", kept=True), Probe("GET", "/get_model_info", kept=True)
"""Now and before 2026; newer servers log a warning each time that the old ones are asked."""
_ALSO = {"tokenize": "/v1/tokenize", "detokenize": "/v1/detokenize"}
"""Listed under another path than the one that it has too."""
_GENERATES = frozenset(("chat", "completions", "responses", "messages", "count_tokens", "tokenize", "detokenize"))
_EMBEDS = frozenset(("embeddings", "rerank", "tokenize", "detokenize"))
"""Routes are there whatever the model can do. Its Ollama routes lack tools, and its score is not vLLM's: neither is
counted."""


@dataclass(frozen=True, slots=True)
class SgLang(Asked):
    """The radix cache shares a common prefix between running requests, to the page.

    A closed connection is acted on 2 seconds after a stream, and within 4 seconds of a whole answer.
    """

    name: ClassVar[str] = "sglang"
    traits: ClassVar[Traits] = Traits(
        shares_prefix=True,
        block=1,
        stream_always=False,
        max_n_is_slots=False,
        abort_settle_s=4.0,
        poll_floor_s=0.5,
        reports_cached=False,
        default_slots=256,
        surfaces=_GENERATES,
        also=_EMBEDS - _GENERATES,
        # A request id in use is a key of the engine's own; a priority jumps its queue; salts undo prefix sharing; the
        # rest names ranks and peers of its own.
        drops=(
            "rid",
            "priority",
            "cache_salt",
            "extra_key",
            "data_parallel_rank",
            "bootstrap_host",
            "bootstrap_port",
            "bootstrap_room",
        ),
        salted=frozenset(("chat", "completions")),
    )
    discovery: ClassVar[tuple[Probe, ...]] = (Probe("GET", "/v1/models"), _INFO, _MODEL, OPENAPI)
    loading: ClassVar[tuple[Probe, ...]] = (Probe("GET", "/metrics"),)

    def follow_up(self, answers: Mapping[str, Answer]) -> tuple[Probe, ...]:
        """The older names of what was not there."""
        both = ((_INFO, _INFO_BEFORE), (_MODEL, _MODEL_BEFORE))
        return tuple(before for now, before in both if (found := answers.get(now.key)) and found.status == 404)

    def facts(self, answers: Mapping[str, Answer]) -> Facts:
        """Windows from `/v1/models`, the rest from `/server_info` and `/model_info`, or their older names."""
        info = json_object(answers, _INFO.key) or json_object(answers, _INFO_BEFORE.key)
        model = json_object(answers, _MODEL.key) or json_object(answers, _MODEL_BEFORE.key)
        states = [state for state in info.get("internal_states") or () if isinstance(state, dict)]
        each = _each_rank(info, states)
        version = info.get("version")
        page = count(info.get("page_size"))
        return Facts(
            models=_models(answers, each),
            slots=_slots(info, states),
            pool_tokens=each * max(1, len(states)) if each else None,
            block=page,
            pool=_pool(info, states),
            version=version if isinstance(version, str) else None,
            abilities=_abilities(info, model),
            surfaces=_surfaces(answers, info, model),
            notes=_notes(info),
        )

    def load(self, answers: Mapping[str, Answer]) -> Load:
        """From `/metrics`, which is there only with `--enable-metrics`; summed over data-parallel ranks."""
        found = samples(text(answers, "/metrics"), _FAMILIES)

        def total(name: str) -> float | None:
            family = _own(found.get(name, []))
            return sum(sample.value for sample in family) if family else None

        shares = [sample.value for sample in _own(found.get(_USAGE, []))]
        running, waiting, used = total(_RUNNING), total(_WAITING), total(_USED)
        return Load(
            running=None if running is None else int(running),
            waiting=None if waiting is None else int(waiting),
            kv_usage=sum(shares) / len(shares) if shares else None,
            kv_tokens=None if used is None else int(used),
            tokens_generated=total(_GENERATED),
            restarted_at=total(_START),
        )

    def counting(self, surface: str, body: bytes, served_as: str) -> Counting | None:
        """Prompts by `/tokenize`, which takes no messages, and messages by its copy of Anthropic's count."""
        if surface == "messages":
            return anthropic_count("/v1/messages/count_tokens", body, served_as)
        if surface != "completions":
            return None
        return asked_whole("/tokenize", picked(body, ("prompt",), model=msgspec.json.encode(served_as)))


def _own(family: list[Sample]) -> list[Sample]:
    return [sample for sample in family if all(sample.labels.get(rank, "0") in ("", "0") for rank in _RANKS)]


def _models(answers: Mapping[str, Answer], pool: int | None) -> tuple[FoundModel, ...]:
    found = []
    for item in json_list(answers, "/v1/models", "data"):
        if isinstance(item.get("id"), str):
            limits = [limit for limit in (count(item.get("max_model_len")), pool) if limit is not None]
            found.append(FoundModel(id=item["id"], window=min(limits) if item.get("max_model_len") else None))
    return tuple(found)


def _each_rank(info: Mapping[str, Any], states: list[dict[str, Any]]) -> int | None:
    """Tokens of KV cache of one data-parallel rank."""
    for state in states:
        memory = state.get("memory_usage")
        told = count(memory.get("token_capacity")) if isinstance(memory, dict) else None
        if told is not None:
            return told
    return count(info.get("max_total_num_tokens"))


def _pool(info: Mapping[str, Any], states: list[dict[str, Any]]) -> EnginePool:
    """Bytes and number format of the token pool, and what memory it was given (`--mem-fraction-static`)."""
    memory = next((each for state in states if isinstance(each := state.get("memory_usage"), dict)), {})
    size, share, dtype = memory.get("kvcache"), info.get("mem_fraction_static"), info.get("kv_cache_dtype")
    keeps = info.get("disable_radix_cache")
    return EnginePool(
        bytes=int(size * _GIB) if isinstance(size, int | float) and size > 0 else None,
        dtype=dtype if isinstance(dtype, str) and dtype != "auto" else None,
        memory_share=share if isinstance(share, float) and 0 < share <= 1 else None,
        prefix_caching=not keeps if isinstance(keeps, bool) else None,
        groups=max(1, len(states)),
    )


def _slots(info: Mapping[str, Any], states: list[dict[str, Any]]) -> int | None:
    told = [count(state.get("effective_max_running_requests_per_dp")) for state in states]
    known = [each for each in told if each is not None]
    return sum(known) if known else count(info.get("max_running_requests"))


def _abilities(info: Mapping[str, Any], model: Mapping[str, Any]) -> frozenset[str]:
    found = {"logprobs"}
    if not info or info.get("tool_call_parser"):
        found.add("tools")
    if info.get("grammar_backend") != "none":
        found.add("json_schema")
    if model.get("has_image_understanding") is True:
        found.add("vision")
    if model.get("has_audio_understanding") is True:
        found.add("audio")
    return frozenset(found)


def _surfaces(
    answers: Mapping[str, Answer], info: Mapping[str, Any], model: Mapping[str, Any]
) -> frozenset[str] | None:
    embeds = model.get("is_generation") is False or info.get("is_embedding") is True
    can = _EMBEDS if embeds else _GENERATES
    paths = listed(answers, _ALSO)
    return paths & can if paths is not None else can if embeds else None


def _notes(info: Mapping[str, Any]) -> tuple[str, ...]:
    if not info:
        return ("SGLang did not tell its KV cache and slots: is /server_info reachable?",)
    notes = []
    if info.get("enable_metrics") is not True:
        notes.append("SGLang tells its load only with --enable-metrics")
    if info.get("enable_cache_report") is not True:
        notes.append("SGLang tells cached tokens only with --enable-cache-report")
    if info.get("disable_radix_cache") is True:
        notes.append("SGLang keeps no prefix: it runs with --disable-radix-cache")
    return tuple(notes)
