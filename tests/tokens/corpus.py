"""Requests of many kinds as clients send them, made anew from a seed: what token estimates are tried on."""

from __future__ import annotations

import base64
import inspect
import json
import random
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pydoc_data import topics
from typing import Any
from uuid import UUID

from gateway.wire.surfaces import SURFACES
from gateway.wire.translations import to_hub
from tests.clients.captures import RECORDED, captures, load
from tests.tokens.prose import PROSE

__all__ = ["KINDS", "Asked", "captured", "conversation", "request", "text_of"]

_MODULES = ("argparse", "ast", "asyncio.base_events", "collections", "csv", "dataclasses", "difflib", "email.message",
            "enum", "heapq", "http.client", "json.decoder", "logging", "pathlib", "statistics", "typing")  # fmt: skip
_SURFACES = {surface.path: surface.name for surface in SURFACES.values()}


@dataclass(frozen=True)
class Asked:
    """One request: what the client sends where, and the chat body that it is or becomes."""

    surface: str
    body: bytes
    chat: dict[str, Any]
    client: str = ""


@cache
def _words() -> tuple[str, ...]:
    return tuple(sorted(set(re.findall(r"[a-z]{3,12}", " ".join(topics.topics.values())))))


@cache
def _sources() -> tuple[str, ...]:
    return tuple(inspect.getsource(__import__(name, fromlist=["_"])) for name in _MODULES)


def _prose(language: str, rng: random.Random, size: int) -> str:
    glue, sentences, out = "" if language in ("Chinese", "Japanese") else " ", PROSE[language], ""
    while len(out) < size:
        out += glue.join(rng.sample(sentences, rng.randrange(2, 6))) + rng.choice(["\n\n", "\n", glue or "\n"])
    return out


def _piece(text: str, rng: random.Random, size: int) -> str:
    start = rng.randrange(max(1, len(text) - size))
    return text[start : start + size]


def _value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(7 if depth < 3 else 5)
    if kind < 2:
        return " ".join(rng.choices(_words(), k=rng.randrange(1, 6)))
    if kind == 2:
        return rng.randrange(10 ** rng.randrange(1, 10))
    if kind == 3:
        return round(rng.random() * 100, 4)
    if kind == 4:
        return rng.choice([True, False, None, str(UUID(int=rng.getrandbits(128), version=4))])
    if kind == 5:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(1, 5))]
    return {"_".join(rng.choices(_words(), k=2)): _value(rng, depth + 1) for _ in range(rng.randrange(2, 6))}


def _json(rng: random.Random, size: int) -> str:
    rows: list[Any] = []
    while len(text := json.dumps(rows, indent=rng.choice([None, 2]))) < size:
        rows.append({"id": len(rows), "item": _value(rng)})
    return text


def _log(rng: random.Random, size: int) -> str:
    form, out = rng.randrange(3), ""
    while len(out) < size:
        at = f"2026-11-{rng.randrange(1, 31):02}T{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"
        words = " ".join(rng.choices(_words(), k=6))
        address = ".".join(str(rng.randrange(256)) for _ in range(4))
        out += (
            f"{at}.{rng.randrange(1000):03}Z {rng.choice(['INFO', 'WARN', 'ERROR'])} [worker-{rng.randrange(32)}] "
            f"{words} request_id={UUID(int=rng.getrandbits(128), version=4)} took={rng.randrange(9000)}ms\n",
            f'{address} - - [{at}] "GET /{rng.choice(_words())}/{rng.randrange(10**6)} HTTP/1.1" 200 '
            f'{rng.randrange(10**5)} "-" "Mozilla/5.0 (X11; Linux x86_64)"\n',
            f"{at} kernel: [{rng.random() * 1e6:.6f}] {words} 0x{rng.getrandbits(64):016x} irq {rng.randrange(99)}\n",
        )[form]
    return out


def text_of(kind: str, rng: random.Random, size: int) -> str:
    """About so many characters of a kind."""
    if kind in PROSE:
        return _prose(kind, rng, size)
    if kind == "documentation":
        return _piece(rng.choice(sorted(topics.topics.values())), rng, size)
    if kind == "Python":
        return _piece(rng.choice(_sources()), rng, size)
    if kind == "JSON":
        return _json(rng, size)
    if kind == "logs":
        return _log(rng, size)
    data = base64.b64encode(rng.randbytes(size * 3 // 4)).decode()
    return "\n".join(textwrap.wrap(data, 76)) if rng.random() < 0.5 else data


def _tool(rng: random.Random) -> dict[str, Any]:
    words = _words()
    properties = {
        "_".join(rng.choices(words, k=rng.randrange(1, 3))): {
            "type": rng.choice(["string", "integer", "boolean"]),
            "description": " ".join(rng.choices(words, k=rng.randrange(4, 18))).capitalize() + ".",
        }
        for _ in range(rng.randrange(1, 7))
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)[:2]}
    about = _piece(" ".join(_prose("English", rng, 500).split()), rng, rng.randrange(60, 400))
    return {
        "type": "function",
        "function": {"name": "_".join(rng.choices(words, k=2)), "description": about, "parameters": schema},
    }


_TEXTS = (*PROSE, "documentation", "Python", "JSON", "logs", "base64")
_AGENTS = ("claude-code", "codex", "opencode")
KINDS = (*_TEXTS, "tool schemas", "mixed", *_AGENTS)
"""What requests are about; of agents those that were recorded."""


def request(kind: str, rng: random.Random) -> Asked:
    """One request of a kind: a system text and a few messages, as a client of chat completions sends it."""
    if kind in _AGENTS:
        return rng.choice([asked for asked in captured() if asked.client == kind])
    size, tools = int(min(60_000, rng.lognormvariate(8.0, 0.8))) + 300, []
    if kind == "tool schemas":
        tools = [_tool(rng) for _ in range(rng.randrange(4, 20))]
    messages = [{"role": "system", "content": _prose("English", rng, 120).strip()}]
    parts = rng.randrange(1, 5)
    for i in range(parts):
        of = rng.choice(_TEXTS) if kind == "mixed" else "English" if kind == "tool schemas" else kind
        content: Any = text_of(of, rng, 200 if kind == "tool schemas" else size // parts)
        if i % 2 == 0 and rng.random() < 0.3:
            content = [{"type": "text", "text": content[:100]}, {"type": "text", "text": content[100:]}]
        messages.append({"role": "assistant" if i % 2 else "user", "content": content})
    if parts % 2 == 0:
        messages.append({"role": "user", "content": "Go on, please."})
    body = {"model": "m", "messages": messages, **({"tools": tools} if tools else {})}
    return Asked("chat", json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(), body)


@cache
def captured(folder: Path = RECORDED) -> tuple[Asked, ...]:
    """Every conversation that real clients sent, as the chat body that it becomes."""
    return tuple(_captured(folder))


def _captured(folder: Path) -> Iterator[Asked]:
    for file in captures(folder):
        for sent in load(file):
            surface = _SURFACES.get(sent.path)
            if surface not in ("chat", "messages", "responses", "ollama_chat") or not isinstance(sent.body, dict):
                continue
            data = sent.data()
            translate = to_hub(surface, "chat")
            chat = json.loads(translate(data).body) if translate is not None else sent.body
            if chat.get("messages"):
                yield Asked(surface, data, chat, file.stem)


def conversation(
    rng: random.Random, turns: int, *, thinking: bool, count: Callable[[str], int]
) -> Iterator[tuple[Asked, int]]:
    """The turns of an agent's conversation, each with the tokens of the answer to it, its reasoning included.

    System text and tools are together some 30 to 60 kB, as coding agents send them (recordings/clients).
    """
    kind = rng.choice([text for text in _TEXTS if text != "base64"])
    tools = [_tool(rng) for _ in range(rng.randrange(8, 24))] if rng.random() < 0.7 else []
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": _prose("English", rng, rng.randrange(16_000, 40_000))},
        {"role": "user", "content": text_of(kind, rng, 600)},
    ]
    for turn in range(turns):
        body = {"model": "m", "messages": list(messages), **({"tools": tools} if tools else {})}
        thought = _prose("English", rng, rng.randrange(100, 900)).strip() if thinking else ""
        answer: dict[str, Any] = {"role": "assistant", "content": ""}
        if thinking:
            answer["reasoning_content"] = thought
        calls = bool(tools) and rng.random() < 0.6
        if calls:
            arguments = json.dumps({"path": "/".join(rng.choices(_words(), k=3)), "limit": rng.randrange(500)})
            call = {"name": rng.choice(tools)["function"]["name"], "arguments": arguments}
            answer["tool_calls"] = [{"id": f"call_{turn}", "type": "function", "function": call}]
            said = json.dumps(call)
        else:
            said = answer["content"] = text_of(kind, rng, rng.randrange(100, 1500))
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        yield Asked("chat", data, body), count(said) + (count(thought) + 4 if thinking else 0) + 1
        messages.append(answer)
        if calls:
            result = text_of(rng.choice(["JSON", "logs", "Python", "documentation"]), rng, rng.randrange(100, 3000))
            messages.append({"role": "tool", "tool_call_id": f"call_{turn}", "content": result})
        else:
            messages.append({"role": "user", "content": text_of(kind, rng, rng.randrange(40, 600))})
