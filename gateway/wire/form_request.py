"""A request that came as a form."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.wire.chat_request import ChatRequest
from gateway.wire.multipart import Form

__all__ = ["FormRequest"]


@dataclass(frozen=True, slots=True)
class FormRequest:
    """The request as the decision sees it, and where the form's parts lie, for edits.

    response_format: as asked, None when unsaid. Transcriptions come as text with "text", "srt" and "vtt".
    """

    chat: ChatRequest
    form: Form
    response_format: str | None = None
