"""Read from the form of /v1/images/edits what the decision needs; the form is forwarded as it came."""

from __future__ import annotations

from gateway.errors import MalformedRequest
from gateway.wire.chat_request import MAX_CHOICES
from gateway.wire.form_request import FormRequest
from gateway.wire.multipart import form
from gateway.wire.plain_request import plain_request
from gateway.wire.rendered import render_prompts

__all__ = ["parse_image_edits"]


def parse_image_edits(body: bytes, content_type: str) -> FormRequest:
    """Read the prompt, how many pictures came and how many are wanted (`n`).

    Raises MalformedRequest with `param` naming the part at fault.
    """
    found = form(body, content_type)
    prompt = found.value("prompt")
    if prompt is None:
        raise MalformedRequest("prompt is required", param="prompt", code="missing_required_parameter")
    if not found.files:
        raise MalformedRequest("image is required", param="image", code="missing_required_parameter")
    wanted = (found.value("n") or "1").strip()
    if not (wanted.isascii() and wanted.isdigit() and len(wanted) < 4 and 1 <= int(wanted) <= MAX_CHOICES):
        raise MalformedRequest(f"n must be an integer from 1 to {MAX_CHOICES}", param="n")
    chat = plain_request(
        "image_edits",
        found.value("model"),
        render_prompts([prompt.encode()]),
        images=len(found.files),
        n=int(wanted),
        stream=found.yes("stream"),
    )
    return FormRequest(chat, found, found.value("response_format"))
