"""Streamed answers, put together from their events as the SDKs do."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.clients.answers.said import Said, arguments_of, check_event, need
from tests.clients.answers.whole import messages, responses

__all__ = ["chat_chunks", "completion_chunks", "message_events", "ollama_lines", "response_events"]


def _validated(surface: str, events: Iterable[Any]) -> list[Any]:
    found = list(events)
    need(found, "no events")
    for event in found:
        check_event(surface, event)
    return found


def chat_chunks(events: list[Any]) -> Said:
    found, reason = Said(), None
    parts: dict[int, tuple[str, str]] = {}
    for event in _validated("chat", events):
        if event.get("usage"):
            found.usage = (event["usage"]["prompt_tokens"], event["usage"]["completion_tokens"])
        for choice in event["choices"]:
            need(reason is None, "a delta after the reason to end")
            delta, reason = choice["delta"], choice["finish_reason"]
            found.text += delta.get("content") or ""
            found.thought += delta.get("reasoning_content") or delta.get("reasoning") or ""
            for call in delta.get("tool_calls") or ():
                name, arguments = parts.get(call["index"], ("", ""))
                told = call["function"]
                parts[call["index"]] = (name + (told.get("name") or ""), arguments + (told.get("arguments") or ""))
    found.calls = [(name, arguments_of(arguments)) for _, (name, arguments) in sorted(parts.items())]
    need(reason == ("tool_calls" if found.calls else "stop"), f"finish_reason {reason}")
    return found


def completion_chunks(events: list[Any]) -> Said:
    found = Said()
    for event in events:
        found.text += "".join(choice["text"] for choice in event["choices"])
    need(any(c["finish_reason"] for event in events for c in event["choices"]), "no reason to end")
    return found


def response_events(events: list[Any]) -> Said:
    events = _validated("responses", events)
    need([event["sequence_number"] for event in events] == list(range(len(events))), "sequence numbers")
    need(events[0]["type"] == "response.created", f"the first event is {events[0]['type']}")
    need(events[-1]["type"] == "response.completed", f"the last event is {events[-1]['type']}")
    deltas: dict[str, str] = {}
    for event in events:
        if event["type"].endswith(".delta"):
            deltas[event["item_id"]] = deltas.get(event["item_id"], "") + event["delta"]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    need(done == events[-1]["response"]["output"], "the items of the end are not those that were done")
    for item in done:
        parts = item.get("content") or item.get("summary") or ()
        told = item["arguments"] if item["type"] == "function_call" else "".join(part["text"] for part in parts)
        need(deltas.get(item["id"], "") == told, f"the deltas of {item['id']} do not add up")
    return responses(events[-1]["response"])


def message_events(events: list[Any]) -> Said:
    events = _validated("messages", events)
    need(events[0]["type"] == "message_start", f"the first event is {events[0]['type']}")
    need(events[-1]["type"] == "message_stop", f"the last event is {events[-1]['type']}")
    message = json.loads(json.dumps(events[0]["message"]))
    open_block: int | None = None
    for event in events[1:-1]:
        kind = event["type"]
        if kind == "content_block_start":
            need(open_block is None and event["index"] == len(message["content"]), "a block starts out of turn")
            open_block = event["index"]
            message["content"].append({**event["content_block"], "_json": ""})
        elif kind == "content_block_delta":
            need(event["index"] == open_block, "a delta of a block that is not open")
            _add(message["content"][-1], event["delta"])
        elif kind == "content_block_stop":
            need(event["index"] == open_block, "a block stops that is not open")
            open_block, block = None, message["content"][-1]
            written = block.pop("_json")
            if block["type"] == "tool_use":
                block["input"] = arguments_of(written or "{}")
        else:
            message["stop_reason"] = event["delta"]["stop_reason"]
            message["usage"] |= {name: value for name, value in event["usage"].items() if value is not None}
    need(open_block is None, "a block is left open")
    return messages(message)


def _add(block: Any, delta: Any) -> None:
    for kind, member in (("text_delta", "text"), ("thinking_delta", "thinking"), ("signature_delta", "signature")):
        if delta["type"] == kind:
            block[member] = block.get(member, "") + delta[member]
            return
    block["_json"] += delta["partial_json"]


def ollama_lines(lines: list[Any]) -> Said:
    need([line["done"] for line in lines] == [False] * (len(lines) - 1) + [True], "only the last line is the end")
    found = Said(usage=(lines[-1]["prompt_eval_count"], lines[-1]["eval_count"]))
    for line in lines:
        check_event("ollama_chat" if "message" in line else "ollama_generate", line)
        message = line.get("message") or {"content": line["response"], "thinking": line.get("thinking")}
        found.text += message["content"]
        found.thought += message.get("thinking") or ""
        calls = [call["function"] for call in message.get("tool_calls") or ()]
        found.calls += [(call["name"], call["arguments"]) for call in calls]
    return found
