"""What is publicly known of devices and models: shipped as data, read one entry at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from gateway.config.catalog.names import loose_name, plain_name, weights_in_name
from gateway.config.problems import nearest
from gateway.core.backend import Device
from gateway.core.kv.catalog_entry import model_shape_from_catalog
from gateway.core.kv.model import ModelShape

__all__ = [
    "device",
    "device_ids",
    "known_model",
    "model_ids",
    "nearest_device",
    "nearest_model",
    "plain_name",
    "weights_in_name",
]

_ENTRY = re.compile(r"^  - id: (\S+)$", re.MULTILINE)


@cache
def _entries(kind: str) -> Mapping[str, str]:
    """The text of each entry, by id: parsing a whole catalogue at once takes a third of a second."""
    text = (Path(__file__).parent / f"{kind}.yaml").read_text(encoding="utf-8")
    starts = list(_ENTRY.finditer(text))
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return {match[1]: text[match.start() : end] for match, end in zip(starts, ends, strict=True)}


@cache
def _entry(kind: str, name: str) -> Mapping[str, Any]:
    (entry,) = YAML(typ="safe", pure=True).load(_entries(kind)[name])
    return dict(entry)


def device_ids() -> tuple[str, ...]:
    """Ids of all devices in the catalogue, and their short names."""
    return (*_entries("devices"), *_short_names())


def nearest_device(name: str) -> str | None:
    """The device id closest to a name, or None: `3090` and `spark` are names too."""
    known = device_ids()
    parts = [known_id for known_id in known if len(name) >= 3 and name.casefold().replace(" ", "-") in known_id]
    return min(parts, key=len) if parts else nearest(name, known)


@cache
def _short_names() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, text in _entries("devices").items():
        for line in re.findall(r"^    aliases: \[(.*)\]", text, re.MULTILINE):
            found |= {alias.strip(): name for alias in line.split(",")}
    return found


def device(name: str) -> Device | None:
    """One device of the catalogue, by id or short name, as the core knows it; None when there is none."""
    name = _short_names().get(name, name)
    if name not in _entries("devices"):
        return None
    entry = _entry("devices", name)
    tflops = [float(entry["tflops"].get(kind) or 0.0) for kind in ("fp16", "fp32")]
    unified = "unified" in str(entry["memory_type"])
    return Device(
        id=name,
        memory=int(entry["memory_bytes"] or 0),
        bandwidth=float(entry["bandwidth_gbs"]) * 1e9,
        flops=max(tflops) * 1e12,
        mfu=float(entry.get("prefill_reach", 0.30)),
        step_overhead=0.003 if unified else 0.002,
        budget=float(entry.get("memory_budget", 0.90)),
    )


def model_ids() -> tuple[str, ...]:
    """Ids of all models in the catalogue."""
    return tuple(_entries("models"))


@cache
def _by_plain_name() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, text in _entries("models").items():
        found[loose_name(plain_name(name))] = name
        for line in re.findall(r"^    aliases: \[(.*)\]", text, re.MULTILINE):
            for alias in line.split(","):
                found.setdefault(loose_name(plain_name(alias)), name)
    return found


@cache
def known_model(name: str) -> ModelShape | None:
    """The catalogue's model behind any common spelling of its name, or None.

    Organisation, case, and suffixes of number format and packaging (-FP8, -AWQ, -GGUF, Q4_K_M, -Instruct) don't matter.
    """
    found = _by_plain_name().get(loose_name(plain_name(name)))
    return model_shape_from_catalog(_entry("models", found)) if found else None


def nearest_model(name: str, also: Iterable[str] = ()) -> str | None:
    """The model id closest to a name, or None."""
    return nearest(plain_name(name), [*also, *model_ids()])
