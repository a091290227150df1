"""What is read of Ollama's answers, whole or a line of a stream."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.engine_json import read_engine
from gateway.wire.ollama.usage import usage_of
from gateway.wire.usage import Usage

__all__ = ["Answer", "Call", "Function", "Said", "calls_in", "read_ollama", "said_in", "usage_told"]


class Function(msgspec.Struct, gc=False):
    """The function that is called."""

    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw(b"")


class Call(msgspec.Struct, gc=False):
    """One tool call, whole."""

    function: Function
    id: str | None = None


class Said(msgspec.Struct, gc=False):
    """A message, or a piece of one."""

    content: str | None = None
    thinking: str | None = None
    tool_calls: list[Call] | None = None


class Answer(msgspec.Struct, gc=False):
    """An answer of /api/chat (`message`) or /api/generate (`response`), or a line of one."""

    message: Said | None = None
    response: str | None = None
    thinking: str | None = None
    done: bool = False
    done_reason: str | None = None
    logprobs: Any = None
    error: Any = None
    prompt_eval_count: Any = None
    prompt_eval_cached_count: Any = None
    prompt_eval_duration: Any = None
    eval_count: Any = None
    eval_duration: Any = None


_ANSWER = msgspec.json.Decoder(Answer)
_WHAT = "answer of Ollama's"


def read_ollama(data: bytes) -> Answer:
    """Decode an answer or a line. Raises StreamBroken for what is none, or an error."""
    answer = read_engine(_ANSWER, data, _WHAT)
    if answer.error:
        raise StreamBroken("the engine sent an error in place of an answer")
    if answer.message is None and answer.response is None and not answer.done:  # the last line may say nothing
        raise StreamBroken(f"the engine sent what is no {_WHAT}")
    return answer


def said_in(answer: Answer) -> tuple[str, str]:
    """The text and the thinking."""
    message = answer.message
    if message is not None:
        return message.content or "", message.thinking or ""
    return answer.response or "", answer.thinking or ""


def calls_in(answer: Answer, first: int, made: str) -> list[dict[str, Any]]:
    """The tool calls as those of chat, numbered from `first`; `made` is what missing ids are made of.

    Raises StreamBroken for one without a name or with arguments that are no object.
    """
    found: list[dict[str, Any]] = []
    calls = answer.message.tool_calls if answer.message is not None else None
    for index, call in enumerate(calls or (), first):
        name, arguments = call.function.name, bytes(call.function.arguments)
        if not name or (arguments and not arguments.startswith((b"{", b"n"))):
            raise StreamBroken("the engine sent a tool call that is none")
        text = arguments.decode("utf-8", "replace") if arguments.startswith(b"{") else "{}"
        function = {"name": name, "arguments": text}
        found.append({"id": call.id or f"call_{made}_{index}", "type": "function", "function": function})
    return found


def usage_told(answer: Answer) -> Usage | None:
    """What it cost."""
    return usage_of(msgspec.structs.asdict(answer))
