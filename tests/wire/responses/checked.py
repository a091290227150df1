"""Read what was written with the official SDK's own types, so that a wrong shape fails."""

from __future__ import annotations

import json
from typing import Any

import httpx2
from openai import OpenAI
from openai.types.responses import Response, ResponseInputParam, ResponseStreamEvent, ToolParam
from pydantic import TypeAdapter

from gateway.wire.sse import Framer, data_of, fields
from tests.wire.draining import drain

__all__ = ["events", "final_response", "frames", "payloads", "response", "responses_request", "stream_of"]

_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
_INPUT: TypeAdapter[Any] = TypeAdapter(ResponseInputParam)
_TOOLS: TypeAdapter[Any] = TypeAdapter(list[ToolParam])


def frames(body: bytes) -> list[bytes]:
    framer = Framer()
    found = framer.feed(body)
    assert not framer.tail
    return found


def payloads(body: bytes) -> list[dict[str, Any]]:
    """Every event, decoded; its name must be its type, and the numbers go up by one."""
    found = []
    for number, event in enumerate(frames(body)):
        told = data_of(event)
        assert told is not None
        payload = json.loads(told)
        assert fields(event, b"event") == [payload["type"].encode()]
        assert payload["sequence_number"] == number
        found.append(payload)
    return found


def events(body: bytes) -> list[Any]:
    """Every event as the SDK's type of it."""
    return [_EVENT.validate_python(payload) for payload in payloads(body)]


def response(body: bytes) -> Response:
    return Response.model_validate(json.loads(body))


def final_response(body: bytes) -> Response:
    """What the SDK's own stream makes of it."""
    answered = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    )
    with (
        OpenAI(api_key="k", base_url="http://test", http_client=httpx2.Client(transport=answered)) as client,
        client.responses.stream(model="m", input="x") as stream,
    ):
        return stream.get_final_response()


def responses_request(body: bytes) -> dict[str, Any]:
    """A Responses body, decoded."""
    request: dict[str, Any] = json.loads(body)
    drain(_INPUT.validate_python(request["input"]))
    drain(_TOOLS.validate_python(request.get("tools", [])))
    return request


def stream_of(*told: dict[str, Any], names: bool = True) -> bytes:
    """An engine's own stream of those events."""
    return b"".join(
        (b"event: " + event["type"].encode() + b"\n" if names else b"")
        + b"data: "
        + json.dumps(event).encode()
        + b"\n\n"
        for event in told
    )
