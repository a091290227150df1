"""A whole chat or text completions answer as one of /api/chat or /api/generate."""

from __future__ import annotations

from gateway.wire.chat_answer import Delta, name_and_arguments, read_chat, text_of, usage_in
from gateway.wire.ollama.asked import Asked
from gateway.wire.ollama.done_reason import done_reason
from gateway.wire.ollama.logprobs import ollama_logprobs
from gateway.wire.ollama.tool_calls import ollama_calls
from gateway.wire.ollama.usage import figures
from gateway.wire.ollama.writing import head, json_of, said
from gateway.wire.translation import Stamp
from gateway.wire.usage import usage_of

__all__ = ["answer"]


def answer(body: bytes, context: object, stamp: Stamp) -> bytes:
    """The first choice; `context` is the `Asked` that the request's translation gave.

    `context`, the tokens that old clients send back, is not told. Raises StreamBroken for what is no answer.
    """
    generate = isinstance(context, Asked) and context.generate
    told, choice = read_chat(body)
    message = choice.message or Delta(content=choice.text)
    calls = ollama_calls(message.calls, choice.finish_reason, stamp.id, name_and_arguments)
    text = text_of(message.content) or message.refusal or ""
    thought = message.reasoning_content or message.reasoning or ""
    out = {**head(stamp), **said(generate, text, thought, calls), "done": True}
    out["done_reason"] = done_reason(choice.finish_reason)
    probabilities = ollama_logprobs(choice.logprobs)
    if probabilities:
        out["logprobs"] = probabilities
    return json_of({**out, **figures(usage_of(usage_in(told)))})
