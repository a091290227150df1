"""HTTP/1.1 responses out of bytes, strictly: what is ambiguous about its framing is not an answer. No I/O here.

llhttp parses; this keeps what it finds and adds the bounds and refusals that it leaves to its user.
"""

from __future__ import annotations

import httptools

__all__ = ["HEAD_LIMIT", "ResponseReader"]

HEAD_LIMIT = 64 << 10
"""Bytes of a status line with its header fields."""

_TRAILER_LIMIT = 64  # header fields after a chunked body


class ResponseReader:
    """Reads the answers that come over one connection, one after another.

    After `feed`: `head_done` says that `status` and `headers` (names in lower case) are there, `parts` are the body
    bytes of that read (the caller clears them), `complete` that the body is whole by its framing, `keep` that another
    request may follow. `framed` is false where the body runs until the connection closes.
    """

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        # httptools looks its callbacks up once; a bound list.append needs no Python frame per HTTP chunk.
        self.on_body = self.parts.append
        self.headers: list[tuple[str, str]] = []
        self.status = 0
        self.head_done = self.complete = self.keep = False
        self.framed = True
        self._head_bytes = self._trailers = 0
        self._parser = httptools.HttpResponseParser(self)

    def next(self) -> None:
        """Be ready for the answer to the next request."""
        self.headers = []
        self.status = self._head_bytes = self._trailers = 0
        self.head_done = self.complete = self.keep = False
        self.framed = True

    def feed(self, data: bytes) -> str | None:
        """Read some bytes; what is wrong with them, if anything is."""
        fault: str | None = None
        in_head = not self.head_done
        if in_head:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            fault = "it switched protocols"
        except httptools.HttpParserError as error:
            self.keep = False
            # What follows a whole answer is not that answer's fault.
            fault = None if self.complete else str(error.__context__ or error)
        if in_head and not self.head_done and self._head_bytes > HEAD_LIMIT:
            fault = f"its head is longer than {HEAD_LIMIT} bytes"
        return fault

    # --- called by httptools ---

    def on_message_begin(self) -> None:
        """Another message without another request is refused; after a 1xx answer one is due."""
        if self.complete:
            raise ValueError("bytes after its answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header field; trailers are only counted."""
        if self.head_done:
            self._trailers += 1
            if self._trailers > _TRAILER_LIMIT:
                raise ValueError("too many trailers")
            return
        self.headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        """Check the framing: RFC 9112 section 6.3 without its leniencies."""
        status = self._parser.get_status_code()
        if status < 200:
            return
        if sum(len(name) + len(value) + 4 for name, value in self.headers) > HEAD_LIMIT:
            raise ValueError(f"its head is longer than {HEAD_LIMIT} bytes")
        lengths = [value for name, value in self.headers if name == "content-length"]
        codings = [value for name, value in self.headers if name == "transfer-encoding"]
        if len(lengths) + len(codings) > 1 or any(coding.lower() != "chunked" for coding in codings):
            raise ValueError("its framing is ambiguous")
        self.framed = bool(lengths or codings) or status in (204, 304)
        self.status = status
        self.head_done = True

    def on_message_complete(self) -> None:
        """The body is whole by its framing; a 1xx answer leaves nothing behind."""
        if not self.head_done:
            self.headers = []
            return
        self.complete = True
        self.keep = self.framed and self._parser.should_keep_alive()
