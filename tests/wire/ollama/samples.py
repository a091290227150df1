"""Streams of Ollama's, and what is needed to run translations over them."""

from __future__ import annotations

import json
from typing import Any

import ollama

from gateway.wire.ollama.asked import Asked
from gateway.wire.ollama.lines import LineFramer, data_of
from gateway.wire.ollama.stream_from_chat import OllamaWriter
from gateway.wire.sse import Framer
from gateway.wire.sse import data_of as sse_data_of
from gateway.wire.translation import Stamp
from tests.recordings import FOLDER

STAMP = Stamp("a1b2", 1_800_000_000, "lake", stream=True)
CREATED = "2027-01-15T08:00:00Z"
FILES = {path.stem: path.read_bytes() for path in sorted((FOLDER / "ollama").glob("*.ndjson"))}
WHOLE_STREAMS = {name: body for name, body in FILES.items() if name != "chat_error"}


def cuts(body: bytes) -> list[list[bytes]]:
    """The body in two pieces, cut at every byte, and byte by byte."""
    return [[body[:at], body[at:]] for at in range(len(body) + 1)] + [[body[i : i + 1] for i in range(len(body))]]


def framed(parts: list[bytes]) -> list[bytes]:
    framer = LineFramer()
    return [*(line for part in parts for line in framer.feed(part)), *framer.end()]


def objects(lines: bytes) -> list[Any]:
    """The lines as the official client reads them: httpx splits where `str.splitlines` does."""
    return [json.loads(line) for line in lines.decode().splitlines()]


def written(events: bytes, *, generate: bool = False) -> bytes:
    """A chat stream, as event stream, in Ollama's lines."""
    writer = OllamaWriter(Asked(generate=generate), STAMP)
    framer = Framer()
    data = [sse_data_of(event) for event in [*framer.feed(events), *framer.end()]]
    return b"".join(writer.feed(each) for each in data if each is not None) + writer.end()


def checked(body: bytes, *, generate: bool = False) -> Any:
    """The answer or line, held to the official client's type of it."""
    kind = ollama.GenerateResponse if generate else ollama.ChatResponse
    return kind.model_validate_json(body)


def lines_data(body: bytes) -> list[bytes]:
    return [data for line in framed([body]) if (data := data_of(line)) is not None]
