"""OpenAI's Python SDK: chat completions and responses, whole and streamed."""

from __future__ import annotations

import json
import sys
from typing import Any

import file_tools
from openai import OpenAI

CHAT_TOOLS: Any = [{"type": "function", "function": tool} for tool in file_tools.TOOLS]
RESPONSE_TOOLS: Any = [{"type": "function", "strict": False, **tool} for tool in file_tools.TOOLS]


def chat(client: OpenAI, model: str, streamed: bool) -> tuple[str, int, int]:
    messages: list[Any] = [
        {"role": "system", "content": "You work on files."},
        {"role": "user", "content": file_tools.TASK},
    ]
    while True:
        if streamed:
            asked: Any = {"stream_options": {"include_usage": True}}
            with client.chat.completions.stream(model=model, messages=messages, tools=CHAT_TOOLS, **asked) as stream:
                for _ in stream:
                    pass
                answer: Any = stream.get_final_completion()
        else:
            answer = client.chat.completions.create(model=model, messages=messages, tools=CHAT_TOOLS)
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        if answer.choices[0].finish_reason != "tool_calls":
            return message.content, answer.usage.prompt_tokens, answer.usage.completion_tokens
        for call in message.tool_calls:
            result = file_tools.run(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def responses(client: OpenAI, model: str, streamed: bool) -> tuple[str, int, int]:
    items: list[Any] = [{"role": "user", "content": file_tools.TASK}]
    common: Any = {"model": model, "instructions": "You work on files.", "tools": RESPONSE_TOOLS, "store": False}
    while True:
        if streamed:
            with client.responses.stream(input=items, **common) as stream:
                for _ in stream:
                    pass
                answer: Any = stream.get_final_response()
        else:
            answer = client.responses.create(input=items, **common)
        items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output]
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return answer.output_text, answer.usage.input_tokens, answer.usage.output_tokens
        for call in calls:
            result = file_tools.run(call.name, json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})


def main(base: str, model: str) -> None:
    client = OpenAI(base_url=f"{base}/v1", api_key="sk-none", max_retries=0, timeout=30)
    for ask in (chat, responses):
        for streamed in (False, True):
            with file_tools.way(f"{ask.__name__}-{'streamed' if streamed else 'whole'}") as report:
                report(*ask(client, model, streamed))


main(*sys.argv[1:])
