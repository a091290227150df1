"""Read from the form of a transcription or translation what the decision needs; the form is forwarded as it came."""

from __future__ import annotations

from math import ceil

from gateway.errors import MalformedRequest
from gateway.wire.audio_length import seconds_of
from gateway.wire.form_request import FormRequest
from gateway.wire.multipart import form
from gateway.wire.plain_request import plain_request
from gateway.wire.rendered import render_prompts

__all__ = ["parse_transcription", "parse_translation"]

WINDOW_SECONDS = 30
WINDOW_FRAMES = 1_500
"""Whisper (arXiv 2212.04356, section 2.2) reads 30 seconds at a time; its encoder makes of them 1,500 frames of 20 ms
(`n_audio_ctx` of every size of it), which the decoder attends to as to the tokens of a prompt."""
WINDOW_TOKENS = 224
"""The most that its decoder writes for one window: half of `n_text_ctx`, which is 448."""


def parse_transcription(body: bytes, content_type: str) -> FormRequest:
    """Read a form of /v1/audio/transcriptions: `prompt_tokens` and `max_tokens` are estimates for Whisper's windows.

    Raises MalformedRequest with `param` naming the part at fault.
    """
    return _parse("transcriptions", body, content_type)


def parse_translation(body: bytes, content_type: str) -> FormRequest:
    """The same for /v1/audio/translations."""
    return _parse("translations", body, content_type)


def _parse(surface: str, body: bytes, content_type: str) -> FormRequest:
    found = form(body, content_type)
    file = found.part("file")
    if file is None:
        raise MalformedRequest("file is required", param="file", code="missing_required_parameter")
    if file.text is not None:
        raise MalformedRequest("file must be a file, with a filename", param="file")
    windows = max(1, ceil(seconds_of(memoryview(body)[file.start : file.end]) / WINDOW_SECONDS))
    chat = plain_request(
        surface,
        found.value("model"),
        render_prompts([(found.value("prompt") or "").encode()]),
        prompt_tokens=windows * WINDOW_FRAMES,
        stream=found.yes("stream"),
        max_tokens=windows * WINDOW_TOKENS,
    )
    return FormRequest(chat, found, found.value("response_format"))
