"""Counts of prompt tokens by local tokenizers, in a thread.

Measured: Rust tokenizers release the interpreter while they work, and a body of 1 MB is decoded in some 5 ms.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from gateway.errors import MalformedRequest
from gateway.tokens.tokenizer_file import Count, TokenizerFile, Unusable, load_tokenizer
from gateway.wire.chat_request import ChatRequest
from gateway.wire.translations import to_hub

__all__ = ["LocalCounts"]

LONGEST = 2 << 20
"""Bytes of a body that is counted here; decoding and rendering a longer one would hold up the event loop."""
log = logging.getLogger("kvgate.tokens")


class LocalCounts:
    """Tokenizers by model id, read from files in the background; until one is read its model is not known here."""

    def __init__(self) -> None:
        self._files: dict[str, Path] = {}
        self._loaded: dict[Path, TokenizerFile | None] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="tokenize")

    def apply(self, files: Mapping[str, Path]) -> None:
        """Use these from now on; a file that can't be used is logged, and its model's tokens are counted elsewhere."""
        self._files = dict(files)
        self._loaded = {path: self._loaded.get(path) for path in self._files.values()}
        for path in {path for path, tokenizer in self._loaded.items() if tokenizer is None}:
            self._pool.submit(self._load, path)

    def knows(self, model: str) -> bool:
        """Whether that model's tokens can be counted here."""
        path = self._files.get(model)
        return path is not None and self._loaded.get(path) is not None

    async def count(self, model: str, chat: ChatRequest, body: bytes) -> Count | None:
        """Tokens of the prompt in a body of any generating surface; None when they can't be counted here.

        Pictures and sounds are not: a tokenizer knows nothing of them.
        """
        tokenizer = self._loaded.get(self._files.get(model, Path()))
        if tokenizer is None or chat.media or len(body) > LONGEST:
            return None
        return await asyncio.get_running_loop().run_in_executor(self._pool, _count, tokenizer, chat, body)

    def close(self) -> None:
        """Let the thread go."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _load(self, path: Path) -> None:
        try:
            tokenizer = load_tokenizer(path)
        except Unusable as error:
            log.warning("tokenizer %s %s", path, error)
            return
        if path in self._loaded:
            self._loaded[path] = tokenizer


def _count(tokenizer: TokenizerFile, chat: ChatRequest, body: bytes) -> Count | None:
    surface = "messages" if chat.surface == "count_tokens" else chat.surface
    hub = surface if surface in ("chat", "completions") else chat.hub
    try:
        if surface != hub:
            translated = to_hub(surface, hub)
            if translated is None:
                return None
            body = translated(body).body
        given: Any = msgspec.json.decode(body)
    except (MalformedRequest, msgspec.MsgspecError, RecursionError):
        return None
    if hub == "chat":
        return tokenizer.chat(given)
    prompt = given.get("prompt")
    return tokenizer.prompt(prompt) if isinstance(prompt, str) else None
