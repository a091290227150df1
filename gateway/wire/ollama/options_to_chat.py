"""Ollama's `options` as members of a chat or text completions body."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.chat_request import MAX_TOKENS
from gateway.wire.raw_members import encode, first_byte, is_null, read, read_members

__all__ = ["chat_options"]

_SAME = ("temperature", "top_p", "min_p", "typical_p", "presence_penalty", "frequency_penalty")
"""Under their own names everywhere. Ollama's defaults (temperature 0.8, top_k 40, ...) belong to its model files: what
the client leaves open stays open to the engine's."""
_INTEGERS = ("top_k", "repeat_last_n")
_MOST = 2**31 - 1
"""Engines keep these in signed 32-bit integers."""

_NUMBER = msgspec.json.Decoder(int | float)
_STRING = msgspec.json.Decoder(str)
_STRINGS: msgspec.json.Decoder[list[str]] = msgspec.json.Decoder(list[str])


def chat_options(raw: msgspec.Raw) -> dict[str, bytes]:
    """The members that say the same, by name.

    `num_predict` becomes `max_tokens`; there 0 and less (-1, -2) mean no limit. `repeat_penalty` is said under the
    names of llama.cpp and of vLLM and SGLang. A seed below 0 is none. Whole numbers may come as `1.0`, and a fraction
    is cut off, as there. Left out: what loads a model (num_ctx, num_gpu, ...), num_keep, and options of old servers
    (mirostat, tfs_z, penalize_newline). Raises MalformedRequest with `param`.
    """
    if is_null(raw):
        return {}
    if first_byte(raw) != b"{":
        raise MalformedRequest("options must be an object", param="options")
    try:
        options = read_members(bytes(raw))
    except MalformedRequest as error:
        raise MalformedRequest(f"options: {error.message}", param="options", code=error.code) from None
    found: dict[str, bytes] = {}
    for name in _SAME:
        if name in options:
            _number(options, name)
            found[name] = bytes(options[name])
    for name in _INTEGERS:
        if name in options:
            found[name] = b"%d" % _whole(options, name)
    if "repeat_penalty" in options:
        _number(options, "repeat_penalty")
        found["repeat_penalty"] = found["repetition_penalty"] = bytes(options["repeat_penalty"])
    if "seed" in options and (seed := _whole(options, "seed")) >= 0:
        found["seed"] = b"%d" % seed
    if "num_predict" in options and 0 < (limit := _whole(options, "num_predict")) < MAX_TOKENS:
        found["max_tokens"] = b"%d" % limit
    if "stop" in options and (stops := _stops(options["stop"])):
        found["stop"] = encode(stops)
    return found


def _number(options: dict[str, msgspec.Raw], name: str) -> float:
    return read(_NUMBER, options[name], f"options.{name}")


def _whole(options: dict[str, msgspec.Raw], name: str) -> int:
    return int(min(max(_number(options, name), -_MOST), _MOST))


def _stops(raw: msgspec.Raw) -> list[str]:
    if first_byte(raw) == b'"':  # Ollama refuses it, but it can't mean anything else
        found = [read(_STRING, raw, "options.stop")]
    else:
        found = read(_STRINGS, raw, "options.stop")
    return [stop for stop in found if stop]
