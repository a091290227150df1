"""One pass over a request body: parsed, counted and fingerprinted, off the event loop when it is long."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gateway.core.estimators.prompt_tokens import TextCounts, count_text
from gateway.core.prefix.chain import Chain, fingerprint
from gateway.wire.chat_request import ChatRequest, parse_chat, parse_completion

__all__ = ["Measured", "Measurer", "measure"]

INLINE_BYTES = 48 * 1024
"""Bodies up to this size are measured on the loop (about 0.2 ms); longer ones in a thread."""

_PARSERS: dict[str, Callable[[bytes], ChatRequest]] = {"chat": parse_chat, "completions": parse_completion}


@dataclass(frozen=True, slots=True)
class Measured:
    """A parsed body with its byte-class counts and its prefix chain. The text itself is not kept."""

    chat: ChatRequest
    counts: TextCounts
    chain: Chain


def measure(surface: str, body: bytes, salt: bytes) -> Measured:
    """Parse and measure one body; raises MalformedRequest. Proportional to its length: 1 to 5 ms a MB."""
    chat = _PARSERS[surface](body)
    text = chat.text
    whole = (b"".join(text.pieces),)
    text.pieces.clear()  # a queued request holds its body once, not twice
    counts = count_text(whole, text.messages, chat.tools)
    chain = fingerprint(whole, text.message_ends, salt)
    return Measured(chat, counts, chain)


class Measurer:
    """Measures bodies without ever holding the loop for longer than about a millisecond."""

    def __init__(self, threads: int = 2, salt: bytes | None = None) -> None:
        self._salt = salt if salt is not None else secrets.token_bytes(16)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="measure")

    async def measure(self, surface: str, body: bytes) -> Measured:
        """Measure on the loop when short, in a thread when long."""
        if len(body) <= INLINE_BYTES:
            return measure(surface, body, self._salt)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, measure, surface, body, self._salt)

    def close(self) -> None:
        """Let the threads go; nothing new is measured afterwards."""
        self._pool.shutdown(wait=False, cancel_futures=True)
