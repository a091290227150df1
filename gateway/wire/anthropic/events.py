"""The events of a message's stream, framed."""

from __future__ import annotations

from typing import Any

from gateway.wire.raw_members import encode

__all__ = ["block_delta", "block_start", "block_stop", "framed", "input_delta", "text_delta", "thinking_delta"]


def framed(name: str, payload: dict[str, Any]) -> bytes:
    """One event; `payload` without its type, which is the event's name."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode({"type": name, **payload}))


def block_start(index: int, block: dict[str, Any]) -> bytes:
    """A content block begins."""
    return framed("content_block_start", {"index": index, "content_block": block})


def block_delta(index: int, kind: bytes, member: bytes, text: str) -> bytes:
    """A piece of a block."""
    return (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":%b}}\n\n'
        % (index, kind, member, encode(text))
    )


def text_delta(index: int, text: str) -> bytes:
    """A piece of text."""
    return block_delta(index, b"text_delta", b"text", text)


def thinking_delta(index: int, text: str) -> bytes:
    """A piece of reasoning."""
    return block_delta(index, b"thinking_delta", b"thinking", text)


def input_delta(index: int, text: str) -> bytes:
    """A piece of a tool's input, as JSON text."""
    return block_delta(index, b"input_json_delta", b"partial_json", text)


def block_stop(index: int) -> bytes:
    """A content block is whole."""
    return framed("content_block_stop", {"index": index})
