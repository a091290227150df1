"""A model as Ollama lists and describes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.engines.adapter import Answer, FoundModel, Probe
from gateway.engines.answers import count, json_object

__all__ = ["DEFAULT_WINDOW", "GENERATES", "details_probe", "forwarded", "found_model", "outside_device", "told_window"]

DEFAULT_WINDOW = 4096
"""Tokens without OLLAMA_CONTEXT_LENGTH on a device below 23 GiB; above it 32768, from 47 GiB 262144."""
GENERATES = frozenset(("chat", "completions", "responses", "messages", "ollama_chat", "ollama_generate"))
_CAN = {
    "completion": GENERATES,
    "embedding": frozenset(("embeddings", "ollama_embed")),
    "image": frozenset(("images", "image_edits")),
    "audio": frozenset(("transcriptions",)),
}
"""Surfaces by capability."""
_ABILITIES = {"tools": "tools", "vision": "vision", "audio": "audio"}
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)
_SIZE = re.compile(r"([\d.]+)\s*([KMBT])")
_UNITS = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_EMBEDDERS = frozenset(("bert", "nomic-bert"))
"""Families of servers before 0.6 that tell no capabilities."""


def forwarded(item: Mapping[str, Any]) -> bool:
    """Whether the server hands this model's requests on to another, hosted one."""
    return bool(item.get("remote_host") or item.get("remote_model")) or str(item.get("name")).endswith(
        (":cloud", "-cloud")
    )


def details_probe(item: Mapping[str, Any]) -> Probe | None:
    """The question for one model's details; one that is pulled anew has another digest, and is asked about again."""
    name = item.get("name")
    if not isinstance(name, str):
        return None
    return Probe("POST", "/api/show", msgspec.json.encode({"model": name}), name=_key(item), kept=True)


def told_window(item: Mapping[str, Any]) -> int | None:
    """Tokens of context that a loaded model was given."""
    return count(item.get("context_length"))


def outside_device(item: Mapping[str, Any]) -> str | None:
    """What to say of a loaded model of which a part is in the CPU's memory, where it is many times slower."""
    size, on_device = count(item.get("size")), item.get("size_vram")
    if size is None or not isinstance(on_device, int) or on_device >= 0.99 * size:
        return None
    part = 1 - max(on_device, 0) / size
    return f"{part:.0%} of {item.get('name')} is in the CPU's memory: a smaller context or fewer slots would fit"


def found_model(
    item: Mapping[str, Any], answers: Mapping[str, Answer], loaded_window: int | None, offered: frozenset[str]
) -> FoundModel | None:
    """One entry of `/api/tags` with its details; None for an entry that is none. `offered`: the server's surfaces."""
    name = item.get("name")
    if not isinstance(name, str):
        return None
    details = json_object(answers, _key(item))
    information = details.get("model_info")
    facts = information if isinstance(information, dict) else {}
    trained = next((count(value) for key, value in facts.items() if key.endswith(".context_length")), None)
    told = loaded_window or _parameter(details)
    base, _, tag = name.partition(":")
    return FoundModel(
        id=name,
        aliases=(base,) if tag == "latest" else (),
        window=min(told, trained) if told and trained else told,
        trained_window=trained,
        params=count(facts.get("general.parameter_count")) or _params(item),
        size_bytes=count(item.get("size")),
        default_window=min(DEFAULT_WINDOW, trained or DEFAULT_WINDOW),
        surfaces=_surfaces(item, details, offered),
        abilities=_abilities(details),
    )


def _key(item: Mapping[str, Any]) -> str:
    return f"/api/show {item.get('name')} {item.get('digest')}"


def _parameter(details: Mapping[str, Any]) -> int | None:
    said = details.get("parameters")
    found = _NUM_CTX.search(said) if isinstance(said, str) else None
    return count(int(found[1])) if found else None


def _details(item: Mapping[str, Any]) -> Mapping[str, Any]:
    details = item.get("details")
    return details if isinstance(details, dict) else {}


def _params(item: Mapping[str, Any]) -> int | None:
    found = _SIZE.fullmatch(str(_details(item).get("parameter_size")))
    try:
        return round(float(found[1]) * _UNITS[found[2]]) if found else None
    except ValueError:
        return None


def _capabilities(details: Mapping[str, Any]) -> list[str] | None:
    said = details.get("capabilities")
    return [each for each in said if isinstance(each, str)] if isinstance(said, list) else None


def _surfaces(item: Mapping[str, Any], details: Mapping[str, Any], offered: frozenset[str]) -> frozenset[str] | None:
    said = _capabilities(details)
    if said is None:
        family = _details(item).get("family")
        return _CAN["embedding"] if family in _EMBEDDERS else None
    can: frozenset[str] = frozenset().union(*(_CAN.get(each, frozenset()) for each in said))
    return can - (GENERATES - offered)


def _abilities(details: Mapping[str, Any]) -> frozenset[str] | None:
    said = _capabilities(details)
    if said is None:
        return None
    return frozenset({"json_schema", "logprobs"} | {_ABILITIES[each] for each in said if each in _ABILITIES})
