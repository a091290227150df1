"""How llama.cpp's server counts a prompt: in one step where the build has it, else as the two steps that it takes.

Checked on b11549, running: all ways agree with the `prompt_tokens` of the answer.
"""

from __future__ import annotations

import msgspec

from gateway.engines.counting import ABSENT, Counting, length_of, picked, told_as
from gateway.engines.told import Probe
from gateway.wire.splice import splice

__all__ = ["counted"]

_WHOLE = {
    "chat": "/v1/chat/completions/input_tokens",
    "messages": "/v1/messages/count_tokens",
    "responses": "/v1/responses/input_tokens",
}
"""Routes that take the whole body of a surface. The first and the last came with builds of 2026."""
_TEMPLATED = ("messages", "tools", "tool_choice", "chat_template_kwargs", "reasoning_format", "add_generation_prompt")


class _Rendered(msgspec.Struct):
    prompt: msgspec.Raw = msgspec.Raw()


_RENDERED = msgspec.json.Decoder(_Rendered)


def counted(surface: str, body: bytes, served_as: str) -> Counting | None:
    """Count the prompt in a body of that surface; None for one of which there is no prompt, or several."""
    if surface == "completions":
        text = picked(body, ("prompt",))[len(b'{"prompt":') : -1]
        return _tokenized(text) if text.startswith(b'"') else None
    path = _WHOLE.get(surface)
    if path is None:
        return None
    model = msgspec.json.encode(served_as)
    return _counted(surface, path, splice(body, {"model": model, "stream": None, "stream_options": None}))


def _counted(surface: str, path: str, body: bytes) -> Counting:
    answer = yield Probe("POST", path, body)
    if surface != "chat" or answer.status not in ABSENT:
        return told_as(answer)
    answer = yield Probe("POST", "/apply-template", picked(body, _TEMPLATED))
    if answer.status != 200:
        return None
    try:
        text = bytes(_RENDERED.decode(answer.body).prompt)
    except msgspec.MsgspecError:
        return None
    return (yield from _tokenized(text)) if text.startswith(b'"') else None


def _tokenized(text: bytes) -> Counting:
    """Tokenize a JSON string as a prompt is: with the model's own first token, and special tokens read as such."""
    asked = b'{"add_special":true,"parse_special":true,"content":' + text + b"}"
    return length_of((yield Probe("POST", "/tokenize", asked)))
