"""A body whose answer goes on from what the client has: as tokens after the prompt's, or as a message left open."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gateway.wire.chat_request import ChatRequest
from gateway.wire.members import Member

__all__ = ["after_text", "after_tokens", "floor_edits"]

_OPEN = {"continue_final_message": b"true", "add_generation_prompt": b"false"}
_PROMPT = {"chat": "messages", "completions": "prompt"}
_OF_CHATS = (
    "messages", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "chat_template",
    "chat_template_kwargs", "reasoning_format", "reasoning_effort", "response_format", "logprobs", "top_logprobs",
    "max_completion_tokens", "add_generation_prompt", "continue_final_message", "documents", "modalities", "audio",
)  # fmt: skip
"""Members of a chat body that a text completion has not, or takes for something else."""


class _Message(msgspec.Struct):
    role: str = ""


_MESSAGES = msgspec.json.Decoder(list[_Message])


def after_text(surface: str, body: bytes, found: Sequence[Member], text: str) -> dict[str, bytes | None] | None:
    """Top-level edits of a body of `surface`; None where its prompt has no place for `text`.

    That is so where the client itself left the last message open, or where the prompt is token ids.
    """
    member = next((each for each in found if each.key == _PROMPT[surface]), None)
    if member is None:
        return None
    raw = body[member.value_start : member.value_end]
    if surface == "completions":
        return {"prompt": raw[:-1] + msgspec.json.encode(text)[1:]} if raw.startswith(b'"') else None
    if not _leaves_to_the_model(raw):
        return None
    said = msgspec.json.encode({"role": "assistant", "content": text})
    return {"messages": raw[:-1] + b"," + said + b"]", **_OPEN}


def _leaves_to_the_model(messages: bytes) -> bool:
    """Whether the answer to these messages (raw JSON) begins a message of its own."""
    try:
        found = _MESSAGES.decode(messages)
    except msgspec.MsgspecError:
        return False
    return bool(found) and found[-1].role != "assistant"


def after_tokens(prompt: bytes, left: int | None) -> dict[str, bytes | None]:
    """The same for a text completion of the raw JSON `prompt`, which holds the answer so far; `left`: tokens of it."""
    budget = None if left is None else str(left).encode()
    return {**dict.fromkeys(_OF_CHATS), "prompt": prompt, "n_predict": None, "max_tokens": budget}


def floor_edits(chat: ChatRequest, given: int, left: int | None) -> dict[str, bytes | None]:
    """What is left of the least tokens that the client asked for, with `left` of the most."""
    edits: dict[str, bytes | None] = {}
    for name, least in chat.floors:
        floor = max(0, int(least) - given)
        edits[name] = str(floor if left is None else min(floor, left)).encode()
    return edits
