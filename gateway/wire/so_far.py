"""What a client has of an answer so far, so that another engine can go on with it.

Events are kept as they came and read only now and then, or when the answer breaks off: a token costs one reference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gateway.wire.engine_json import json_of
from gateway.wire.rest_of_stream import HEAD, RestOfStream, choice_of
from gateway.wire.sse import data_of
from gateway.wire.stream_view import StreamView
from gateway.wire.usage import Usage

__all__ = ["MOST_TEXT", "Given", "SoFar"]

MOST_TEXT = 1 << 18
"""Bytes of text, as JSON strings; a longer answer does not go on elsewhere."""
_UNREAD = 64 << 10
"""Bytes of events after which they are read: half a millisecond for some 250 tokens."""
_NO_TEXT = ("tool_calls", "function_call", "reasoning_content", "reasoning", "audio", "refusal")
"""Parts of an answer that its text does not tell another engine of."""
_IDS = re.compile(rb',"(prompt_token_ids|token_ids)":\[[^\]]*\]')
"""Ids that were asked for on our own account. In generated text the quotes would be escaped."""


@dataclass(frozen=True, slots=True)
class Given:
    """What another engine is given: all of it as pieces, one a token (a JSON array, and their number), or as text.

    Templates cut white space off the end of a message, so `text` ends before it: `blank` pieces less, and `tail` is
    what comes again. `ids`: the tokens of prompt and answer, a JSON array, where the first engine told them.
    """

    pieces: bytes = field(repr=False)
    count: int
    text: str = field(repr=False)
    tail: str = field(repr=False)
    blank: int
    ids: bytes | None = field(default=None, repr=False)


class SoFar:
    """One streamed answer of one choice, in chunks of `surface`: "chat" or "completions".

    `view` looks at what the engine sends, `shown` makes the client's events of it (the same, or a translation); both
    live as long as the answer, whichever engine writes it. Each engine's events go through `take` before they are
    looked at. `ids`: it was asked for token ids, which the client is not to see.
    """

    __slots__ = (
        "_blank", "_count", "_events", "_head", "_ids", "_length", "_out", "_pieces", "_prompt", "_rest", "_size",
        "plain", "resumed", "shown", "surface", "view",
    )  # fmt: skip

    def __init__(self, surface: str, view: StreamView, shown: StreamView, *, ids: bool = False) -> None:
        self.surface = surface
        self.view, self.shown = view, shown
        self.plain = True
        """Nothing came but text, and not too much of it."""
        self.resumed = 0
        """How often another engine went on."""
        self._ids = ids
        self._events: list[bytes] = []
        self._size = 0
        self._pieces: list[bytes] = []
        self._length = 0
        self._count = self._blank = 0  # pieces of text, and how many of the last ones are white space
        self._prompt: list[int] = []
        self._out: list[int] = []
        self._head: dict[str, Any] = {}
        self._rest: RestOfStream | None = None

    @property
    def told(self) -> Usage | None:
        """What the engine that writes now says of its own part of the answer, once it has."""
        return self._rest.told if self._rest is not None else self.view.usage

    def take(self, events: Sequence[bytes]) -> Sequence[bytes]:
        """Note these events of the engine; returns what is to be looked at in their place."""
        if self.plain:
            self._events += events
            self._size += sum(map(len, events))
            if self._size > _UNREAD:
                self._read()
        if self._ids:
            events = [_IDS.sub(rb',"\1":null', event) for event in events]
        if self._rest is not None:
            events = [mended for event in events if (mended := self._rest.mended(event))]
        return events

    def given(self) -> Given | None:
        """What another engine can go on from; None: from nothing that is known."""
        self._read()
        quoted = b"[" + b",".join(filter(None, self._pieces)) + b"]"
        text = "".join(msgspec.json.decode(quoted, type=list[str]))
        sent = text.rstrip()
        if not self.plain or not sent or self.view.terminal:
            return None
        ids = self._prompt + self._out if self._ids and self._prompt and len(self._out) >= self._count else None
        told = None if ids is None else msgspec.json.encode(ids)
        return Given(quoted, self._count, sent, text[len(sent) :], self._blank, told)

    def goes_on(self, *, given: int, tail: str = "", ids: bool = False) -> None:
        """From now on the events of another engine come, that was given so many tokens and says `tail` again."""
        self.resumed += 1
        self._ids = ids
        self._rest = RestOfStream(self.surface, self._head, tail, given, self.resumed)

    def _read(self) -> None:
        events, self._events, self._size = self._events, [], 0
        found = []
        for event in events:
            data = data_of(event)
            payload = json_of(data) if data is not None else None
            if isinstance(payload, dict) and (piece := self._note(payload)):
                found.append(msgspec.json.encode(piece))
                self._blank = self._blank + 1 if piece.isspace() else 0
        self._count += len(found)
        self._pieces.append(b",".join(found))
        self._length += len(self._pieces[-1])
        if self._length > MOST_TEXT:
            self.plain = False
        if not self.plain:
            self._pieces, self._prompt, self._out = [], [], []

    def _note(self, payload: dict[str, Any]) -> str:
        """The text of a chunk."""
        choice = choice_of(payload)
        if choice is None:
            return ""
        if not self._head:
            self._head = {name: payload[name] for name in HEAD if name in payload}
        if self._ids:
            self._prompt = self._prompt or payload.get("prompt_token_ids") or choice.get("prompt_token_ids") or []
            self._out += choice.get("token_ids") or []
        delta = choice.get("delta")
        part = delta if isinstance(delta, dict) else choice
        if any(part.get(name) for name in _NO_TEXT) or choice.get("index"):
            self.plain = False
        text = part.get("content") if part is delta else part.get("text")
        return text if isinstance(text, str) else ""
