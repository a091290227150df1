"""The scripted engine's chat and text completions, as vLLM and llama.cpp answer them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from tests.clients.engine.script import Offer, Step, Turn
from tests.clients.engine.sending import Events, pieces, sse

__all__ = ["chat_complaints", "chat_events", "chat_turn", "chat_whole", "completion_events", "completion_whole"]

_ROLES = ("system", "developer", "user", "assistant", "tool")


def chat_turn(body: Mapping[str, Any]) -> Turn:
    """Read a request. Raises KeyError or TypeError for one that is none."""
    messages = body["messages"]
    answered = {message.get("tool_call_id") for message in messages if message["role"] == "tool"}
    asked = [message for message in messages if message["role"] == "assistant" and message.get("tool_calls")]
    choice = body.get("tool_choice") or "auto"
    form = body.get("response_format") or {}
    return Turn(
        model=body["model"],
        stream=body.get("stream") is True,
        text="\n".join(text_of(message.get("content")) for message in messages),
        offers=tuple(
            Offer(tool["function"]["name"], tool["function"].get("parameters") or {})
            for tool in body.get("tools") or ()
        ),
        choice=choice if isinstance(choice, str) else choice["function"]["name"],
        rounds=len(asked),
        results=tuple(text_of(message.get("content")) for message in messages if message["role"] == "tool"),
        open_calls=tuple(
            call["id"] for message in asked for call in message["tool_calls"] if call["id"] not in answered
        ),
        schema={"json_schema": (form.get("json_schema") or {}).get("schema"), "json_object": {"type": "object"}}.get(
            form.get("type", "")
        ),
        show_usage=(body.get("stream_options") or {}).get("include_usage") is True,
    )


def text_of(content: Any) -> str:
    """The text of a content, be it a string or parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if isinstance(part.get("text"), str))


def chat_complaints(body: Mapping[str, Any]) -> Iterator[str]:
    """What some engine or chat template would refuse in this request."""
    open_calls: set[str] = set()
    for number, message in enumerate(body["messages"]):
        role, content = message["role"], message.get("content")
        if role not in _ROLES:
            yield f"messages[{number}].role={role}"
        if (
            role == "system"
            and number
            and any(m["role"] not in ("system", "developer") for m in body["messages"][:number])
        ):
            yield f"messages[{number}]: a system message after the beginning, which templates of Qwen 3.5 refuse"
        if isinstance(content, list):
            for part in content:
                if part.get("type") not in ("text", "image_url", "input_audio", "file"):
                    yield f"messages[{number}]: a content part of type {part.get('type')}"
        elif content is not None and not isinstance(content, str):
            yield f"messages[{number}].content is a {type(content).__name__}"
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                yield f"messages[{number}]: an answer to the call {message.get('tool_call_id')} that nobody made"
            open_calls.discard(message.get("tool_call_id"))
        elif open_calls:
            yield f"messages[{number}]: the calls {sorted(open_calls)} have no answer"
            open_calls.clear()
        for call in message.get("tool_calls") or ():
            if call.get("type") != "function" or not isinstance(call["function"].get("arguments"), str):
                yield f"messages[{number}]: a tool call that is not one"
            open_calls.add(call["id"])
    for number, tool in enumerate(body.get("tools") or ()):
        if tool.get("type") != "function" or not isinstance((tool.get("function") or {}).get("name"), str):
            yield f"tools[{number}] is no function"


def _usage(step: Step) -> dict[str, Any]:
    return {
        "prompt_tokens": step.prompt_tokens,
        "completion_tokens": step.output_tokens,
        "total_tokens": step.prompt_tokens + step.output_tokens,
        "prompt_tokens_details": {"cached_tokens": step.cached_tokens},
    }


def chat_whole(turn: Turn, step: Step, key: str) -> dict[str, Any]:
    """The answer in one piece; `key` is fresh for each answer."""
    message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
    if step.thought:
        message["reasoning_content"] = step.thought
    if step.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in step.calls
        ]
    return {
        "id": f"chatcmpl-{key}",
        "object": "chat.completion",
        "created": 1_800_000_000,
        "model": turn.model,
        "choices": [{"index": 0, "message": message, "finish_reason": _reason(step), "logprobs": None}],
        "usage": _usage(step),
    }


def chat_events(turn: Turn, step: Step, key: str) -> Events:
    """The answer as an event stream: role, reasoning, text, calls, the reason to end, usage where asked for."""
    head = {"id": f"chatcmpl-{key}", "object": "chat.completion.chunk", "created": 1_800_000_000, "model": turn.model}

    def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return sse({**head, "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    yield from (chunk({"reasoning_content": piece}) for piece in pieces(step.thought))
    yield from (chunk({"content": piece}) for piece in pieces(step.text))
    for index, call in enumerate(step.calls):
        named = {"id": call.id, "type": "function", "index": index, "function": {"name": call.name, "arguments": ""}}
        yield chunk({"tool_calls": [named]})
        for piece in pieces(call.arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _reason(step))
    if turn.show_usage:
        yield sse({**head, "choices": [], "usage": _usage(step)})
    yield b"data: [DONE]\n\n"


def _reason(step: Step) -> str:
    return "tool_calls" if step.calls else "stop"


def completion_whole(turn: Turn, step: Step, key: str) -> dict[str, Any]:
    """A text completion in one piece."""
    choice = {"index": 0, "text": step.text, "logprobs": None, "finish_reason": "stop"}
    head = {"id": f"cmpl-{key}", "object": "text_completion", "created": 1_800_000_000, "model": turn.model}
    return {**head, "choices": [choice], "usage": _usage(step)}


def completion_events(turn: Turn, step: Step, key: str) -> Events:
    """A text completion as an event stream."""
    head = {"id": f"cmpl-{key}", "object": "text_completion", "created": 1_800_000_000, "model": turn.model}
    for text, reason in itertools.chain(((piece, None) for piece in pieces(step.text)), [("", "stop")]):
        yield sse({**head, "choices": [{"index": 0, "text": text, "logprobs": None, "finish_reason": reason}]})
    if turn.show_usage:
        yield sse({**head, "choices": [], "usage": _usage(step)})
    yield b"data: [DONE]\n\n"
