"""A request of /api/generate as one for text completions: a prompt that no template is to be put around."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.lost import Lost
from gateway.wire.ollama.asked import Asked
from gateway.wire.ollama.generate_to_chat import LOST
from gateway.wire.ollama.shared_members import answer_form, joined, model_and_options, note_lost, streams
from gateway.wire.raw_members import NOTHING, first_byte, read, read_client
from gateway.wire.translation import Translated

__all__ = ["to_completions"]

_BOOL = msgspec.json.Decoder(bool)


def to_completions(body: bytes) -> Translated:
    """Translate a body of /api/generate with `raw`; the context is `Asked`.

    Without it a template would be missing, so `prompt` is lost then. Also lost: what is lost to chat, a system prompt,
    pictures and a format. Text completions have a `suffix`, but most engines leave it out of account (llama.cpp) or
    refuse it (vLLM). `think` says nothing without a template. Raises MalformedRequest with `param`.
    """
    members = read_client(body)
    lost = Lost()
    out = model_and_options(members) | streams(members)
    form = answer_form(members)
    if "logprobs" in form:
        out["logprobs"] = form.get("top_logprobs", b"1")
    if "response_format" in form:
        lost.add("format")
    note_lost(members, ("system", "images", *LOST), lost)
    raw = "raw" in members and read(_BOOL, members["raw"], "raw")
    for name in ("prompt", "suffix"):
        if name in members and first_byte(members[name]) != b'"':
            raise MalformedRequest(f"{name} must be a string", param=name)
    out["prompt"] = bytes(members.get("prompt", NOTHING))
    if out["prompt"] in (b"", b'""'):
        raise MalformedRequest("prompt must not be empty", param="prompt")
    if not raw:
        lost.add("prompt")
    return joined(out, lost, Asked(generate=True))
