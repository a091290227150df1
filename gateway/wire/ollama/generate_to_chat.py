"""A request of /api/generate as a chat request: its system prompt, and its prompt as what the user says."""

from __future__ import annotations

from gateway.errors import MalformedRequest
from gateway.wire.lost import Lost
from gateway.wire.ollama.asked import Asked
from gateway.wire.ollama.images import image_parts
from gateway.wire.ollama.shared_members import answer_form, joined, model_and_options, note_lost, streams, thinking
from gateway.wire.ollama.turns_to_chat import content_with
from gateway.wire.raw_members import NOTHING, first_byte, read_client
from gateway.wire.translation import Translated

__all__ = ["LOST", "to_chat"]

LOST = ("suffix", "template", "context", "width", "height", "steps", "_debug_render_only")
"""Text to write up to, a template of the client's own, tokens of an earlier answer (deprecated there), and pictures."""


def to_chat(body: bytes) -> Translated:
    """Translate a body of /api/generate; the context is `Asked`.

    The engine puts its template around the prompt, as Ollama would. Lost besides `LOST`: `raw` (no template), which
    text completions have (`generate_to_completions.py`). Left out as for chat.
    Raises MalformedRequest with `param`; also without a prompt, which asks to load a model (`load.py`).
    """
    members = read_client(body)
    lost = Lost()
    out = model_and_options(members) | answer_form(members) | thinking(members) | streams(members)
    note_lost(members, ("raw", *LOST), lost)
    parts = image_parts(members["images"], "images") if "images" in members else []
    content = content_with(parts, members.get("prompt", NOTHING), "prompt")
    if content == b'""':
        raise MalformedRequest("prompt must not be empty", param="prompt")
    messages = [b'{"role":"user","content":' + content + b"}"]
    system = members.get("system", NOTHING)
    if system is not NOTHING and bytes(system) != b'""':
        if first_byte(system) != b'"':
            raise MalformedRequest("system must be a string", param="system")
        messages.insert(0, b'{"role":"system","content":' + bytes(system) + b"}")
    out["messages"] = b"[" + b",".join(messages) + b"]"
    return joined(out, lost, Asked(generate=True))
