"""Streams of responses as engines write them, with what the recordings have none of: calls, reasoning, refusals."""

from __future__ import annotations

from typing import Any

__all__ = ["LLAMA_TOOLS", "OPENAI_TOOLS", "response_of"]


def response_of(**members: Any) -> dict[str, Any]:
    """A response object with all that the API always tells."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "big",
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [{"type": "function", "name": "f", "parameters": {"model": "big"}, "strict": False}],
        "top_p": 1.0,
        "usage": None,
        **members,
    }


_THOUGHT = {"id": "rs", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
_SAID = {"type": "output_text", "text": "I call", "annotations": [], "logprobs": []}
_MESSAGE = {"id": "msg", "type": "message", "role": "assistant", "status": "completed", "content": [_SAID]}
_CALLS = [
    {"id": "fc_a", "type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x":1}', "status": "completed"},
    {"id": "fc_b", "type": "custom_tool_call", "call_id": "b", "name": "g", "input": 'say "x"', "status": "completed"},
]
_USAGE = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 14,
}


def _place(index: int, **members: Any) -> dict[str, Any]:
    return {"item_id": ("rs", "msg", "fc_a", "fc_b")[index], "output_index": index, **members}


def _added(index: int, item: dict[str, Any], **empty: Any) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": {**item, **empty}}


def _done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


_FINAL = response_of(output=[_THOUGHT, _MESSAGE, *_CALLS], usage=_USAGE)
_EVENTS: list[dict[str, Any]] = [
    {"type": "response.created", "response": response_of(status="in_progress")},
    {"type": "response.in_progress", "response": response_of(status="in_progress")},
    _added(0, _THOUGHT, summary=[]),
    {"type": "response.reasoning_summary_part.added", **_place(0, summary_index=0, part={"type": "summary_text"})},
    {"type": "response.reasoning_summary_text.delta", **_place(0, summary_index=0, delta="hm")},
    {"type": "response.reasoning_summary_text.done", **_place(0, summary_index=0, text="hm")},
    _done(0, _THOUGHT),
    _added(1, _MESSAGE, content=[], status="in_progress"),
    {"type": "response.content_part.added", **_place(1, content_index=0, part={**_SAID, "text": ""})},
    {"type": "response.output_text.delta", **_place(1, content_index=0, delta="I ", logprobs=[])},
    {"type": "response.output_text.delta", **_place(1, content_index=0, delta="call", logprobs=[])},
    {"type": "response.output_text.done", **_place(1, content_index=0, text="I call", logprobs=[])},
    {"type": "response.content_part.done", **_place(1, content_index=0, part=_SAID)},
    _done(1, _MESSAGE),
    _added(2, _CALLS[0], arguments="", status="in_progress"),
    _added(3, _CALLS[1], input="", status="in_progress"),
    {"type": "response.function_call_arguments.delta", **_place(2, delta='{"x":')},
    {"type": "response.custom_tool_call_input.delta", **_place(3, delta='say "')},
    {"type": "response.function_call_arguments.delta", **_place(2, delta="1}")},
    {"type": "response.custom_tool_call_input.delta", **_place(3, delta='x"')},
    {"type": "response.function_call_arguments.done", **_place(2, arguments='{"x":1}')},
    {"type": "response.custom_tool_call_input.done", **_place(3, input='say "x"')},
    _done(2, _CALLS[0]),
    _done(3, _CALLS[1]),
    {"type": "response.completed", "response": _FINAL},
]

OPENAI_TOOLS: list[dict[str, Any]] = [{**event, "sequence_number": n} for n, event in enumerate(_EVENTS)]
"""As OpenAI's reference has the events; two calls whose fragments alternate."""

_LLAMA_CALL = {"type": "function_call", "call_id": "fc_x", "name": "f", "arguments": '{"x":1}', "status": "completed"}
LLAMA_TOOLS: list[dict[str, Any]] = [
    {"type": "response.created", "response": {"id": "resp_1", "object": "response", "status": "in_progress"}},
    {"type": "response.output_item.added", "item": {**_LLAMA_CALL, "arguments": "", "status": "in_progress"}},
    {"type": "response.function_call_arguments.delta", "delta": '{"x":', "item_id": "fc_x"},
    {"type": "response.function_call_arguments.delta", "delta": "1}", "item_id": "fc_x"},
    {"type": "response.output_item.done", "item": _LLAMA_CALL},
    {
        "type": "response.completed",
        "response": {
            "id": "resp_1",
            "object": "response",
            "status": "completed",
            "model": "small",
            "output": [_LLAMA_CALL],
            "usage": {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14},
        },
        "timings": {"cache_n": 4, "prompt_n": 5, "prompt_ms": 20.0, "predicted_n": 5, "predicted_ms": 50.0},
    },
]
"""As llama.cpp writes calls: without indices, the item named by its call."""
