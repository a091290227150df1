"""One request on each API and what its client reads of the answer.

A case is what the client speaks and what the engine speaks: the same (bytes pass through) or another (translated).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from gateway.wire.surfaces import SURFACES
from tests.edge.wire_client import Reply
from tests.relay.fake_engine import Script
from tests.shell.engine_double import EngineDouble
from tests.shell.surface_engines import SPOKEN, Spoken, engine, stream

__all__ = ["CASES", "Case"]


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
