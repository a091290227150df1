"""A request's settings as the response object tells them again."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gateway.wire.raw_members import encode

__all__ = ["NO_SETTINGS", "settings"]

_DEFAULTS: Mapping[str, bytes] = {
    "background": b"false",
    "instructions": b"null",
    "max_output_tokens": b"null",
    "max_tool_calls": b"null",
    "metadata": b"{}",
    "parallel_tool_calls": b"true",
    "previous_response_id": b"null",
    "prompt_cache_key": b"null",
    "reasoning": b'{"effort":null,"summary":null}',
    "safety_identifier": b"null",
    "service_tier": b'"default"',
    "store": b"false",
    "temperature": b"null",
    "text": b'{"format":{"type":"text"}}',
    "tool_choice": b'"auto"',
    "tools": b"[]",
    "top_logprobs": b"0",
    "top_p": b"null",
    "truncation": b'"disabled"',
    "user": b"null",
}
"""What is unsaid. Temperature and top_p are the engine's own then, which nobody told."""
_OURS = ("background", "previous_response_id", "service_tier", "store", "truncation")
"""Told as it is served, not as it was asked."""


def settings(members: Mapping[str, msgspec.Raw]) -> bytes:
    """Members of a response object, raw JSON without braces; what a client set keeps its bytes."""
    told = {
        name: default if name in _OURS or name not in members else bytes(members[name])
        for name, default in _DEFAULTS.items()
    }
    return b",".join(encode(name) + b":" + value for name, value in told.items())


NO_SETTINGS = settings({})
"""Of a request that nothing is known of."""
