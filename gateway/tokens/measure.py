"""One pass over a request body: parsed, counted and fingerprinted, off the event loop when it is long."""

from __future__ import annotations

import asyncio
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gateway.apart import Apart, is_light
from gateway.core.estimators.text_counts import TextCounts, count_prompt
from gateway.core.prefix.chain import Chain, fingerprint
from gateway.core.prefix.opening import Opening, opening_of
from gateway.tokens.apart import WORK
from gateway.wire.chat_request import ChatRequest
from gateway.wire.reading import read_request
from gateway.wire.surfaces import SURFACES, Kind

__all__ = ["Measured", "Measurer", "measure"]

JSON = "application/json"
INLINE_BYTES = 48 * 1024
"""Bodies up to this size are measured on the loop (about 0.2 ms)."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A parsed body with its byte-class counts, its prefix chain and its opening. The text itself is not kept."""

    chat: ChatRequest
    counts: TextCounts
    chain: Chain
    opening: Opening = (0, 0)


def measure(surface: str, body: bytes, salt: bytes, content_type: str = JSON) -> Measured:
    """Parse and measure one body; raises MalformedRequest. Proportional to its length: 1.5 to 6 ms a MB."""
    chat = read_request(surface, body, content_type)
    text = chat.text
    tool_bytes = len(text.pieces[0]) if chat.tools and text.pieces else 0
    whole = b"".join(text.pieces)
    text.pieces.clear()  # a queued request holds its body once, not twice
    chain = fingerprint((whole,), text.message_ends, salt)
    counts = count_prompt(
        whole,
        [end for _, end in chain.anchors],
        messages=max(text.messages, chat.turns),
        results=text.results,
        tools=chat.tools,
        tool_bytes=tool_bytes,
        thoughts=text.thoughts,
        question=text.question,
    )
    return Measured(chat, counts, chain, opening_of(whole, text.first, chain.seed))


def _measured_if_light(surface: str, body: bytes, salt: bytes, content_type: str) -> Measured | None:
    """`measure`, or None for a body that is not for a thread; of a form only the edges of its parts are looked at."""
    if SURFACES[surface].kind is Kind.FORM or is_light(body):
        return measure(surface, body, salt, content_type)
    return None


class Measurer:
    """Measures bodies without ever holding the loop for longer than a few milliseconds.

    Long bodies, or those of very many values, are measured one after another in a process of their own, so that at most
    one of them is unpacked at a time, and its memory goes back to the system.
    """

    def __init__(self, threads: int = 2, salt: bytes | None = None, apart: Apart | None = None) -> None:
        self._salt = salt if salt is not None else secrets.token_bytes(16)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="measure")
        self._apart = apart if apart is not None else Apart()

    async def measure(
        self, surface: str, body: bytes, content_type: str = JSON, apart_as: str | None = None
    ) -> Measured:
        """Measure on the loop, in a thread, or in another process; raises MalformedRequest, and NoRoom for the
        process. `apart_as`: whose prompts no cache shares with those of others."""
        salt = self._salt if apart_as is None else self._salt + apart_as.encode()
        if len(body) <= INLINE_BYTES:
            return measure(surface, body, salt, content_type)
        loop = asyncio.get_running_loop()
        light = await loop.run_in_executor(self._pool, _measured_if_light, surface, body, salt, content_type)
        if light is not None:
            return light
        found, _ = await self._apart.work(WORK, (surface, salt), (body,))
        assert isinstance(found, Measured)
        return found

    def close(self) -> None:
        """Let the threads go; nothing new is measured afterwards."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._apart.close()
