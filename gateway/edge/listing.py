"""The models that a client may use, in the dialect it reads."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire import models as openai
from gateway.wire.anthropic import models as anthropic
from gateway.wire.dialect import Dialect
from gateway.wire.distinct import distinct_members
from gateway.wire.models import ModelEntry
from gateway.wire.ollama import models as ollama
from gateway.wire.ollama.load import load_answer, load_request
from gateway.wire.ollama.models import OllamaModel
from gateway.wire.surfaces import SURFACES, Kind
from gateway.wire.translation import Stamp

__all__ = ["listed", "loaded", "one", "running", "shown", "tags", "wanted"]

_WRITES = frozenset(name for name, each in SURFACES.items() if each.kind is Kind.GENERATION)
_LOADED_BY = frozenset(("ollama_chat", "ollama_generate", "ollama_embed"))


def listed(entries: Sequence[ModelEntry], dialect: Dialect) -> bytes:
    """The body of `GET /v1/models`, for clients of OpenAI's dialect or of Anthropic's."""
    return anthropic.models(entries) if dialect.name == "anthropic" else openai.model_list(entries)


def one(entry: ModelEntry, dialect: Dialect) -> bytes:
    """The body of `GET /v1/models/{id}`, for the same two."""
    return anthropic.model_one(entry) if dialect.name == "anthropic" else openai.model_one(entry)


def tags(entries: Sequence[ModelEntry]) -> bytes:
    """The body of `GET /api/tags`."""
    return ollama.tags(map(_model, entries))


def running(entries: Sequence[ModelEntry]) -> bytes:
    """The body of `GET /api/ps`: the models of which a backend works now."""
    return ollama.ps(_model(entry) for entry in entries if entry.ready)


def shown(entry: ModelEntry) -> bytes:
    """The body of `POST /api/show`."""
    return ollama.show(_model(entry))


def loaded(surface: str, body: bytes, created: int) -> tuple[str, bytes] | None:
    """The model that a body without anything to answer asks to load, as Ollama's clients do, and the answer to that.

    None for every other request. `created` in Unix seconds.
    """
    if surface not in _LOADED_BY or not load_request(body):
        return None
    name = wanted(body)
    return name, load_answer(body, surface, Stamp("load", created, name))


def wanted(body: bytes) -> str:
    """The model that the body of `POST /api/show` names, as `model` or, by older clients, as `name`.

    Raises MalformedRequest, also for a key that is there twice at any depth.
    """
    try:
        asked = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        raise MalformedRequest("the body is not valid JSON") from None
    if isinstance(asked, dict):
        distinct_members(body)
    name = (asked.get("model") or asked.get("name")) if isinstance(asked, dict) else None
    if not isinstance(name, str):
        raise MalformedRequest("model: a model's name is missing", param="model")
    return name


def _model(entry: ModelEntry) -> OllamaModel:
    able = tuple(name for name in ("tools", "vision") if name in entry.abilities)
    embeds = entry.surfaces is not None and not entry.surfaces & _WRITES
    kind = "embedding" if embeds else "completion"
    return OllamaModel(name=entry.id, window=entry.window, capabilities=(kind, *able), modified=entry.created)
