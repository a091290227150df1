"""Engines that have one API each, and streams and answers in its words."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway.wire.surfaces import SURFACES
from tests.relay.fake_engine import DONE, FINISH, ROLE, STREAM_HEAD, Request, Script, Wire, chunk, token
from tests.relay.fake_engine import raw as raw_script
from tests.shell.engine_double import EngineDouble, page

__all__ = ["SPOKEN", "WHOLE", "Spoken", "engine", "stream"]

TIME = "2027-01-15T08:00:01.1Z"
USAGE = {"input_tokens": 11, "output_tokens": 3, "total_tokens": 14}


def _event(kind: str, **members: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), json.dumps({"type": kind, **members}).encode())


def _line(**members: Any) -> bytes:
    return json.dumps({"model": "tiny", "created_at": TIME, **members}, ensure_ascii=False).encode() + b"\n"


def _response(status: str, **members: Any) -> dict[str, Any]:
    known = {"id": "resp_1", "object": "response", "created_at": 1, "model": "tiny", "output": [], "error": None}
    return {**known, "status": status, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], **members}


@dataclass(frozen=True)
class Spoken:
    """An engine's stream: how it begins, one piece of text, how it ends, and an error in it that is the caller's."""

    begin: bytes
    word: Callable[[str], bytes]
    finish: bytes
    refusal: bytes


_TEXT = {"type": "output_text", "text": "", "annotations": []}
_ITEM = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
_AT = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
_MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "tiny", "stop_reason": None}

SPOKEN = {
    "chat": Spoken(
        ROLE, token, FINISH + DONE, b'data: {"error":{"message":"m","type":"BadRequestError","code":400}}\n\n' + DONE
    ),
    "messages": Spoken(
        _event("message_start", message={**_MESSAGE, "usage": {"input_tokens": 11, "output_tokens": 0}})
        + _event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        lambda text: _event("content_block_delta", index=0, delta={"type": "text_delta", "text": text}),
        _event("content_block_stop", index=0)
        + _event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 3})
        + _event("message_stop"),
        _event("error", error={"type": "invalid_request_error", "message": "m"}),
    ),
    "responses": Spoken(
        _event("response.created", response=_response("in_progress"))
        + _event("response.output_item.added", output_index=0, item=_ITEM)
        + _event("response.content_part.added", **_AT, part=_TEXT),
        lambda text: _event("response.output_text.delta", **_AT, delta=text),
        _event("response.output_text.done", **_AT, text="")
        + _event("response.completed", response=_response("completed", usage=USAGE)),
        _event("error", error={"message": "m", "type": "invalid_request_error", "code": 400}),
    ),
    "ollama_chat": Spoken(
        b"",
        lambda text: _line(message={"role": "assistant", "content": text}, done=False),
        _line(message={"role": "assistant", "content": ""}, done=True, done_reason="stop", eval_count=3),
        b'{"error":"the input length exceeds the context length"}\n',
    ),
    "ollama_generate": Spoken(
        b"",
        lambda text: _line(response=text, done=False),
        _line(response="", done=True, done_reason="stop", eval_count=3),
        b'{"error":"the input length exceeds the context length"}\n',
    ),
}


WHOLE: dict[str, dict[str, Any]] = {
    "chat": {
        "id": "c",
        "model": "tiny",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "said"}, "finish_reason": "stop"}],
    },
    "messages": {
        **_MESSAGE,
        "content": [{"type": "text", "text": "said"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 11, "output_tokens": 3},
    },
    "responses": _response(
        "completed", output=[{**_ITEM, "status": "completed", "content": [{**_TEXT, "text": "said"}]}], usage=USAGE
    ),
    "ollama_chat": json.loads(_line(message={"role": "assistant", "content": "said"}, done=True, done_reason="stop")),
    "ollama_generate": json.loads(_line(response="said", done=True, done_reason="stop")),
}


class _Ollama(EngineDouble):
    """Details of a model are asked for by POST there; they are no generation."""

    async def _answer(self, request: Request, wire: Wire) -> None:
        if request.line.startswith("POST /api/show"):
            await page({"capabilities": ["completion", "tools"], "model_info": {}})(request, wire)
        else:
            await super()._answer(request, wire)


def engine(spoken: str, *scripts: Script, model: str = "tiny") -> EngineDouble:
    """One that has this API and, but for Ollama's, no other."""
    listed = page({"object": "list", "data": [{"id": model, "object": "model", "type": "model", "created": 1}]})
    if spoken.startswith("ollama"):
        tags = page({"models": [{"name": model, "model": model, "digest": "d", "details": {}}]})
        return _Ollama("ollama", {"/api/tags": tags, "/api/version": page({"version": "0.20.0"})}, *scripts)
    absent = page({"error": {"message": "no such route"}}, 404)
    others = {SURFACES[name].path: absent for name in ("messages", "responses") if name != spoken}
    flavour = "anthropic" if spoken == "messages" else "openai"
    return EngineDouble(flavour, {"/v1/models": listed, "/v1/models?limit=1000": listed, **others}, *scripts)


def stream(spoken: str, *parts: bytes, end: bool = True, then: str = "keep") -> Script:
    """These parts as a stream of that API; `end` and `then` as in tests.relay.fake_engine.sse."""
    kind = b"application/x-ndjson" if spoken.startswith("ollama") else b"text/event-stream"
    head = STREAM_HEAD.replace(b"text/event-stream", kind)
    return raw_script(head, *(chunk(part) for part in parts if part), b"0\r\n\r\n" if end else b"", then=then)
