"""The members of chat and completion bodies that kvgate reads, typed; all others pass unread.

Members that templates render but that clients shape freely stay raw, so that an odd one is the engine's to judge.
What comes by the thousand is kept from the garbage collector (`gc=False`): it holds no cycles, and a long conversation
would set off one collection after another.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["NOTHING", "Call", "Chat", "Completion", "Message", "Part"]

NOTHING = msgspec.Raw(b"")
"""An absent raw member; compare with `is`."""


class Part(msgspec.Struct, gc=False):
    """One part of a message's content."""

    type: str = "text"
    text: str | None = None
    refusal: str | None = None
    image_url: msgspec.Raw = NOTHING
    image: msgspec.Raw = NOTHING
    input_audio: msgspec.Raw = NOTHING
    audio_url: msgspec.Raw = NOTHING
    video_url: msgspec.Raw = NOTHING
    file: msgspec.Raw = NOTHING


class Function(msgspec.Struct, gc=False):
    """The function of a tool call."""

    name: str = ""
    arguments: msgspec.Raw = NOTHING


class Call(msgspec.Struct, gc=False):
    """One tool call of an assistant's message."""

    function: Function


class Message(msgspec.Struct, gc=False):
    """One message of a conversation."""

    role: str
    content: str | list[Part | str] | None = None
    name: msgspec.Raw = NOTHING
    tool_calls: msgspec.Raw = NOTHING
    function_call: msgspec.Raw = NOTHING
    reasoning_content: msgspec.Raw = NOTHING
    reasoning: msgspec.Raw = NOTHING


class StreamOptions(msgspec.Struct):
    """What to add to a stream."""

    include_usage: bool | None = None


class ResponseFormat(msgspec.Struct):
    """The shape that the answer must have."""

    type: str = "text"


class Body(msgspec.Struct):
    """What both surfaces share. Numbers may come as `1.0`."""

    model: str | None = None
    stream: bool | None = None
    stream_options: msgspec.Raw = NOTHING
    n: int | float | None = None
    max_tokens: int | float | None = None
    max_completion_tokens: int | float | None = None
    n_predict: int | float | None = None
    min_tokens: Any = None
    min_length: Any = None
    n_probs: int | None = None
    stop: Any = None
    verbose: Any = None
    response_format: ResponseFormat | None = None
    logprobs: bool | int | None = None
    prompt_cache_key: Any = None
    session_id: Any = None
    reasoning_effort: Any = None
    chat_template_kwargs: Any = None


class Chat(Body):
    """A body of /v1/chat/completions."""

    messages: list[Message] | None = None
    tools: msgspec.Raw = NOTHING
    tool_choice: Any = None
    top_logprobs: int | None = None


class Completion(Body):
    """A body of /v1/completions."""

    prompt: str | list[str | int | list[int]] | None = None
