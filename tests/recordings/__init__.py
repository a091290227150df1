"""Answers of real engines, byte for byte as they came but for hosts, dates and framing headers.

`NAME.http` is a status line, headers, an empty line and the body; long ones are shortened: whole events of the middle
are left out, or numbers of a vector. `llama.cpp/pairs/NAME.json` and `NAME.sse` are one
request answered whole and as a stream, at temperature 0 or with a seed.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

__all__ = ["FOLDER", "Recording", "answers", "native_streams", "pairs", "recording", "streams"]

FOLDER = Path(__file__).parent


class Recording(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def recording(engine: str, name: str) -> Recording:
    head, body = (FOLDER / engine / f"{name}.http").read_bytes().split(b"\n\n", 1)
    status, *lines = head.decode().split("\n")
    headers = {}
    for line in lines:
        key, _, value = line.partition(":")
        headers[key.lower()] = value.strip()
    return Recording(int(status.split(" ")[1]), headers, body)


def pairs() -> list[str]:
    return sorted(path.stem for path in (FOLDER / "llama.cpp" / "pairs").glob("*.json"))


def streams() -> list[tuple[str, bytes]]:
    """Every recorded stream of chat and completion chunks, with a name for the test's id."""
    found = [(name, body) for name, body in _event_streams() if not _is_native(name)]
    found += [(f"pair-{name}", (FOLDER / "llama.cpp" / "pairs" / f"{name}.sse").read_bytes()) for name in pairs()]
    return found


def native_streams() -> list[tuple[str, bytes]]:
    """Every recorded stream of Anthropic messages and OpenAI responses."""
    return [(name, body) for name, body in _event_streams() if _is_native(name)]


def answers() -> list[tuple[str, bytes]]:
    """Every recorded JSON body, errors too."""
    found = [(name, one.body) for name, one in _all() if "json" in one.headers.get("content-type", "")]
    found += [(f"pair-{name}", (FOLDER / "llama.cpp" / "pairs" / f"{name}.json").read_bytes()) for name in pairs()]
    return found


def _all() -> list[tuple[str, Recording]]:
    return [
        (f"{engine}-{path.stem}", recording(engine, path.stem))
        for engine in ("llama.cpp", "vllm")
        for path in sorted((FOLDER / engine).glob("*.http"))
    ]


def _event_streams() -> list[tuple[str, bytes]]:
    return [(name, one.body) for name, one in _all() if "event-stream" in one.headers.get("content-type", "")]


def _is_native(name: str) -> bool:
    return "messages" in name or "responses" in name
