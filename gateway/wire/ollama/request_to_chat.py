"""A request of /api/chat as a chat request: the client speaks Ollama's API, the engine chat completions."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.lost import Lost
from gateway.wire.ollama.asked import Asked
from gateway.wire.ollama.shared_members import answer_form, joined, model_and_options, note_lost, streams, thinking
from gateway.wire.ollama.turns_to_chat import ToChatTurns
from gateway.wire.raw_members import NOTHING, first_byte, is_null, read, read_client, read_list
from gateway.wire.translation import Translated

__all__ = ["to_chat"]


class _Tool(msgspec.Struct, gc=False):
    type: str | None = None
    function: msgspec.Raw = NOTHING


_TOOL = msgspec.json.Decoder(_Tool)


def to_chat(body: bytes) -> Translated:
    """Translate a body of /api/chat; the context is `Asked`.

    Texts, schemas and arguments keep their bytes. Thinking of earlier turns goes on as `reasoning_content`. What
    becomes of options, `think` and `format` is said where they are read. Left out as hints: keep_alive, truncate and
    shift (a prompt that is too long is an error here), options that load a model. Lost: `_debug_render_only`.
    Raises MalformedRequest with `param`; also without messages, which asks to load a model (`load.py`).
    """
    members = read_client(body)
    lost = Lost()
    out = model_and_options(members) | answer_form(members) | thinking(members) | streams(members)
    note_lost(members, ("_debug_render_only",), lost)
    tools = _tools(members["tools"]) if "tools" in members else []
    if tools:
        out["tools"] = b"[" + b",".join(tools) + b"]"
    out["messages"] = _messages(members)
    return joined(out, lost, Asked(generate=False))


def _messages(members: dict[str, msgspec.Raw]) -> bytes:
    turns = ToChatTurns()
    for index, raw in enumerate(read_list(members["messages"], "messages") if "messages" in members else []):
        turns.take(raw, f"messages[{index}]")
    if not turns.messages:
        raise MalformedRequest("messages must hold at least one message", param="messages")
    return b"[" + b",".join(turns.messages) + b"]"


def _tools(raw: msgspec.Raw) -> list[bytes]:
    # The shape is chat's own, but for a type that may be missing.
    found: list[bytes] = []
    for index, item in enumerate(read_list(raw, "tools")):
        tool = read(_TOOL, item, f"tools[{index}]")
        if is_null(tool.function) or first_byte(tool.function) != b"{":
            at = f"tools[{index}].function"
            raise MalformedRequest(f"{at} must be an object", param=at)
        found.append(
            bytes(item) if tool.type == "function" else b'{"type":"function","function":' + bytes(tool.function) + b"}"
        )
    return found
