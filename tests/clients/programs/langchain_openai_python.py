"""LangChain over OpenAI's SDK: chat completions and responses, whole and streamed."""

from __future__ import annotations

import sys
from typing import Any

import file_tools
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI

TOOLS: Any = [{"type": "function", "function": tool} for tool in file_tools.TOOLS]


def chat(model: Any, streamed: bool) -> tuple[str, int, int]:
    messages: list[Any] = [SystemMessage("You work on files."), HumanMessage(file_tools.TASK)]
    while True:
        if streamed:
            answer: Any = None
            for chunk in model.stream(messages):
                answer = chunk if answer is None else answer + chunk
        else:
            answer = model.invoke(messages)
        messages.append(answer)
        if not answer.tool_calls:
            usage = answer.usage_metadata
            return answer.text, usage["input_tokens"], usage["output_tokens"]
        messages += [
            ToolMessage(file_tools.run(call["name"], call["args"]), tool_call_id=call["id"])
            for call in answer.tool_calls
        ]


def main(base: str, name: str) -> None:
    for surface in ("chat", "responses"):
        model = ChatOpenAI(
            model=name,
            base_url=f"{base}/v1",
            api_key="sk-none",
            max_retries=0,
            timeout=30,
            stream_usage=True,
            use_responses_api=surface == "responses",
        ).bind_tools(TOOLS)
        for streamed in (False, True):
            with file_tools.way(f"{surface}-{'streamed' if streamed else 'whole'}") as report:
                report(*chat(model, streamed))


main(*sys.argv[1:])
