"""One client connection: bounded, watched for the client leaving, with answers of ours to what the parser refuses."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, BadHttpMethod, LineTooLong
from aiohttp.web_protocol import RequestHandler, RequestPayloadError, _ErrInfo

from gateway.edge.downstream import ClientDownstream
from gateway.errors import GatewayError, MalformedRequest, Unavailable
from gateway.wire.error_body import openai_error

if TYPE_CHECKING:
    from gateway.edge.server import EdgeServer

__all__ = [
    "CLOSE",
    "HIGH_WATER",
    "KEEP",
    "Answered",
    "EdgeProtocol",
    "HeadersTooLarge",
    "UnknownExpectation",
    "UnknownTransferCoding",
    "too_many_connections",
]

_METHODS = "GET, HEAD, POST, DELETE, OPTIONS"
_REQUEST_LINE = re.compile(r"b'[!#$%&*+\-.^_`|~0-9A-Za-z]+ \S+ HTTP/1\.[01]'")
"""A request line as the parser quotes it; what is none of HTTP at all has no method."""
_SPARE_S = 1.0
"""Seconds that a connection over the limit has to ask for the gateway's health."""

HIGH_WATER = 256 * 1024
"""Bytes unsent to one client above which its engine is paused; a quarter of it resumes."""


class HeadersTooLarge(MalformedRequest):
    """The request line or header fields are over `server.limits.header`."""

    status = 431
    code = "headers_too_large"


class UnknownExpectation(MalformedRequest):
    """An Expect that no server knows (RFC 9110 section 10.1.1)."""

    status = 417
    code = "expectation_failed"


class UnknownMethod(MalformedRequest):
    """A method that no server knows (RFC 9110 section 9.1). How its body ends is not known either."""

    status = 501
    code = "method_not_implemented"


class UnknownTransferCoding(MalformedRequest):
    """A transfer coding besides chunked (RFC 9112 section 6.1)."""

    status = 501
    code = "unsupported_transfer_encoding"


def too_many_connections() -> Unavailable:
    """What a connection over `server.limits.connections` is told."""
    return Unavailable("too many connections are open; try again", code="too_many_connections", retry_after=1.0)


class Answered(web.StreamResponse):
    """What a handler returns once its answer went out through `ClientDownstream`: nothing is left to send."""

    def __init__(self, *, keep_alive: bool) -> None:
        super().__init__()
        self._keep_alive = keep_alive

    async def prepare(self, request: web.BaseRequest) -> None:  # noqa: ARG002
        """Send nothing."""
        return

    async def write_eof(self, data: Any = b"") -> None:  # noqa: ARG002
        """Send nothing."""
        return


KEEP = Answered(keep_alive=True)
CLOSE = Answered(keep_alive=False)


class EdgeProtocol(RequestHandler):
    """One client connection. `down` is the answer in progress, told of drained buffers and of the client leaving.

    `spare`: it is over the limit of connections and good for one question about the gateway's health, no more.
    """

    __slots__ = ("_broken", "_head_timer", "_reset_timer", "_spare_timer", "_wire", "down", "server", "spare")

    def __init__(self, manager: EdgeServer, **options: Any) -> None:
        super().__init__(manager, **options)
        self.server = manager
        self.down: ClientDownstream | None = None
        self._broken = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._reset_timer: asyncio.TimerHandle | None = None
        self._spare_timer: asyncio.TimerHandle | None = None
        self._wire: asyncio.Transport | None = None
        self.spare = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Bound the write buffer; turn away what is over the limit of connections and its reserve."""
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport) or self.transport is not None
        self._wire = self.transport
        assert self._wire is not None
        self._wire.set_write_buffer_limits(high=HIGH_WATER, low=HIGH_WATER // 4)
        self._head_timer = self._loop.call_later(self.server.limits.body_read, self._head_late)
        if self.server.overfull:
            self._refuse_raw(too_many_connections())
        elif self.server.full:
            self.spare = True
            self._spare_timer = self._loop.call_later(_SPARE_S, self._turn_away)

    def _head_late(self) -> None:
        """Nobody takes so long for a request line and a few fields, but who wants to hold all connections."""
        self._head_timer = None
        self.force_close()

    def _turn_away(self) -> None:
        if self.down is None:
            self._refuse_raw(too_many_connections())

    def _refuse_raw(self, err: GatewayError) -> None:
        down = ClientDownstream(self, keep_alive=False)
        body = openai_error(err)
        down.start(err.status, (("content-type", "application/json"), ("retry-after", "1")), len(body))
        down.write(body)
        down.end()
        self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell the answer in progress; aiohttp then cancels its handler."""
        for timer in (self._head_timer, self._reset_timer, self._spare_timer):
            if timer is not None:
                timer.cancel()
        if self.down is not None:
            self.down.lost = True
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        """The client's buffer fell below the low-water mark."""
        super().resume_writing()
        down = self.down
        if down is not None and down.on_drain is not None:
            down.on_drain()

    def reset_after(self, seconds: float) -> None:
        """Reset the connection if its last bytes have not left by then."""
        if self._reset_timer is None and self._wire is not None:
            self._reset_timer = self._loop.call_later(seconds, self._wire.abort)

    def data_received(self, data: bytes) -> None:
        """Feed the parser; on its first complaint let every body still being read fail too, and read no more.

        aiohttp queues the complaint behind the request whose body it is about, and that request would wait for ever.
        """
        if self._broken:
            return
        super().data_received(data)
        messages = self._messages
        if messages and self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        if messages and isinstance(messages[-1][0], _ErrInfo):
            self._broken = True
            failure = RequestPayloadError("bad framing")
            if self._current_request is not None and not self._current_request.content.is_eof():
                self._current_request.content.set_exception(failure)
            for _, payload in messages:
                if not payload.is_eof():
                    payload.set_exception(failure)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002
    ) -> web.StreamResponse:
        """JSON in place of aiohttp's text for what its parser refused.

        Its message quotes the request and is not used.
        """
        headers = [("content-type", "application/json"), ("x-should-retry", "false")]
        err: GatewayError
        if isinstance(exc, LineTooLong):
            limit = self.server.limits.header
            err = HeadersTooLarge(f"the request line or a header field is over the limit of {limit} bytes")
        elif isinstance(exc, BadHttpMessage) and "Too many" in exc.message:
            err = HeadersTooLarge(f"there are more than {self.max_headers} header fields")
        elif isinstance(exc, BadHttpMethod) and _REQUEST_LINE.search(exc.message):
            err = UnknownMethod("no server knows this method; see the Allow field for those that are known here")
            headers.append(("allow", _METHODS))
        elif status < 500:
            err = MalformedRequest("the request is not valid HTTP/1.1 (request line, header fields or body framing)")
        else:
            err = GatewayError("the gateway failed to handle this request")
        self.server.on_parser_error(err, request)
        down = ClientDownstream(self, keep_alive=False)
        body = openai_error(err)
        down.start(err.status, headers, len(body))
        down.write(body)
        down.end()
        return CLOSE

    def log_exception(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Count and drop aiohttp's own complaint: its text may quote the request."""
        self.server.unhandled += 1
