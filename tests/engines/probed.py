"""Recorded answers to an adapter's probes."""

from __future__ import annotations

import json
from typing import Any

from gateway.engines.adapter import Answer
from gateway.wire.chat_request import ChatRequest, parse_chat
from tests.recordings import recording


def answers(engine: str, **paths: str) -> dict[str, Answer]:
    """`props="get_props"` answers /props with that recording; `v1_models` is /v1/models."""
    return {"/" + path.replace("v1_", "v1/"): Answer(*recording(engine, name)) for path, name in paths.items()}


def page(text: str, status: int = 200) -> Answer:
    return Answer(status, {"content-type": "text/plain"}, text.encode())


def chat(**more: Any) -> ChatRequest:
    return parse_chat(body(**more))


def body(**more: Any) -> bytes:
    return json.dumps({"model": "alias", "messages": [{"role": "user", "content": "Hi"}], **more}).encode()
