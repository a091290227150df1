"""Anthropic's Python SDK: messages, whole and streamed, and a count of tokens."""

from __future__ import annotations

import sys
from typing import Any

import file_tools
from anthropic import Anthropic

TOOLS: Any = [
    {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
    for tool in file_tools.TOOLS
]


def messages(client: Anthropic, model: str, streamed: bool) -> tuple[str, int, int]:
    history: list[Any] = [{"role": "user", "content": file_tools.TASK}]
    common: Any = {"model": model, "max_tokens": 1000, "system": "You work on files.", "tools": TOOLS}
    while True:
        if streamed:
            with client.messages.stream(messages=history, **common) as stream:
                for _ in stream:
                    pass
                answer = stream.get_final_message()
        else:
            answer = client.messages.create(messages=history, **common)
        history.append(
            {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]}
        )
        if answer.stop_reason != "tool_use":
            text = "".join(block.text for block in answer.content if block.type == "text")
            read = answer.usage.input_tokens + (answer.usage.cache_read_input_tokens or 0)
            return text, read, answer.usage.output_tokens
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": file_tools.run(block.name, dict(block.input))}
            for block in answer.content
            if block.type == "tool_use"
        ]
        history.append({"role": "user", "content": results})


def main(base: str, model: str) -> None:
    client = Anthropic(base_url=base, api_key="sk-none", max_retries=0, timeout=30)
    counted = client.messages.count_tokens(model=model, messages=[{"role": "user", "content": "How long is this?"}])
    assert counted.input_tokens > 0, counted
    assert model in [each.id for each in client.models.list()]
    for streamed in (False, True):
        with file_tools.way("messages-streamed" if streamed else "messages-whole") as report:
            report(*messages(client, model, streamed))


main(*sys.argv[1:])
