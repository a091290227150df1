"""A conversation that is only read: embedded, or turned into tokens, as vLLM does."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.chat_body import NOTHING, Message
from gateway.wire.chat_request import MAX_MESSAGES, ChatRequest
from gateway.wire.media import media
from gateway.wire.members import Member
from gateway.wire.plain_request import Named, plain_request
from gateway.wire.rendered import render_chat

__all__ = ["Conversation", "conversation_request"]


class Conversation(Named):
    """A body that may hold messages in place of a text."""

    messages: list[Message] | None = None
    tools: msgspec.Raw = NOTHING


def conversation_request(surface: str, parsed: Conversation, members: tuple[Member, ...]) -> ChatRequest:
    """The request for these messages as one prompt. Raises MalformedRequest when there are none, or too many."""
    messages = parsed.messages
    if not messages:
        raise MalformedRequest("messages must hold at least one message", param="messages")
    contents = [message.content for message in messages if isinstance(message.content, list)]
    if len(messages) + sum(map(len, contents)) > MAX_MESSAGES:
        raise MalformedRequest(f"messages hold more than {MAX_MESSAGES} messages and parts", param="messages")
    tools = b"" if bytes(parsed.tools) == b"null" else bytes(parsed.tools)
    needs, found = media(contents)
    text = render_chat(tools, messages)
    return plain_request(surface, parsed.model, text, members, images=len(found.pictures), needs=needs)
