"""Ollama's server, in its own API and in the three that it imitates.

Read: ollama/ollama, server/routes.go (mid-2026: routes, errors, default contexts, models that are forwarded to a
hosted service) and docs/openapi.yaml; its issues 3839, 4967 and 16800 on prompts that are cut. Nothing of it was run.

Its API's defaults cut a prompt that is too long for the window without a word. Where the API has a switch for it, it is
switched off; elsewhere only a right window helps, so one that is not known is said to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from gateway.core.kv.engine_pool import EnginePool
from gateway.engines.adapter import Answer, Facts, Load, Probe, Traits
from gateway.engines.answers import json_list, json_object
from gateway.engines.asking import Asked
from gateway.engines.ollama_models import GENERATES, details_probe, forwarded, found_model, outside_device, told_window
from gateway.engines.routes import probed, probes_of

__all__ = ["Ollama"]

_MOST_MODELS = 64
"""Models whose details are asked for; a list can hold hundreds."""
_NEWER = ("responses", "messages")
"""Since 0.13 and 0.14."""
_CUTS = frozenset(("ollama_chat", "ollama_generate"))


@dataclass(frozen=True, slots=True)
class Ollama(Asked):
    """It tells no load; requests over its slots (OLLAMA_NUM_PARALLEL, 1 unless set) wait inside it."""

    name: ClassVar[str] = "ollama"
    traits: ClassVar[Traits] = Traits(
        shares_prefix=False,
        block=1,
        stream_always=False,
        max_n_is_slots=False,
        abort_settle_s=1.0,
        poll_floor_s=2.0,
        reports_cached=False,
        default_slots=1,
        surfaces=GENERATES | {"embeddings", "ollama_embed"},
        also=frozenset(("images", "image_edits", "transcriptions")),
        # It says how long weights stay in memory, 0 throws them out under everybody else.
        drops=("keep_alive",),
    )
    discovery: ClassVar[tuple[Probe, ...]] = (
        Probe("GET", "/api/tags"),
        Probe("GET", "/api/ps"),
        Probe("GET", "/api/version"),
    )
    loading: ClassVar[tuple[Probe, ...]] = (Probe("GET", "/api/version"),)

    def follow_up(self, answers: Mapping[str, Answer]) -> tuple[Probe, ...]:
        """What each model can do, and whether the newer APIs are there. A model's details do not load it."""
        listed = [item for item in json_list(answers, "/api/tags", "models") if not forwarded(item)]
        details = [probe for item in listed[:_MOST_MODELS] if (probe := details_probe(item)) is not None]
        return (*details, *probes_of(_NEWER))

    def facts(self, answers: Mapping[str, Answer]) -> Facts:
        """Models from `/api/tags`, each with what `/api/show` says of it; windows of those loaded from `/api/ps`.

        Models that it forwards to a hosted service are left out: they would leave the house without anybody saying so.
        """
        listed = json_list(answers, "/api/tags", "models")
        own = [item for item in listed if not forwarded(item)]
        running = json_list(answers, "/api/ps", "models")
        loaded = {item.get("name"): told_window(item) for item in running}
        present, told = probed(answers, _NEWER)
        surfaces = (self.traits.surfaces - told) | present if told else self.traits.surfaces
        found = [found_model(item, answers, loaded.get(item.get("name")), surfaces) for item in own]
        models = tuple(model for model in found if model is not None)
        notes = ["Ollama does not tell how many requests it runs at once (OLLAMA_NUM_PARALLEL): set `running`"]
        if len(own) < len(listed):
            notes.append(f"left out {len(listed) - len(own)} models that Ollama forwards to a hosted service")
        unknown = [model.id for model in models if model.window is None]
        if unknown:
            notes.append(
                f"Ollama tells the window of a model that is loaded only, and cuts prompts over it without a word: set "
                f"`context` for {', '.join(unknown[:4])}{' ...' if len(unknown) > 4 else ''}"
            )
        notes += [note for item in running if (note := outside_device(item)) is not None]
        version = json_object(answers, "/api/version").get("version")
        return Facts(
            models=models,
            block=self.traits.block,
            version=version if isinstance(version, str) else None,
            abilities=frozenset({"tools", "json_schema", "logprobs"}),
            surfaces=surfaces if told else None,
            notes=tuple(notes),
            pool=EnginePool(slot_tokens=max((window for window in loaded.values() if window), default=None)),
        )

    def load(self, answers: Mapping[str, Answer]) -> Load:
        """Unknown; that it answers is what is asked."""
        del answers
        return Load()

    def surface_edits(self, surface: str) -> Mapping[str, bytes | None]:
        """An error instead of a cut prompt; an end instead of an answer that pushes the prompt out of the window."""
        edits = dict(Asked.surface_edits(self, surface))
        if surface in _CUTS:
            edits |= {"truncate": b"false", "shift": b"false"}
        return edits
