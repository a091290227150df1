"""A Responses request as a chat request: the client speaks responses, the engine chat completions."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.lost import Lost
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_client, read_list
from gateway.wire.responses.asked import Asked
from gateway.wire.responses.conversation import Conversation
from gateway.wire.responses.settings import settings
from gateway.wire.responses.tool_choice import chat_tools
from gateway.wire.responses.toolbox import Toolbox
from gateway.wire.translation import Translated

__all__ = ["to_chat"]

_STORED = ("previous_response_id", "conversation", "prompt")
"""What refers to something that a service keeps."""
_OWN = frozenset(
    (
        *_STORED,
        *("access_programs", "background", "background_options", "client_metadata", "context_management", "image"),
        *("include", "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model"),
        *("moderation", "parallel_tool_calls", "prompt_cache_options", "prompt_cache_retention", "reasoning"),
        *("service_tier", "store", "stream", "stream_options", "text", "tool_choice", "tools", "top_logprobs"),
        "truncation",
    )
)
"""Members that are translated, or left out as hints. What is in neither list goes on as it is: `temperature`, `top_p`,
`prompt_cache_key`, and the options that local engines take on this surface too (`top_k`, `chat_template_kwargs`)."""
_CHATS = frozenset(
    (
        *("messages", "functions", "function_call", "n", "max_tokens", "max_completion_tokens", "n_predict"),
        *("response_format", "logprobs", "modalities", "audio"),
    )
)
"""Members that mean something to chat only, and would change what is asked."""
_LOGPROBS = "message.output_text.logprobs"

_STRING = msgspec.json.Decoder(str)
_STRINGS: msgspec.json.Decoder[list[str]] = msgspec.json.Decoder(list[str])
_BOOL = msgspec.json.Decoder(bool)
_NUMBER = msgspec.json.Decoder(int | float)


class _Reasoning(msgspec.Struct):
    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None


class _Text(msgspec.Struct):
    format: msgspec.Raw = NOTHING


class _Format(msgspec.Struct):
    type: str
    name: str | None = None
    description: str | None = None
    schema: msgspec.Raw = NOTHING
    strict: bool | None = None


_REASONING = msgspec.json.Decoder(_Reasoning)
_TEXT = msgspec.json.Decoder(_Text)
_FORMAT = msgspec.json.Decoder(_Format)


def to_chat(body: bytes) -> Translated:
    """Translate a body of /v1/responses; the context is `Asked`.

    Schemas and arguments keep their bytes. Reasoning of earlier turns that can be read goes on as `reasoning_content`.
    Tools that take text become functions of one string, tools in a namespace get its name before theirs. Web search,
    image generation and the service's own tool search, which agents offer always, are left out unless a tool choice
    demands them; so are hints (metadata, service tier, verbosity, truncation, cache retention), and `store`: nothing is
    stored. Raises MalformedRequest with `param`.
    """
    members = read_client(body)
    lost = Lost()
    for name in _STORED:
        if name in members:
            lost.add(name)
    if "background" in members and read(_BOOL, members["background"], "background"):
        lost.add("background")
    reasoning = read(_REASONING, members["reasoning"], "reasoning") if "reasoning" in members else _Reasoning()
    toolbox = Toolbox(lost)
    if "tools" in members:
        toolbox.add(members["tools"], "tools")
    out: dict[str, bytes] = {}
    if "model" in members:
        read(_STRING, members["model"], "model")
        out["model"] = bytes(members["model"])
    out["messages"] = _messages(members, toolbox, lost)
    out |= _tools(members, toolbox, lost)
    out |= {name: bytes(raw) for name, raw in members.items() if name not in _OWN and name not in _CHATS}
    if "max_output_tokens" in members:
        read(_NUMBER, members["max_output_tokens"], "max_output_tokens")
        out["max_tokens"] = bytes(members["max_output_tokens"])
    if reasoning.effort is not None:
        out["reasoning_effort"] = encode(reasoning.effort)
    out |= _format(members)
    logprobs = _logprobs(members)
    out |= logprobs
    out |= _stream(members)
    chat = b"{" + b",".join(encode(key) + b":" + value for key, value in out.items()) + b"}"
    summary = bool(reasoning.summary or reasoning.generate_summary)
    asked = Asked(settings(members), toolbox.origins, summary, bool(logprobs))
    return Translated(chat, tuple(lost.paths), asked)


def _messages(members: dict[str, msgspec.Raw], toolbox: Toolbox, lost: Lost) -> bytes:
    conversation = Conversation(toolbox, lost)
    if "instructions" in members:
        if first_byte(members["instructions"]) == b'"':
            conversation.instructions(read(_STRING, members["instructions"], "instructions"))
        else:
            raise MalformedRequest("instructions must be text", param="instructions")
    if "input" in members:
        conversation.items(members["input"])
    elif not lost.paths:
        raise MalformedRequest("input is required", param="input", code="missing_required_parameter")
    conversation.end()
    if not conversation.messages:
        if not lost.paths:
            raise MalformedRequest("input must hold some content", param="input")
        conversation.messages.append(b'{"role":"user","content":""}')  # all that is asked lies with a service
    return b"[" + b",".join(conversation.messages) + b"]"


def _tools(members: dict[str, msgspec.Raw], toolbox: Toolbox, lost: Lost) -> dict[str, bytes]:
    tools = chat_tools(toolbox, members.get("tool_choice"), lost)
    if tools and "parallel_tool_calls" in members:
        read(_BOOL, members["parallel_tool_calls"], "parallel_tool_calls")
        tools["parallel_tool_calls"] = bytes(members["parallel_tool_calls"])
    return tools


def _format(members: dict[str, msgspec.Raw]) -> dict[str, bytes]:
    raw = read(_TEXT, members["text"], "text").format if "text" in members else NOTHING
    if is_null(raw):
        return {}
    wanted = read(_FORMAT, raw, "text.format")
    if wanted.type == "text":
        return {}
    if wanted.type == "json_object":
        return {"response_format": b'{"type":"json_object"}'}
    if wanted.type != "json_schema":
        raise MalformedRequest("text.format.type must be text, json_schema or json_object", param="text.format.type")
    if first_byte(wanted.schema) != b"{":
        raise MalformedRequest("text.format.schema must be an object", param="text.format.schema")
    schema = b'{"name":' + encode(wanted.name or "response")
    if wanted.description is not None:
        schema += b',"description":' + encode(wanted.description)
    if wanted.strict is not None:
        schema += b',"strict":' + encode(wanted.strict)
    schema += b',"schema":' + bytes(wanted.schema) + b"}"
    return {"response_format": b'{"type":"json_schema","json_schema":' + schema + b"}"}


def _logprobs(members: dict[str, msgspec.Raw]) -> dict[str, bytes]:
    include: list[str] = []
    if "include" in members:
        read_list(members["include"], "include")
        include = read(_STRINGS, members["include"], "include")
    if _LOGPROBS not in include:
        return {}
    found = {"logprobs": b"true"}
    if "top_logprobs" in members:
        read(_NUMBER, members["top_logprobs"], "top_logprobs")
        found["top_logprobs"] = bytes(members["top_logprobs"])
    return found


def _stream(members: dict[str, msgspec.Raw]) -> dict[str, bytes]:
    if "stream" in members and read(_BOOL, members["stream"], "stream"):
        return {"stream": b"true", "stream_options": b'{"include_usage":true}'}
    return {"stream": b"false"}
