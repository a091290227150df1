"""What each surface's body looks like, as JSON Schema: loose, since members that are not listed here pass too."""

from __future__ import annotations

from typing import Any

__all__ = ["REQUESTS"]

_Schema = dict[str, Any]

_TEXT: _Schema = {"type": "string"}
_FLAG: _Schema = {"type": "boolean"}
_BUDGET: _Schema = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}
_OBJECT: _Schema = {"type": "object"}
_TEXTS: _Schema = {"type": "array", "items": _TEXT, "minItems": 1}
_TEXT_OR_TEXTS: _Schema = {"anyOf": [_TEXT, _TEXTS]}
_FILE: _Schema = {"type": "string", "contentMediaType": "application/octet-stream"}


def _body(required: tuple[str, ...], **members: _Schema) -> _Schema:
    return {"type": "object", "required": ["model", *required], "properties": {"model": _TEXT, **members}}


def _messages(*roles: str) -> _Schema:
    part = {"type": "object", "required": ["type", "text"], "properties": {"type": {"const": "text"}, "text": _TEXT}}
    content = {"anyOf": [_TEXT, {"type": "array", "items": part, "minItems": 1}]}
    message = {
        "type": "object",
        "required": ["role", "content"],
        "properties": {"role": {"enum": list(roles)}, "content": content},
    }
    return {"type": "array", "items": message, "minItems": 1}


_OLLAMA_MESSAGE: _Schema = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"enum": ["system", "user", "assistant", "tool"]},
        "content": _TEXT,
        "images": {"type": "array", "items": _TEXT},
    },
}
_TOKENS: _Schema = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}

REQUESTS: dict[str, _Schema] = {
    "chat": _body(
        ("messages",),
        messages=_messages("system", "developer", "user", "assistant"),
        stream=_FLAG,
        stream_options={"type": "object", "properties": {"include_usage": _FLAG}},
        max_tokens=_BUDGET,
        max_completion_tokens=_BUDGET,
        n={"type": "integer", "minimum": 1, "maximum": 128},
        temperature={"type": "number", "minimum": 0, "maximum": 2},
        stop=_TEXT_OR_TEXTS,
        tools={"type": "array", "items": _OBJECT},
        prompt_cache_key=_TEXT,
    ),
    "completions": _body(
        ("prompt",),
        prompt=_TEXT_OR_TEXTS,
        stream=_FLAG,
        max_tokens=_BUDGET,
        n={"type": "integer", "minimum": 1, "maximum": 128},
    ),
    "responses": _body(
        ("input",),
        input={"anyOf": [_TEXT, _messages("system", "developer", "user")]},
        instructions=_TEXT,
        stream=_FLAG,
        max_output_tokens=_BUDGET,
        tools={"type": "array", "items": _OBJECT},
        store=_FLAG,
    ),
    "messages": _body(
        ("messages", "max_tokens"),
        messages=_messages("user", "assistant"),
        max_tokens=_BUDGET,
        system=_TEXT,
        stream=_FLAG,
        tools={"type": "array", "items": _OBJECT},
    ),
    "count_tokens": _body(("messages",), messages=_messages("user", "assistant"), system=_TEXT),
    "ollama_chat": _body(
        ("messages",),
        messages={"type": "array", "items": _OLLAMA_MESSAGE, "minItems": 1},
        stream={"type": "boolean", "default": True},
        think=_FLAG,
        options=_OBJECT,
    ),
    "ollama_generate": _body(
        ("prompt",), prompt=_TEXT, system=_TEXT, stream={"type": "boolean", "default": True}, options=_OBJECT
    ),
    "ollama_embed": _body(("input",), input=_TEXT_OR_TEXTS),
    "embeddings": _body(
        ("input",), input={"anyOf": [_TEXT, _TEXTS, _TOKENS]}, encoding_format={"enum": ["float", "base64"]}
    ),
    "rerank": _body(("query", "documents"), query=_TEXT, documents=_TEXTS, top_n={"type": "integer", "minimum": 1}),
    "score": _body(("text_1", "text_2"), text_1=_TEXT_OR_TEXTS, text_2=_TEXT_OR_TEXTS),
    "tokenize": _body(("prompt",), prompt=_TEXT),
    "detokenize": _body(("tokens",), tokens=_TOKENS),
    "images": _body(("prompt",), prompt=_TEXT, n={"type": "integer", "minimum": 1, "maximum": 10}, size=_TEXT),
    "speech": _body(("input", "voice"), input=_TEXT, voice=_TEXT, response_format=_TEXT),
    "transcriptions": _body(("file",), file=_FILE, language=_TEXT, prompt=_TEXT, response_format=_TEXT, stream=_FLAG),
    "translations": _body(("file",), file=_FILE, prompt=_TEXT, response_format=_TEXT),
    "image_edits": _body(("image", "prompt"), image=_FILE, prompt=_TEXT),
}
"""The request body of every surface of `gateway.wire.surfaces`; forms list their parts."""
