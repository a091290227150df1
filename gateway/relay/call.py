"""One request to an engine, and how its head is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.relay.headers import HOP_BY_HOP

__all__ = ["Call"]

_DROPPED = HOP_BY_HOP | {"host", "expect", "accept-encoding", "cookie"}
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_TARGET = re.compile(r"[\x21-\x7e]+")


@dataclass(slots=True)
class Call:
    """One request to an engine. `target` is the path with its query, `host` the Host field's value.

    Framing is never copied: hop-by-hop fields in `headers` are dropped and the length is that of `body`, which may come
    in pieces so that a big one need not be joined. No coding of the answer is asked for, because the relay reads what
    it forwards. Nothing of it changes but that its body is let go.
    """

    method: str
    target: str
    host: str
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)
    body: bytes | tuple[bytes | memoryview, ...] = field(default=b"", repr=False)

    def spend(self) -> None:
        """Let the body go: it will not be sent again."""
        self.body = b""

    @property
    def pieces(self) -> tuple[bytes | memoryview, ...]:
        """The body, in the order in which it is written."""
        return (self.body,) if isinstance(self.body, bytes) else self.body

    def head(self) -> bytes:
        """The request line and header fields. Raises ValueError on what would change the framing."""
        if not (_TOKEN.fullmatch(self.method) and _TARGET.fullmatch(self.target) and _TARGET.fullmatch(self.host)):
            raise ValueError("not a request line")
        lines = [f"{self.method} {self.target} HTTP/1.1\r\nHost: {self.host}\r\nAccept-Encoding: identity\r\n"]
        for name, value in self.headers:
            if name.lower() in _DROPPED:
                continue
            if not (_TOKEN.fullmatch(name) and _VALUE.fullmatch(value)):
                raise ValueError("not a header field")
            lines.append(f"{name}: {value}\r\n")
        length = sum(map(len, self.pieces))
        if length or self.method not in ("GET", "HEAD"):
            lines.append(f"Content-Length: {length}\r\n")
        lines.append("\r\n")
        return "".join(lines).encode("latin-1")
