"""Ollama's Python client: chat, whole and streamed, generate and the list of models."""

from __future__ import annotations

import sys
from typing import Any

import file_tools
from ollama import Client

TOOLS: Any = [{"type": "function", "function": tool} for tool in file_tools.TOOLS]


def chat(client: Client, model: str, streamed: bool) -> tuple[str, int, int]:
    messages: list[Any] = [{"role": "user", "content": file_tools.TASK}]
    while True:
        said: dict[str, Any] = {"role": "assistant", "content": ""}
        calls: list[Any] = []
        given = client.chat(model=model, messages=messages, tools=TOOLS, stream=streamed)
        last: Any = None
        for last in given if streamed else [given]:
            said["content"] += last.message.content or ""
            calls += last.message.tool_calls or []
        assert last.done, "the stream has no last line"
        messages.append({**said, "tool_calls": [call.model_dump() for call in calls]} if calls else said)
        if not calls:
            return said["content"], last.prompt_eval_count, last.eval_count
        for call in calls:
            result = file_tools.run(call.function.name, dict(call.function.arguments))
            messages.append({"role": "tool", "tool_name": call.function.name, "content": result})


def main(base: str, model: str) -> None:
    client = Client(host=base, timeout=30)
    assert model in [each.model for each in client.list().models], client.list()
    assert client.show(model).capabilities, client.show(model)
    told = client.generate(model=model, prompt="Are you there?")
    assert told.done, told
    assert told.response, told
    for streamed in (False, True):
        with file_tools.way("chat-streamed" if streamed else "chat-whole") as report:
            report(*chat(client, model, streamed))


main(*sys.argv[1:])
