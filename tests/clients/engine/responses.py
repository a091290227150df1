"""The scripted engine's OpenAI responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.clients.engine.chat import text_of
from tests.clients.engine.script import Offer, Step, Turn
from tests.clients.engine.sending import Events, pieces, sse

__all__ = ["responses_events", "responses_turn", "responses_whole"]


def responses_turn(body: Mapping[str, Any]) -> Turn:
    """Read a request. Raises KeyError or TypeError for one that is none."""
    given = body["input"]
    items = given if isinstance(given, list) else [{"role": "user", "content": given}]
    kinds = [item.get("type", "message") for item in items]
    asked = [item["call_id"] for item in items if item.get("type") == "function_call"]
    outputs = [item for item in items if item.get("type") == "function_call_output"]
    answered = {item["call_id"] for item in outputs}
    # Calls made at once stand side by side.
    rounds = sum(kind == "function_call" and (n == 0 or kinds[n - 1] != kind) for n, kind in enumerate(kinds))
    choice = body.get("tool_choice") or "auto"
    texts = [body.get("instructions") or "", *(text_of(item.get("content")) for item in items)]
    return Turn(
        model=body["model"],
        stream=body.get("stream") is True,
        text="\n".join(texts),
        offers=tuple(
            Offer(tool["name"], tool.get("parameters") or {})
            for tool in body.get("tools") or ()
            if tool.get("type") == "function"
        ),
        choice=choice if isinstance(choice, str) else choice.get("name", "auto"),
        rounds=rounds,
        results=tuple(_output(item["output"]) for item in outputs),
        open_calls=tuple(each for each in asked if each not in answered),
        schema=((body.get("text") or {}).get("format") or {}).get("schema"),
    )


def _output(output: Any) -> str:
    return output if isinstance(output, str) else text_of(output)


def _items(step: Step, key: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if step.thought:
        part = {"type": "reasoning_text", "text": step.thought}
        items.append({"type": "reasoning", "id": f"rs_{key}", "summary": [], "content": [part], "status": "completed"})
    if step.text:
        text = {"type": "output_text", "text": step.text, "annotations": [], "logprobs": []}
        said = {"type": "message", "id": f"msg_{key}", "role": "assistant", "status": "completed", "content": [text]}
        items.append(said)
    for number, call in enumerate(step.calls):
        made = {"name": call.name, "arguments": call.arguments, "call_id": call.id, "status": "completed"}
        items.append({"type": "function_call", "id": f"fc_{key}_{number}", **made})
    return items


def _head(turn: Turn, key: str, status: str) -> dict[str, Any]:
    return {
        "id": f"resp_{key}",
        "object": "response",
        "created_at": 1_800_000_000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": turn.model,
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }


def responses_whole(turn: Turn, step: Step, key: str) -> dict[str, Any]:
    """The answer in one piece."""
    usage = {
        "input_tokens": step.prompt_tokens,
        "input_tokens_details": {"cached_tokens": step.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": step.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": step.prompt_tokens + step.output_tokens,
    }
    return {**_head(turn, key, "completed"), "output": _items(step, key), "usage": usage}


def responses_events(turn: Turn, step: Step, key: str) -> Events:
    """The answer as an event stream."""
    number = -1

    def event(kind: str, **more: Any) -> bytes:
        nonlocal number
        number += 1
        return sse({"type": kind, "sequence_number": number, **more}, kind)

    yield event("response.created", response=_head(turn, key, "in_progress"))
    yield event("response.in_progress", response=_head(turn, key, "in_progress"))
    for index, item in enumerate(_items(step, key)):
        where = {"item_id": item["id"], "output_index": index}
        if item["type"] == "function_call":
            begun = {**item, "arguments": "", "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=begun)
            for piece in pieces(item["arguments"]):
                yield event("response.function_call_arguments.delta", **where, delta=piece)
            made = {"name": item["name"], "arguments": item["arguments"]}
            yield event("response.function_call_arguments.done", **where, **made)
        else:
            (part,) = item["content"]
            thinks = item["type"] == "reasoning"
            noun = "reasoning_text" if thinks else "output_text"
            more: dict[str, Any] = {} if thinks else {"logprobs": []}
            begun = {**item, "content": [], "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=begun)
            yield event("response.content_part.added", **where, content_index=0, part={**part, "text": ""})
            for piece in pieces(part["text"]):
                yield event(f"response.{noun}.delta", **where, content_index=0, delta=piece, **more)
            yield event(f"response.{noun}.done", **where, content_index=0, text=part["text"], **more)
            yield event("response.content_part.done", **where, content_index=0, part=part)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=responses_whole(turn, step, key))
