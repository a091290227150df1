"""How llama.cpp's server counts a prompt: in one step where the build has it, else as the two steps that it takes.

Checked on b11549, running: all ways agree with the `prompt_tokens` of the answer.
"""

from __future__ import annotations

import msgspec

from gateway.engines.counting import ABSENT, Counting, Rendering, length_of, picked, tokens_of, told_as
from gateway.engines.told import Answer, Probe
from gateway.wire.splice import splice

__all__ = ["counted", "rendered"]

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
    text = _template((yield _templated(body)))
    return (yield from _tokenized(text)) if text is not None else None


def rendered(surface: str, body: bytes) -> Rendering | None:
    """The tokens of the prompt in a body of that surface; None for one of which there is no prompt, or several."""
    if surface == "completions":
        text = picked(body, ("prompt",))[len(b'{"prompt":') : -1]
        return _listed(text) if text.startswith(b'"') else None
    return _rendered(body) if surface == "chat" else None


def _rendered(body: bytes) -> Rendering:
    text = _template((yield _templated(body)))
    return (yield from _listed(text)) if text is not None else None


def _templated(body: bytes) -> Probe:
    return Probe("POST", "/apply-template", picked(body, _TEMPLATED))


def _template(answer: Answer) -> bytes | None:
    """The prompt that it tells, as a JSON string."""
    if answer.status != 200:
        return None
    try:
        text = bytes(_RENDERED.decode(answer.body).prompt)
    except msgspec.MsgspecError:
        return None
    return text if text.startswith(b'"') else None


def _tokenized(text: bytes) -> Counting:
    return length_of((yield _asked(text)))


def _listed(text: bytes) -> Rendering:
    return tokens_of((yield _asked(text)))


def _asked(text: bytes) -> Probe:
    """Tokenize a JSON string as a prompt is: with the model's own first token, and special tokens read as such."""
    return Probe("POST", "/tokenize", b'{"add_special":true,"parse_special":true,"content":' + text + b"}")
