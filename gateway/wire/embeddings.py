"""Read from a body of /v1/embeddings what the decision needs; the body itself is forwarded as it came."""

from __future__ import annotations

import msgspec

from gateway.wire.chat_body import NOTHING
from gateway.wire.chat_request import ChatRequest
from gateway.wire.conversation import Conversation, conversation_request
from gateway.wire.distinct import distinct_members
from gateway.wire.inputs import inputs, is_unsaid
from gateway.wire.malformed import decoded
from gateway.wire.plain_request import inputs_request

__all__ = ["parse_embeddings"]

MAX_INPUTS = 2048
"""The most that OpenAI's API takes for `input`; each is a sequence of its own in the engine."""


class _Embeddings(Conversation):
    input: msgspec.Raw = NOTHING


_EMBEDDINGS = msgspec.json.Decoder(_Embeddings)


def parse_embeddings(body: bytes, *, ours: bool = False) -> ChatRequest:
    """Read an embeddings body: `input` (texts, token ids, objects with `text` or `image`), or vLLM's `messages`.

    `prompts` counts the inputs; of `ours`, a translation's body, the members are not looked for. Raises
    MalformedRequest with `param` naming the member at fault.
    """
    parsed = decoded(_EMBEDDINGS, body)
    found = () if ours else distinct_members(body)
    if is_unsaid(parsed.input) and parsed.messages is not None:
        return conversation_request("embeddings", parsed, found)
    return inputs_request("embeddings", parsed.model, inputs("input", parsed.input, MAX_INPUTS), found)
