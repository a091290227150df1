"""A whole response as a chat answer."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.chat_writing import chat_answer
from gateway.wire.engine_json import read_engine
from gateway.wire.responses.ending import finish_reason
from gateway.wire.responses.log_probabilities import log_probabilities
from gateway.wire.responses.native_answer import Item, Response, tool_call, usage_told
from gateway.wire.responses.usage import response_usage
from gateway.wire.translation import Stamp

__all__ = ["answer"]


class _Answer(Response):
    output: list[Item]  # what has none is no response


_ANSWER = msgspec.json.Decoder(_Answer)


def answer(body: bytes, _context: object, stamp: Stamp) -> bytes:
    """The response as a chat answer with one choice. Raises StreamBroken for what is no response, or a failed one.

    Texts become one, as the parts of one answer that they are; reasoning, or its summary where there is no more of it,
    becomes `reasoning_content`. Items of tools that the service ran have no counterpart and are left out.
    """
    told = read_engine(_ANSWER, body, "response")
    if told.error or told.status == "failed":
        raise StreamBroken("the engine says that the response failed")
    texts: list[str] = []
    refusals: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    logprobs: list[Any] = []
    for item in told.output:
        if item.type == "message":
            for part in item.content or ():
                texts.append(part.text or "")
                refusals.append(part.refusal or "")
                logprobs += log_probabilities({"content": part.logprobs})
        elif item.type == "reasoning":
            thoughts += [part.text or "" for part in item.content or item.summary or ()]
        else:
            call = tool_call(item, f"call_{stamp.id}_{len(calls)}")
            calls += [call] if call is not None else []
    text, refusal, thought = "".join(texts), "".join(refusals), "".join(thoughts)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": text if text or not (calls or refusal) else None,
        "refusal": refusal or None,
    }
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = calls
    ended = {
        "status": told.status,
        "incomplete_details": told.incomplete_details,
        "output": [{"type": item.type} for item in told.output],
    }
    probabilities = {"content": logprobs, "refusal": None} if logprobs else None
    usage = usage_told(response_usage(told.usage), told.usage)
    return chat_answer(stamp, message, finish_reason(ended) or "stop", usage, probabilities)
