"""Sampling members of a chat body as Ollama's `options`."""

from __future__ import annotations

import msgspec

from gateway.wire.raw_members import encode, first_byte, read

__all__ = ["ollama_options"]

_NAMES = {
    "temperature": "temperature",
    "top_p": "top_p",
    "min_p": "min_p",
    "typical_p": "typical_p",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "repetition_penalty": "repeat_penalty",
    "repeat_penalty": "repeat_penalty",
}
_INTEGERS = ("top_k", "repeat_last_n", "seed")
_BUDGETS = ("max_completion_tokens", "max_tokens", "n_predict")
_MOST = 2**31 - 1

_NUMBER = msgspec.json.Decoder(int | float)
_STRING = msgspec.json.Decoder(str)
_STRINGS: msgspec.json.Decoder[list[str]] = msgspec.json.Decoder(list[str])


def ollama_options(members: dict[str, msgspec.Raw]) -> dict[str, bytes]:
    """The options that say the same, by name; what the client leaves open stays open to the model's file.

    A budget of 0 tokens becomes 1: 0 is no limit there. Raises MalformedRequest with `param`.
    """
    found: dict[str, bytes] = {}
    for name, option in _NAMES.items():
        if name in members:
            read(_NUMBER, members[name], name)
            found[option] = bytes(members[name])
    for name in _INTEGERS:
        if name in members:
            found[name] = b"%d" % _whole(members, name)
    for name in _BUDGETS:
        if name in members:
            limit = _whole(members, name)
            if limit >= 0:
                found["num_predict"] = b"%d" % max(limit, 1)
            break
    if "stop" in members:
        raw = members["stop"]
        stops = [read(_STRING, raw, "stop")] if first_byte(raw) == b'"' else read(_STRINGS, raw, "stop")
        if stops:
            found["stop"] = encode(stops)
    return found


def _whole(members: dict[str, msgspec.Raw], name: str) -> int:
    return int(min(max(read(_NUMBER, members[name], name), -_MOST), _MOST))
