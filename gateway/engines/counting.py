"""How engines count the tokens of a prompt: what to ask, and what the answer says, without any I/O.

A counting is a generator: it yields what to ask next, is sent the answer, and returns the tokens, or None where the
answer tells none. Nothing that is asked here generates a token or loads a model; engines answer it beside what they
generate (llama.cpp in 12 ms during a prefill, vLLM in its API process).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias

import msgspec

from gateway.engines.told import Answer, Probe
from gateway.wire.members import members

__all__ = [
    "ABSENT",
    "Counting",
    "Rendering",
    "anthropic_count",
    "asked_whole",
    "length_of",
    "picked",
    "tokens_of",
    "told_as",
]

Counting: TypeAlias = Generator[Probe, Answer, int | None]
Rendering: TypeAlias = Generator[Probe, Answer, bytes | None]
"""The same for the tokens themselves, as a JSON array."""

ABSENT = frozenset((404, 405, 501))
"""Statuses of a server that has no such route."""
ANTHROPIC_MEMBERS = ("messages", "system", "tools", "tool_choice", "thinking", "output_config", "mcp_servers")
"""What Anthropic's API takes in a count of tokens, beside the model; it refuses what it does not know."""
_MOST = 2**31


class _Told(msgspec.Struct):
    count: int | None = None
    input_tokens: int | None = None
    tokens: msgspec.Raw = msgspec.Raw()


_TOLD = msgspec.json.Decoder(_Told)
_TOKENS = msgspec.json.Decoder(list[msgspec.Raw])


def picked(body: bytes, names: tuple[str, ...], **more: bytes) -> bytes:
    """A JSON object of those members of `body`, byte for byte, and `more` as raw JSON.

    Raises MalformedRequest when `body` is no object. Of a member that comes twice the last counts.
    """
    found = {member.key: body[member.value_start : member.value_end] for member in members(body) if member.key in names}
    pairs = [msgspec.json.encode(name) + b":" + value for name, value in {**found, **more}.items()]
    return b"{" + b",".join(pairs) + b"}"


def told_as(answer: Answer) -> int | None:
    """The `count` or `input_tokens` of an answer with 200, else None."""
    told = _read(answer)
    if told is None:
        return None
    found = told.count if told.count is not None else told.input_tokens
    return found if found is not None and 0 < found < _MOST else None


def tokens_of(answer: Answer) -> bytes | None:
    """The `tokens` that an answer with 200 lists, as raw JSON, else None."""
    told = _read(answer)
    return bytes(told.tokens) if told is not None and bytes(told.tokens).startswith(b"[") else None


def length_of(answer: Answer) -> int | None:
    """How many `tokens` an answer with 200 lists, else None."""
    tokens = tokens_of(answer)
    if tokens is None:
        return None
    try:
        return len(_TOKENS.decode(tokens)) or None
    except msgspec.MsgspecError:
        return None


def asked_whole(path: str, body: bytes) -> Counting:
    """Ask with the body as it is; the answer tells `input_tokens` or `count`."""
    return told_as((yield Probe("POST", path, body)))


def anthropic_count(path: str, body: bytes, served_as: str, headers: tuple[tuple[str, str], ...] = ()) -> Counting:
    """Ask as Anthropic's API is asked for the tokens of a message."""
    asked = picked(body, ANTHROPIC_MEMBERS, model=msgspec.json.encode(served_as))
    return told_as((yield Probe("POST", path, asked, headers)))


def _read(answer: Answer) -> _Told | None:
    if answer.status != 200:
        return None
    try:
        return _TOLD.decode(answer.body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
