"""Read what was written with the official SDKs' own types, so that a wrong shape fails."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import httpx2
from anthropic import Anthropic
from anthropic.types import Message, MessageParam, RawMessageStreamEvent, ToolParam
from anthropic.types.tool_choice_param import ToolChoiceParam
from openai import LengthFinishReasonError, OpenAI
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionMessageParam,
    ChatCompletionToolChoiceOptionParam,
    ChatCompletionToolParam,
)
from pydantic import TypeAdapter

from gateway.wire.sse import Framer, data_of, fields
from tests.wire.draining import drain

_EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
_CHAT_MESSAGES: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
_CHAT_TOOLS: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionToolParam])
_CHAT_CHOICE: TypeAdapter[Any] = TypeAdapter(ChatCompletionToolChoiceOptionParam)
_MESSAGES: TypeAdapter[Any] = TypeAdapter(list[MessageParam])
_TOOLS: TypeAdapter[Any] = TypeAdapter(list[ToolParam])
_CHOICE: TypeAdapter[Any] = TypeAdapter(ToolChoiceParam)


def frames(body: bytes) -> list[bytes]:
    framer = Framer()
    found = framer.feed(body)
    assert not framer.tail
    return found


def data(body: bytes) -> list[bytes]:
    """The data of every event that has any."""
    return [told for event in frames(body) if (told := data_of(event)) is not None]


def message(body: bytes) -> Message:
    return Message.model_validate(json.loads(body))


def events(body: bytes) -> list[Any]:
    """Every event of a message's stream; its name must be its type."""
    found = []
    for event in frames(body):
        told = data_of(event)
        assert told is not None
        payload = json.loads(told)
        assert fields(event, b"event") == [payload["type"].encode()]
        found.append(_EVENT.validate_python(payload))
    return found


def final_message(body: bytes) -> Message:
    """What the SDK's own stream makes of it."""
    answered = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    )
    with (
        Anthropic(api_key="k", base_url="http://test", http_client=httpx2.Client(transport=answered)) as client,
        client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]) as stream,
    ):
        return stream.get_final_message()


def final_completion(body: bytes) -> ChatCompletion:
    """What the other SDK's own stream makes of chat chunks."""
    answered = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    )
    with (
        OpenAI(api_key="k", base_url="http://test", http_client=httpx2.Client(transport=answered)) as client,
        client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "x"}]) as stream,
    ):
        try:
            return stream.get_final_completion()
        except LengthFinishReasonError as error:  # it has read the stream, and warns that there may be more
            return error.completion


def completion(body: bytes) -> ChatCompletion:
    return ChatCompletion.model_validate(json.loads(body))


def chunks(body: bytes) -> list[ChatCompletionChunk]:
    told = data(body)
    assert told[-1] == b"[DONE]"
    return [ChatCompletionChunk.model_validate(json.loads(one)) for one in told[:-1]]


def chat_request(body: bytes) -> dict[str, Any]:
    """A chat body, decoded; reasoning of earlier turns is an addition of local engines."""
    request: dict[str, Any] = json.loads(body)
    drain(_CHAT_MESSAGES.validate_python(request["messages"]))
    if "tools" in request:
        _CHAT_TOOLS.validate_python(request["tools"])
    if "tool_choice" in request:
        _CHAT_CHOICE.validate_python(request["tool_choice"])
    return request


def messages_request(body: bytes) -> dict[str, Any]:
    """A Messages body, decoded."""
    request: dict[str, Any] = json.loads(body)
    drain(_MESSAGES.validate_python(request["messages"]))
    drain(_TOOLS.validate_python(request.get("tools", [])))
    if "tool_choice" in request:
        _CHOICE.validate_python(request["tool_choice"])
    roles = [turn["role"] for turn in request["messages"]]
    assert all(one != other for one, other in pairwise(roles)), roles
    return request
