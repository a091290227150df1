"""The scripted engine's Anthropic messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.clients.engine.chat import text_of
from tests.clients.engine.script import Offer, Step, Turn
from tests.clients.engine.sending import Events, pieces, sse

__all__ = ["messages_complaints", "messages_events", "messages_turn", "messages_whole"]


SIGNATURE = "c2lnbmVk"
"""Of thinking; the service takes back only what it signed."""


def messages_turn(body: Mapping[str, Any]) -> Turn:
    """Read a request. Raises KeyError or TypeError for one that is none."""
    blocks = [
        (message["role"], block)
        for message in body["messages"]
        for block in (message["content"] if isinstance(message["content"], list) else ())
    ]
    results = [block for _, block in blocks if block["type"] == "tool_result"]
    asked = [block["id"] for _, block in blocks if block["type"] == "tool_use"]
    answered = {block["tool_use_id"] for block in results}
    choice = body.get("tool_choice") or {"type": "auto"}
    texts = [text_of(body.get("system")), *(text_of(message["content"]) for message in body["messages"])]
    return Turn(
        model=body["model"],
        stream=body.get("stream") is True,
        text="\n".join(texts),
        offers=tuple(Offer(tool["name"], tool.get("input_schema") or {}) for tool in body.get("tools") or ()),
        choice=choice["name"] if choice["type"] == "tool" else {"any": "required"}.get(choice["type"], choice["type"]),
        rounds=sum(
            any(block.get("type") == "tool_use" for block in message["content"])
            for message in body["messages"]
            if message["role"] == "assistant" and isinstance(message["content"], list)
        ),
        results=tuple(text_of(block.get("content")) for block in results),
        open_calls=tuple(each for each in asked if each not in answered),
        schema=((body.get("output_config") or {}).get("format") or {}).get("schema"),
    )


def messages_complaints(body: Mapping[str, Any], headers: Mapping[str, str]) -> Iterator[str]:
    """What the hosted service would refuse in this request, by its public reference."""
    if "anthropic-version" not in headers:
        yield "no anthropic-version"
    if not isinstance(body.get("max_tokens"), int):
        yield "no max_tokens"
    open_calls: set[str] = set()
    roles = (
        "user",
        "assistant",
        *(("system",) if "mid-conversation-system" in headers.get("anthropic-beta", "") else ()),
    )
    for number, message in enumerate(body["messages"]):
        if message["role"] not in roles:
            yield f"messages[{number}].role={message['role']}"
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        if not blocks:
            yield f"messages[{number}] is empty"
        answered = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        if answered != open_calls:
            yield f"messages[{number}] answers {sorted(answered)}, and the calls before it are {sorted(open_calls)}"
        open_calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
        for block in blocks:
            if block["type"] == "text" and not block["text"].strip():
                yield f"messages[{number}]: a text block without text"
            if block["type"] == "thinking" and block.get("signature") != SIGNATURE:
                yield f"messages[{number}]: thinking with the signature {block.get('signature')!r}"
    if open_calls:
        yield f"the calls {sorted(open_calls)} have no answer"


def _usage(step: Step) -> dict[str, int]:
    return {
        "input_tokens": step.prompt_tokens - step.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": step.cached_tokens,
    }


def _blocks(step: Step) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if step.thought:
        blocks.append({"type": "thinking", "thinking": step.thought, "signature": SIGNATURE})
    if step.text:
        blocks.append({"type": "text", "text": step.text})
    return blocks + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in step.calls
    ]


def _head(turn: Turn, key: str) -> dict[str, Any]:
    return {"id": f"msg_{key}", "type": "message", "role": "assistant", "model": turn.model}


def messages_whole(turn: Turn, step: Step, key: str) -> dict[str, Any]:
    """The answer in one piece."""
    return {
        **_head(turn, key),
        "content": _blocks(step),
        "stop_reason": "tool_use" if step.calls else "end_turn",
        "stop_sequence": None,
        "usage": {**_usage(step), "output_tokens": step.output_tokens},
    }


def messages_events(turn: Turn, step: Step, key: str) -> Events:
    """The answer as an event stream."""

    def event(kind: str, **more: Any) -> bytes:
        return sse({"type": kind, **more}, kind)

    begun = {**_head(turn, key), "content": [], "stop_reason": None, "stop_sequence": None}
    yield event("message_start", message={**begun, "usage": {**_usage(step), "output_tokens": 1}})
    yield event("ping")
    for index, block in enumerate(_blocks(step)):
        kind = block["type"]
        if kind == "tool_use":
            empty, text = {**block, "input": {}}, json.dumps(block["input"], ensure_ascii=False)
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces(text)]]
        elif kind == "thinking":
            empty = {**block, "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": SIGNATURE})
        else:
            empty = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        yield event("content_block_start", index=index, content_block=empty)
        yield from (event("content_block_delta", index=index, delta=delta) for delta in deltas)
        yield event("content_block_stop", index=index)
    ended = {"stop_reason": "tool_use" if step.calls else "end_turn", "stop_sequence": None}
    yield event("message_delta", delta=ended, usage={**_usage(step), "output_tokens": step.output_tokens})
    yield event("message_stop")
