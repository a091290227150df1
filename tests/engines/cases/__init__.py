"""For each engine, what it answers and what its adapter must make of that: a new adapter brings a file of its own.

vLLM's and llama.cpp's answers are recordings. The others are built from the engines' sources and documents, as each
file says: nothing of them was seen running.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from dataclasses import dataclass, field
from typing import Any

from gateway.engines.adapter import Answer, FailureKind, Load

__all__ = ["Case", "all_cases", "answer"]


def answer(payload: Any, status: int = 200) -> Answer:
    """A JSON answer, or a page of text."""
    text = isinstance(payload, str)
    kind = "text/plain" if text else "application/json"
    return Answer(status, {"content-type": kind}, payload.encode() if text else json.dumps(payload).encode())


@dataclass(frozen=True)
class Case:
    """`discovery` and `follow_up` by the probes' keys; `models` as (id, window).

    `failures`: (status, payload, kind) for an overflow, an unknown model, a full engine and a route that is not there,
    at least. `overflow`: the (limit, requested) of the first. `drops`: what is taken out of every body.
    """

    name: str
    discovery: dict[str, Answer]
    models: tuple[tuple[str, int | None], ...]
    surfaces: frozenset[str] | None
    failures: tuple[tuple[int, bytes, FailureKind], ...]
    overflow: tuple[int | None, int | None]
    follow_up: dict[str, Answer] = field(default_factory=dict)
    slots: int | None = None
    pool: int | None = None
    version: str | None = None
    abilities: frozenset[str] = frozenset()
    loading: dict[str, Answer] = field(default_factory=dict)
    load: Load = field(default_factory=Load)
    drops: frozenset[str] = frozenset()
    credential: tuple[str, str] = ("Authorization", "Bearer k")
    surface_headers: tuple[str, ...] = ()


def all_cases() -> dict[str, Case]:
    """Every engine's case by name."""
    modules = (importlib.import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__))
    return {module.CASE.name: module.CASE for module in modules}
