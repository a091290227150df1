"""Watch an engine's own stream of /api/chat or /api/generate go by: what each line is, and what the client gets of it.

Every line has a time of its own, so lines have no ends in common to be known by; one typed decode that reads past what
does not matter tells all there is to know of a line.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.engine_json import UNREADABLE, json_of
from gateway.wire.error_body import error_in
from gateway.wire.members import engine_members
from gateway.wire.native_stream import UNREAD, NativeStream
from gateway.wire.ollama.done_reason import finish_reason
from gateway.wire.ollama.usage import usage_of
from gateway.wire.splice import splice
from gateway.wire.stream_view import EventKind, Seen
from gateway.wire.usage import Usage

__all__ = ["OllamaStream"]


class _Said(msgspec.Struct, gc=False):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[msgspec.Raw] | None = None


class _Line(msgspec.Struct, gc=False):
    """A line that is not the last one."""

    done: bool
    message: _Said | None = None
    response: str | None = None
    thinking: str | None = None
    error: msgspec.Raw | None = None


_LINE = msgspec.json.Decoder(_Line)


class OllamaStream(NativeStream):
    """The state of one stream, as a StreamView; it is whole when a line with `"done": true` came.

    model_alias: the name to show in place of the engine's, None to leave it.
    """

    __slots__ = ("_alias", "_calls", "_served", "_shown", "_usage")

    def __init__(self, model_alias: str | None = None) -> None:
        super().__init__()
        self._alias = None if model_alias is None else msgspec.json.encode(model_alias)
        self._served = self._shown = b""  # how lines begin, and how they are shown to
        self._calls = False
        self._usage: Usage | None = None

    @property
    def usage(self) -> Usage | None:
        """What the last line told, or None before."""
        return self._usage

    @property
    def terminal(self) -> bool:
        """The last line came."""
        return self.done

    def _see(self, event: bytes) -> Seen:
        try:
            line = _LINE.decode(event)
        except (msgspec.MsgspecError, RecursionError):
            return self._look(event)
        if line.done or line.error is not None:
            return self._look(event)
        said = line.message
        token = bool(line.response or line.thinking)
        if said is not None:
            if said.tool_calls:
                self._calls = token = True
            else:
                token = bool(said.content or said.thinking)
        forward = event if self._alias is None else self._named(event)
        if not token:
            return Seen(forward, EventKind.ROLE if said is not None else EventKind.OTHER)
        return self._token(forward)

    def _look(self, event: bytes) -> Seen:
        if not event.strip():
            return Seen(b"", EventKind.OTHER)
        payload = json_of(event)
        if payload is UNREADABLE:
            return UNREAD
        error = error_in(payload)
        if error is not None:
            return Seen(b"", EventKind.ERROR, _with_status(error, payload))
        forward = event if self._alias is None else self._named(event)
        if not isinstance(payload, dict):
            return Seen(forward, EventKind.OTHER)
        token = self._said(payload)
        self.tokens_seen += token
        if payload.get("done") is True:
            self.done = True
            self.finish_reason = finish_reason(payload.get("done_reason"), calls=self._calls)
            self._usage = usage_of(payload)
            return Seen(_ended(forward), EventKind.DONE, None, token)
        return Seen(forward, EventKind.TOKEN if token else EventKind.OTHER, None, token)

    def _said(self, payload: dict[str, Any]) -> bool:
        message = payload.get("message")
        said = message if isinstance(message, dict) else payload
        if said.get("tool_calls"):
            self._calls = True
            return True
        return bool(said.get("content") or said.get("thinking") or payload.get("response"))

    def _named(self, event: bytes) -> bytes:
        # The name comes first in every line, the same bytes each time; elsewhere it could be one in a tool's arguments.
        if self._served and event.startswith(self._served):
            return self._shown + event[len(self._served) :]
        alias = self._alias or b""
        try:
            found = engine_members(event)
            if found and found[0].key == "model" and all(member.key != "model" for member in found[1:]):
                self._served = event[: found[0].value_end]
                self._shown = event[: found[0].value_start] + alias
                return self._shown + event[found[0].value_end :]
            return splice(event, {"model": alias}, found) if any(each.key == "model" for each in found) else event
        except MalformedRequest:  # of more members than are looked through
            return event


def _ended(line: bytes) -> bytes:
    # The last line may have come without its end, which the end of the body stood for.
    return line if not line or line.endswith(b"\n") else line + b"\n"


def _with_status(error: dict[str, Any], payload: object) -> dict[str, Any]:
    status = payload.get("status") if isinstance(payload, dict) else None
    return {"code": status, **error} if isinstance(status, int) else error
