"""Read from a body of /v1/images/generations what the decision needs; the body itself is forwarded as it came."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.chat_request import MAX_CHOICES, ChatRequest
from gateway.wire.distinct import distinct_members
from gateway.wire.malformed import decoded, integer
from gateway.wire.plain_request import Named, plain_request
from gateway.wire.rendered import render_prompts

__all__ = ["parse_images"]


class _Images(Named):
    prompt: str | None = None
    n: int | float | None = None
    stream: bool | None = None


_IMAGES = msgspec.json.Decoder(_Images)


def parse_images(body: bytes) -> ChatRequest:
    """Read the prompt and how many pictures are wanted (`n`). Engines that make pictures count no output in tokens.

    Raises MalformedRequest with `param` naming the member at fault.
    """
    parsed = decoded(_IMAGES, body)
    if parsed.prompt is None:
        raise MalformedRequest("prompt is required", param="prompt", code="missing_required_parameter")
    return plain_request(
        "images",
        parsed.model,
        render_prompts([parsed.prompt.encode()]),
        distinct_members(body),
        n=integer("n", parsed.n, 1, MAX_CHOICES) or 1,
        stream=parsed.stream is True,
    )
