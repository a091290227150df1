"""The models that a client may use, in the dialect it reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire import models as openai
from gateway.wire.anthropic import models as anthropic
from gateway.wire.dialect import Dialect
from gateway.wire.models import ModelEntry

__all__ = ["listed", "one", "running", "shown", "tags", "wanted"]


def listed(entries: Sequence[ModelEntry], dialect: Dialect) -> bytes:
    """The body of `GET /v1/models`, for clients of OpenAI's dialect or of Anthropic's."""
    return anthropic.models(entries) if dialect.name == "anthropic" else openai.model_list(entries)


def one(entry: ModelEntry, dialect: Dialect) -> bytes:
    """The body of `GET /v1/models/{id}`, for the same two."""
    return anthropic.model_one(entry) if dialect.name == "anthropic" else openai.model_one(entry)


def tags(entries: Sequence[ModelEntry]) -> bytes:
    """The body of `GET /api/tags`."""
    return msgspec.json.encode({"models": [_tag(entry) for entry in entries]})


def running(entries: Sequence[ModelEntry]) -> bytes:
    """The body of `GET /api/ps`: the models of which a backend works now."""
    loaded = [entry for entry in entries if entry.ready]
    return msgspec.json.encode(
        {"models": [_tag(entry) | {"size_vram": 0, "context_length": entry.window or 0} for entry in loaded]}
    )


def shown(entry: ModelEntry) -> bytes:
    """The body of `POST /api/show`."""
    abilities = [name for name in ("tools", "vision") if name in entry.abilities]
    info: dict[str, Any] = {"general.architecture": "kvgate", "general.basename": entry.id}
    if entry.window is not None:
        info["kvgate.context_length"] = entry.window
    return msgspec.json.encode(
        {
            "modified_at": _date(entry),
            "details": _tag(entry)["details"],
            "model_info": info,
            "capabilities": ["completion", *abilities],
        }
    )


def wanted(body: bytes) -> str:
    """The model that the body of `POST /api/show` names, as `model` or, by older clients, as `name`.

    Raises MalformedRequest.
    """
    try:
        asked = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        raise MalformedRequest("the body is not valid JSON") from None
    name = (asked.get("model") or asked.get("name")) if isinstance(asked, dict) else None
    if not isinstance(name, str):
        raise MalformedRequest("model: a model's name is missing", param="model")
    return name


def _tag(entry: ModelEntry) -> dict[str, Any]:
    details = {
        "parent_model": "",
        "format": "",
        "family": "",
        "families": None,
        "parameter_size": "",
        "quantization_level": "",
    }
    return {
        "name": entry.id,
        "model": entry.id,
        "modified_at": _date(entry),
        "size": 0,
        "digest": "",
        "details": details,
    }


def _date(entry: ModelEntry) -> str:
    return datetime.fromtimestamp(entry.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
