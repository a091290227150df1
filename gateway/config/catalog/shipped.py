"""The entries that come with the program, read one at a time: parsing a whole file takes a third of a second."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from gateway.config.catalog.device_entry import device_from_entry
from gateway.config.catalog.names import loose_name, plain_name
from gateway.core.backend import Device
from gateway.core.kv.catalog_entry import model_shape_from_catalog
from gateway.core.kv.model import ModelShape

__all__ = ["device", "device_ids", "entry", "known_model", "model_ids"]

_ENTRY = re.compile(r"^  - id: (\S+)$", re.MULTILINE)
_ALIASES = re.compile(r"^    aliases: \[(.*)\]", re.MULTILINE)


@cache
def _entries(kind: str) -> Mapping[str, str]:
    """The text of each entry, by id."""
    text = (Path(__file__).parent / f"{kind}.yaml").read_text(encoding="utf-8")
    starts = list(_ENTRY.finditer(text))
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return {match[1]: text[match.start() : end] for match, end in zip(starts, ends, strict=True)}


@cache
def entry(kind: str, name: str) -> Mapping[str, Any]:
    """One entry as it stands in the file, `kind` being models or devices. Raises KeyError when there is none."""
    (found,) = YAML(typ="safe", pure=True).load(_entries(kind)[name])
    return dict(found)


@cache
def _short_names() -> Mapping[str, str]:
    return {
        alias.strip(): name
        for name, text in _entries("devices").items()
        for line in _ALIASES.findall(text)
        for alias in line.split(",")
    }


def device_ids() -> tuple[str, ...]:
    """Ids of all devices, and their short names."""
    return (*_entries("devices"), *_short_names())


@cache
def device(name: str) -> Device | None:
    """One device, by id or short name, as the core knows it; None when there is none."""
    name = _short_names().get(name, name)
    return device_from_entry(entry("devices", name)) if name in _entries("devices") else None


def model_ids() -> tuple[str, ...]:
    """Ids of all models."""
    return tuple(_entries("models"))


@cache
def _by_plain_name() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, text in _entries("models").items():
        found[loose_name(plain_name(name))] = name
        for line in _ALIASES.findall(text):
            for alias in line.split(","):
                found.setdefault(loose_name(plain_name(alias)), name)
    return found


@cache
def known_model(name: str) -> ModelShape | None:
    """The model behind any common spelling of its name, or None.

    Organisation, case, and suffixes of number format and packaging (-FP8, -AWQ, -GGUF, Q4_K_M, -Instruct) don't matter.
    """
    found = _by_plain_name().get(loose_name(plain_name(name)))
    return model_shape_from_catalog(entry("models", found)) if found else None
