"""Read from a body of /v1/audio/speech what the decision needs; the body itself is forwarded as it came."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.chat_request import ChatRequest
from gateway.wire.distinct import distinct_members
from gateway.wire.malformed import decoded
from gateway.wire.plain_request import Named, plain_request
from gateway.wire.rendered import render_prompts

__all__ = ["parse_speech"]


class _Speech(Named):
    input: str | None = None
    stream_format: Any = None


_SPEECH = msgspec.json.Decoder(_Speech)


def parse_speech(body: bytes) -> ChatRequest:
    """Read the text to be spoken. `stream`: the answer is an event stream, not audio (`stream_format` is "sse").

    Raises MalformedRequest with `param` naming the member at fault.
    """
    parsed = decoded(_SPEECH, body)
    if parsed.input is None:
        raise MalformedRequest("input is required", param="input", code="missing_required_parameter")
    text = render_prompts([parsed.input.encode()])
    return plain_request("speech", parsed.model, text, distinct_members(body), stream=parsed.stream_format == "sse")
