"""Whole answers, read by surface."""

from __future__ import annotations

from typing import Any

from tests.clients.answers.said import Ill, Said, arguments_of, need

__all__ = ["chat", "completions", "messages", "responses"]


def chat(value: Any) -> Said:
    (choice,) = value["choices"]
    message, usage = choice["message"], value["usage"]
    calls = [
        (call["function"]["name"], arguments_of(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    need((choice["finish_reason"] == "tool_calls") == bool(calls), f"finish_reason {choice['finish_reason']}")
    return Said(
        message.get("content") or "",
        message.get("reasoning_content") or message.get("reasoning") or "",
        calls,
        (usage["prompt_tokens"], usage["completion_tokens"]),
    )


def completions(value: Any) -> Said:
    usage = value["usage"]
    return Said(value["choices"][0]["text"], usage=(usage["prompt_tokens"], usage["completion_tokens"]))


def responses(value: Any) -> Said:
    need(value["status"] == "completed", f"status {value['status']}")
    found = Said(usage=(value["usage"]["input_tokens"], value["usage"]["output_tokens"]))
    for item in value["output"]:
        if item["type"] == "message":
            found.text += "".join(part["text"] for part in item["content"])
        elif item["type"] == "reasoning":
            found.thought += "".join(part["text"] for part in item.get("content") or item["summary"])
        elif item["type"] == "function_call":
            found.calls.append((item["name"], arguments_of(item["arguments"])))
        else:
            raise Ill(f"an output item of type {item['type']}")
    return found


def messages(value: Any) -> Said:
    usage = value["usage"]
    read = usage["input_tokens"] + (usage.get("cache_read_input_tokens") or 0)
    found = Said(usage=(read, usage["output_tokens"]))
    for block in value["content"]:
        if block["type"] == "tool_use":
            found.calls.append((block["name"], block["input"]))
        else:
            noun = {"text": "text", "thinking": "thinking"}[block["type"]]
            found.text += block["text"] if noun == "text" else ""
            found.thought += block["thinking"] if noun == "thinking" else ""
    need((value["stop_reason"] == "tool_use") == bool(found.calls), f"stop_reason {value['stop_reason']}")
    return found
