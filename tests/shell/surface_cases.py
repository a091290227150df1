"""Streams in the words of each API, as engines write them and as clients read them.

A case is what the client speaks and what the engine speaks: the same (bytes pass through) or another (translated).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway.wire.surfaces import SURFACES
from tests.edge.wire_client import Reply
from tests.relay.fake_engine import DONE, FINISH, ROLE, STREAM_HEAD, Request, Script, Wire, chunk, token
from tests.relay.fake_engine import raw as raw_script
from tests.shell.engine_double import EngineDouble, page

__all__ = ["CASES", "WHOLE", "Case", "Spoken", "engine", "stream"]

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


@dataclass(frozen=True)
class Case:
    """What the client speaks, and what the engine does."""

    client: str
    spoken: str

    @property
    def words(self) -> Spoken:
        return SPOKEN[self.spoken]

    @property
    def path(self) -> str:
        return SURFACES[self.client].path

    def engine(self, *scripts: Script, model: str = "tiny") -> EngineDouble:
        return engine(self.spoken, *scripts, model=model)

    def stream(self, *parts: bytes, **how: Any) -> Script:
        return stream(self.spoken, *parts, **how)

    def body(self, text: str = "hi", *, model: str = "tiny", stream: bool = True, budget: int = 50) -> dict[str, Any]:
        """The client's request; `budget` in output tokens."""
        said: dict[str, Any] = {"messages": [{"role": "user", "content": text}]}
        if self.client == "messages":
            said["max_tokens"] = budget
        elif self.client == "responses":
            said = {"input": text, "max_output_tokens": budget}
        elif self.client == "ollama_generate":
            said = {"prompt": text, "options": {"num_predict": budget}}
        elif self.client == "ollama_chat":
            said["options"] = {"num_predict": budget}
        else:
            said["max_tokens"] = budget
        return {"model": model, "stream": stream, **said}

    # --- what the client reads

    def events(self, body: bytes) -> list[Any]:
        """Every event's JSON; anything else fails here."""
        if self.client.startswith("ollama"):
            return [json.loads(line) for line in body.splitlines() if line]
        data = [
            line[5:].strip() for block in body.split(b"\n\n") for line in block.split(b"\n") if line[:5] == b"data:"
        ]
        return [json.loads(one) for one in data if one != b"[DONE]"]

    def text(self, body: bytes) -> str:
        """The text that was delivered."""
        found = []
        for event in self.events(body):
            if self.client == "messages":
                found.append(event.get("delta", {}).get("text"))
            elif self.client == "responses":
                found.append(event["delta"] if event["type"] == "response.output_text.delta" else None)
            elif self.client == "chat":
                found += [each["delta"].get("content") for each in event.get("choices", ())]
            else:
                found.append(event.get("response") or event.get("message", {}).get("content"))
        return "".join(each for each in found if each)

    def reasoning(self, body: bytes) -> str:
        """The reasoning that was delivered."""
        found = []
        for event in self.events(body):
            if self.client == "messages":
                found.append(event.get("delta", {}).get("thinking"))
            elif self.client == "responses":
                found.append(event["delta"] if re.search(r"reasoning.*delta$", event["type"]) else None)
            else:
                found.append(event.get("message", {}).get("thinking"))
        return "".join(each for each in found if each)

    def calls(self, body: bytes) -> dict[str, Any]:
        """Arguments of each tool that was called, by the tool's name."""
        found: dict[str, Any] = {}
        names: dict[int, str] = {}
        pieces: dict[int, str] = {}
        for event in self.events(body):
            if self.client == "messages" and event["type"] == "content_block_start":
                names[event["index"]] = event["content_block"].get("name", "")
            elif self.client == "messages" and "partial_json" in event.get("delta", {}):
                pieces[event["index"]] = pieces.get(event["index"], "") + event["delta"]["partial_json"]
            elif self.client == "responses" and event["type"] == "response.output_item.done":
                if event["item"]["type"] == "function_call":
                    found[event["item"]["name"]] = json.loads(event["item"]["arguments"])
            elif self.client == "ollama_chat":
                called = [each["function"] for each in event["message"].get("tool_calls", ())]
                found |= {each["name"]: each["arguments"] for each in called}
        return found | {names[index]: json.loads(text) for index, text in pieces.items()}

    def succeeded(self, body: bytes) -> bool:
        """Whether the mark of success is there."""
        if self.client == "chat":
            return b"data: [DONE]" in body
        kinds = {"messages": "message_stop", "responses": "response.completed"}
        kind = kinds.get(self.client)
        return any(event.get("type") == kind if kind else event.get("done") for event in self.events(body))

    def errors(self, body: bytes) -> list[Any]:
        """The error events, as the client's own SDK knows them."""
        if self.client in ("messages", "responses"):
            return [event for event in self.events(body) if event["type"] == "error"]
        return [event for event in self.events(body) if "error" in event]

    def code(self, reply: Reply) -> str:
        """The code of an error that is the whole answer; its shape must be the dialect's."""
        assert reply.headers["content-type"] == "application/json"
        told = reply.json
        if self.client.startswith("ollama"):
            assert isinstance(told["error"], str)
            return str(told["code"])
        assert {"message", "type"} <= told["error"].keys()
        assert self.client != "messages" or told["type"] == "error"
        return str(told["error"]["code"])

    def models(self, body: bytes) -> set[str]:
        """Every name of a model that the client is shown."""
        inner = [event.get("message" if self.client == "messages" else "response") for event in self.events(body)]
        holders = [*self.events(body), *(each for each in inner if isinstance(each, dict))]
        return {each["model"] for each in holders if "model" in each}


CASES = (
    Case("messages", "messages"),
    Case("messages", "chat"),
    Case("responses", "responses"),
    Case("responses", "chat"),
    Case("responses", "messages"),
    Case("chat", "messages"),
    Case("ollama_chat", "ollama_chat"),
    Case("ollama_chat", "chat"),
    Case("ollama_generate", "ollama_generate"),
    Case("ollama_generate", "chat"),
)
"""Chat on chat is what tests/http is about."""
