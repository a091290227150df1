"""The emulated chat template and tokenizer: messages to bytes, bytes to tokens of four.

Every message is a 16-byte header and its text, padded to whole tokens, and the answer follows a header of its own. An
answer that comes back as an assistant message therefore renders to the bytes that were generated, so that the next turn
of a conversation finds its past in the prefix cache.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import msgspec

from gateway.sim.text import BYTES_PER_TOKEN

__all__ = ["HEADER_TOKENS", "Message", "begun", "render_chat", "render_prompt", "token_ids", "whole_ids"]

HEADER_TOKENS = 4
"""Tokens that the template adds to each message."""
VOCABULARY = 151_936


class Message(msgspec.Struct):
    """The fields of a chat message that the template renders."""

    role: str
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[Any] | None = None


def render_chat(messages: Iterable[Message], tools: object = None) -> bytes:
    """The prompt of a conversation, generation header included; always whole tokens."""
    parts = [_padded(msgspec.json.encode(tools))] if tools else []
    for message in messages:
        parts.append(_header(message.role))
        parts.append(_padded(_text(message).encode()))
    parts.append(_header("assistant"))
    return b"".join(parts)


def begun(prompt: bytes) -> tuple[bytes, str]:
    """A prompt up to its last answer, and how that begins where the prompt ends in the middle of it; else nothing."""
    header = _header("assistant")
    at = prompt.rfind(header)
    end = at + len(header)
    if at < 0 or end == len(prompt):
        return prompt, ""
    try:
        return prompt[:end], prompt[end:].rstrip(b"\0").decode("ascii")
    except UnicodeDecodeError:
        return prompt, ""


def render_prompt(prompt: str | list[int]) -> bytes:
    """A plain prompt, given as text or as token ids."""
    if isinstance(prompt, str):
        return _padded(prompt.encode())
    return struct.pack(f"<{len(prompt)}I", *(ident & 0xFFFFFFFF for ident in prompt))


def token_ids(rendered: bytes) -> list[int]:
    """Ids of the tokens; equal text has equal ids, though not the other way round."""
    return [ident % VOCABULARY for ident in struct.unpack(f"<{len(rendered) // BYTES_PER_TOKEN}I", rendered)]


def whole_ids(rendered: bytes) -> list[int]:
    """Ids of the tokens from which `render_prompt` makes the same bytes, unlike those of a vocabulary."""
    whole = rendered + b"\0" * (-len(rendered) % BYTES_PER_TOKEN)
    return list(struct.unpack(f"<{len(whole) // BYTES_PER_TOKEN}I", whole))


def _header(role: str) -> bytes:
    size = HEADER_TOKENS * BYTES_PER_TOKEN
    return f"<|{role}|>".encode()[:size].ljust(size, b"\0")


def _padded(text: bytes) -> bytes:
    return text + b"\0" * (-len(text) % BYTES_PER_TOKEN)


def _text(message: Message) -> str:
    content = message.content or ""
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content)
    return content + (msgspec.json.encode(message.tool_calls).decode() if message.tool_calls else "")
