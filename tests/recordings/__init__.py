"""Answers of real engines, byte for byte as they came but for hosts, dates and framing headers.

`NAME.http` is a status line, headers, an empty line and the body. `llama.cpp/pairs/NAME.json` and `NAME.sse` are one
request answered whole and as a stream, at temperature 0 or with a seed.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

__all__ = ["FOLDER", "Recording", "pairs", "recording", "streams"]

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
    """Every recorded event stream, with a name for the test's id."""
    found = [
        (f"{engine}-{path.stem}", recording(engine, path.stem).body)
        for engine in ("llama.cpp", "vllm")
        for path in sorted((FOLDER / engine).glob("*.http"))
        if "event-stream" in recording(engine, path.stem).headers.get("content-type", "")
    ]
    found += [(f"pair-{name}", (FOLDER / "llama.cpp" / "pairs" / f"{name}.sse").read_bytes()) for name in pairs()]
    return found
