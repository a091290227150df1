"""Renders a conversation as its model's chat template does, so that a local tokenizer counts what the engine would.

Templates are Jinja, in the dialect of Hugging Face's `apply_chat_template` (trimmed blocks, `raise_exception`,
`strftime_now`, loop controls, `generation` marks), and run in Jinja's sandbox. Messages are given to them as vLLM gives
them: contents joined to one text unless the template walks over parts, arguments of tool calls as objects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

import msgspec

from gateway import clock

__all__ = ["ChatTemplate", "NotRendered"]

_WALKS_PARTS = re.compile(
    r"for\s+\w+\s+in\s+\w+(?:\.content|\[['\"]content['\"]\])|(?:content|\[['\"]content['\"]\])\s+is\s+(?:not\s+)?string"
)
"""A template that takes contents as lists of parts."""


class NotRendered(Exception):
    """The template does not take this conversation; an engine would refuse it too."""


class ChatTemplate:
    """One template, compiled. `tokens` are the special tokens that it may name: bos_token, eos_token ..."""

    def __init__(self, source: str, tokens: Mapping[str, str]) -> None:
        """Raises NotRendered for what is no template, ImportError without Jinja."""
        from jinja2 import TemplateError
        from jinja2.ext import Extension, loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        class Generation(Extension):
            """Marks of what the assistant said: what they enclose is rendered."""

            tags = {"generation"}  # noqa: RUF012 - as Jinja has it

            def parse(self, parser: Any) -> Any:
                next(parser.stream)
                return parser.parse_statements(("name:endgeneration",), drop_needle=True)

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation]
        )
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = _today
        self._error = TemplateError
        self._tokens = dict(tokens)
        self._parts = _WALKS_PARTS.search(source) is not None
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise NotRendered(f"not a chat template: {error}") from None

    def render(self, body: Mapping[str, Any]) -> str:
        """The prompt that a body of /v1/chat/completions becomes. Raises NotRendered."""
        more = body.get("chat_template_kwargs")
        variables = {
            "add_generation_prompt": body.get("add_generation_prompt", True),
            "tools": body.get("tools") or None,
            "documents": body.get("documents"),
            **self._tokens,
            **(more if isinstance(more, dict) else {}),
        }
        if body.get("reasoning_effort") is not None:
            variables.setdefault("reasoning_effort", body["reasoning_effort"])
        try:
            messages = [_message(message, self._parts) for message in body["messages"]]
            return self._template.render(messages=messages, **variables)
        except NotRendered:
            raise
        except (self._error, TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise NotRendered(type(error).__name__) from None


def _message(message: Mapping[str, Any], parts: bool) -> dict[str, Any]:
    given = dict(message)
    content = given.get("content")
    if content is None:
        given["content"] = "" if not parts else []
    elif isinstance(content, list) and not parts:
        given["content"] = "\n".join(_text(part) for part in content)
    calls = given.get("tool_calls")
    if isinstance(calls, list):
        given["tool_calls"] = [_call(call) for call in calls]
    elif "tool_calls" in given:
        del given["tool_calls"]
    return given


def _text(part: Any) -> str:
    if isinstance(part, str):
        return part
    found = part.get("text", part.get("refusal")) if isinstance(part, dict) else None
    if not isinstance(found, str):
        raise NotRendered("a part without text")
    return found


def _call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        return call
    try:
        arguments = msgspec.json.decode(function["arguments"] or "{}")
    except msgspec.MsgspecError:
        return call
    return {**call, "function": {**function, "arguments": arguments}}


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, **_more: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _raise(message: str) -> NoReturn:
    raise NotRendered(message[:200])


def _today(form: str) -> str:
    return datetime.fromtimestamp(clock.wall()).strftime(form)
