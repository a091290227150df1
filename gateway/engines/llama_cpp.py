"""llama.cpp's server (llama-server, and whatever embeds it). Facts and routes were checked on build b11549, running."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gateway.core.kv.engine_pool import EnginePool
from gateway.engines.adapter import Answer, Counting, Facts, Failure, FailureKind, Load, Probe, Rendering, Traits
from gateway.engines.answers import count, json_list, json_object, text
from gateway.engines.asking import Asked
from gateway.engines.failures import classify
from gateway.engines.llama_cpp_counting import counted, rendered
from gateway.engines.llama_cpp_facts import AUTO_SLOTS, abilities_of, found_model, pool_of
from gateway.engines.metrics_text import samples
from gateway.engines.rewrites import shared_edits, with_usage
from gateway.engines.routes import probed, probes_of
from gateway.wire.chat_request import ChatRequest

__all__ = ["LlamaCpp"]

_ASKED_FOR = (
    "responses",
    "messages",
    "count_tokens",
    "embeddings",
    "rerank",
    "tokenize",
    "detokenize",
    "transcriptions",
)
"""Surfaces that depend on its age or flags; it has no list of its routes."""
_RUNNING, _WAITING = "llamacpp:requests_processing", "llamacpp:requests_deferred"
_GENERATED = "llamacpp:tokens_predicted_total"
# Client faults that this server answers with 500.
_CLIENT_WORDS = re.compile(
    r"failed to parse (?:messages|grammar|tools)|missing '\w+' in message|input is not supported"
    r"|unable to generate parser|requires --jinja|unsupported (?:content|param)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LlamaCpp(Asked):
    """Streams are always asked for: on anything else a closed connection may go unnoticed to the end (the check runs
    only when nothing else wakes the server), and polling `/slots` or `/metrics` every second has the same effect.
    """

    name: ClassVar[str] = "llama.cpp"
    traits: ClassVar[Traits] = Traits(
        shares_prefix=False,
        block=1,
        stream_always=True,
        max_n_is_slots=True,
        abort_settle_s=2.0,
        poll_floor_s=2.0,
        reports_cached=True,
        default_slots=AUTO_SLOTS,
        surfaces=frozenset(("chat", "completions", "responses", "messages", "count_tokens", "tokenize", "detokenize")),
        also=frozenset(("embeddings", "rerank", "transcriptions")),
        drops=("id_slot",),
        resumes="pieces",
    )
    discovery: ClassVar[tuple[Probe, ...]] = (Probe("GET", "/props"), Probe("GET", "/v1/models"))
    loading: ClassVar[tuple[Probe, ...]] = (Probe("GET", "/slots"), Probe("GET", "/metrics"))

    def follow_up(self, answers: Mapping[str, Answer]) -> tuple[Probe, ...]:
        """Whether it has the routes that came later or are switched on by a flag; nothing while it loads its model."""
        return () if _is_loading(answers) else probes_of(_ASKED_FOR)

    def facts(self, answers: Mapping[str, Answer]) -> Facts:
        """Slots and window from `/props`, models from `/v1/models`; the pool follows from both."""
        if _is_loading(answers):
            return Facts(loading=True)
        props = json_object(answers, "/props")
        settings = props.get("default_generation_settings")
        window = count(settings.get("n_ctx")) if isinstance(settings, dict) else None
        slots = count(props.get("total_slots"))
        listed = json_list(answers, "/v1/models", "data")
        models = tuple(found_model(item, window) for item in listed if isinstance(item.get("id"), str))
        if window is None and models:
            window = models[0].window
        trained = models[0].trained_window if models else None
        unified, pool, notes = pool_of(window, trained, slots)
        version = props.get("build_info")
        return Facts(
            models=models,
            slots=slots,
            pool_tokens=pool,
            block=self.traits.block,
            capacity=(slots, window) if slots and window else None,
            unified=unified,
            pool=EnginePool(slot_tokens=window if slots == AUTO_SLOTS and not unified else None),
            version=version if isinstance(version, str) else None,
            abilities=abilities_of(props),
            surfaces=_surfaces(answers, self.traits.surfaces),
            notes=notes,
        )

    def load(self, answers: Mapping[str, Answer]) -> Load:
        """`/slots` and `/metrics`, either of which may be switched off."""
        if _is_loading(answers):
            return Load(loading=True)
        found = samples(text(answers, "/metrics"), (_RUNNING, _WAITING, _GENERATED))
        told = {name: sum(sample.value for sample in family) for name, family in found.items()}
        slots = json_list(answers, "/slots")
        busy = [slot for slot in slots if slot.get("is_processing") is True]
        has_slots = bool(slots)
        running = told.get(_RUNNING)
        if running is None and has_slots:
            running = len(busy)
        waiting = told.get(_WAITING)
        return Load(
            running=None if running is None else int(running),
            waiting=None if waiting is None else int(waiting),
            kv_tokens=sum(map(_slot_tokens, busy)) if has_slots else None,
            tokens_generated=told.get(_GENERATED),
            capacity=(len(slots), count(slots[0].get("n_ctx")) or 0) if has_slots else None,
        )

    def failure(self, status: int, payload: bytes) -> Failure:
        """Some of the client's faults come with status 500 here."""
        failure = classify(status, payload, client_words=_CLIENT_WORDS)
        if failure.kind is FailureKind.CLIENT and "Field 'n'" in failure.message:
            return Failure(FailureKind.CLIENT, failure.message, retryable=True)  # n over this server's slots
        return failure

    def streams_upstream(self, req: ChatRequest) -> bool:
        """Always, except for whole answers that only the server itself can build.

        It streams no log probabilities with tools; with stop strings it cuts as many of them as the stop string has
        tokens; `verbose` adds the text a second time. Two differences stay, both where it looks for tool
        calls or JSON in the text: a tool call that the token limit cuts before its name, and text at the very end that
        might have begun one (a line end, a fence), are in the server's own whole answer and absent from its stream.
        """
        if req.stream:
            return True
        return not (req.verbose or ("logprobs" in req.needs and (req.stops or req.tools)))

    def edits(
        self, req: ChatRequest, *, served_as: str, stream: bool, max_tokens: int | None
    ) -> Mapping[str, bytes | None]:
        """Usage is asked for only to assemble a whole answer: a stream's last chunk tells `timings` anyway."""
        edits = shared_edits(req, served_as, stream, max_tokens)
        edits.update(dict.fromkeys(self.traits.drops))
        if max_tokens is None and req.max_tokens_field not in (None, "n_predict"):
            edits["n_predict"] = None  # it would win over the budget that was counted
        if stream and not req.stream and req.include_usage is not True:
            edits["stream_options"] = with_usage(req)
        return edits

    def rendering(self, surface: str, body: bytes) -> Rendering | None:
        """By the template, then the tokenizer."""
        return rendered(surface, body)

    def counting(self, surface: str, body: bytes, served_as: str) -> Counting | None:
        """Its own counts of chats, messages and responses; older builds render and tokenize in two steps."""
        return counted(surface, body, served_as)


def _is_loading(answers: Mapping[str, Answer]) -> bool:
    return any(answer.status == 503 and b"Loading model" in answer.body for answer in answers.values())


def _surfaces(answers: Mapping[str, Answer], usual: frozenset[str]) -> frozenset[str] | None:
    present, told = probed(answers, _ASKED_FOR)
    return (usual - told) | present if told else None


def _slot_tokens(slot: Mapping[str, Any]) -> int:
    # Newer builds count generated tokens into n_prompt_tokens, older ones do not; in prefill the rest is still zero.
    def told(name: str) -> int:
        return count(slot.get(name)) or 0

    after = slot.get("next_token")
    step = after[0] if isinstance(after, list) and after and isinstance(after[0], dict) else {}
    done = told("n_prompt_tokens_processed") + told("n_prompt_tokens_cache") + (count(step.get("n_decoded")) or 0)
    return max(told("n_prompt_tokens"), done)
