"""aiohttp's low-level server, with our own answers to what its parser refuses and a view of the transport."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import http_parser, web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler, RequestPayloadError, _ErrInfo

from gateway.edge.downstream import ClientDownstream
from gateway.edge.limits import EdgeLimits
from gateway.errors import ConfigError, GatewayError, MalformedRequest, Unavailable
from gateway.wire.error_body import openai_error

__all__ = [
    "CLOSE",
    "HIGH_WATER",
    "KEEP",
    "Answered",
    "EdgeProtocol",
    "EdgeServer",
    "HeadersTooLarge",
    "require_c_parser",
]

HIGH_WATER = 256 * 1024
"""Bytes unsent to one client above which its engine is paused; a quarter of it resumes."""


def require_c_parser() -> None:
    """Raise ConfigError on aiohttp's pure-Python HTTP parser.

    It is slow, and was open to request smuggling once (GHSA-9548-qrrj-x5pj).
    """
    compiled = getattr(http_parser, "HttpRequestParserC", None)
    if compiled is None or http_parser.HttpRequestParser is not compiled:
        raise ConfigError(
            "aiohttp runs without its compiled HTTP parser; install its wheel and unset AIOHTTP_NO_EXTENSIONS"
        )


class HeadersTooLarge(MalformedRequest):
    """The request line or header fields are over `server.limits.header`."""

    status = 431
    code = "headers_too_large"


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
    """One client connection. `down` is the answer in progress, told of drained buffers and of the client leaving."""

    __slots__ = ("_broken", "_reset_timer", "_wire", "down", "server")

    def __init__(self, manager: EdgeServer, **options: Any) -> None:
        super().__init__(manager, **options)
        self.server = manager
        self.down: ClientDownstream | None = None
        self._broken = False
        self._reset_timer: asyncio.TimerHandle | None = None
        self._wire: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Bound the write buffer; turn away what is over the limit of connections."""
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport) or self.transport is not None
        self._wire = self.transport
        assert self._wire is not None
        self._wire.set_write_buffer_limits(high=HIGH_WATER, low=HIGH_WATER // 4)
        if self.server.full:
            refusal = Unavailable(
                "too many connections are open; try again", code="too_many_connections", retry_after=1.0
            )
            self._refuse_raw(refusal)

    def _refuse_raw(self, err: GatewayError) -> None:
        down = ClientDownstream(self, keep_alive=False)
        body = openai_error(err)
        down.start(err.status, (("content-type", "application/json"), ("retry-after", "1")), len(body))
        down.write(body)
        down.end()
        self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell the answer in progress; aiohttp then cancels its handler."""
        if self._reset_timer is not None:
            self._reset_timer.cancel()
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
        err: GatewayError
        if isinstance(exc, LineTooLong):
            limit = self.server.limits.header
            err = HeadersTooLarge(f"the request line or a header field is over the limit of {limit} bytes")
        elif status < 500:
            err = MalformedRequest("the request is not valid HTTP/1.1 (request line, header fields or body framing)")
        else:
            err = GatewayError("the gateway failed to handle this request")
        self.server.on_parser_error(err, request)
        down = ClientDownstream(self, keep_alive=False)
        body = openai_error(err)
        down.start(err.status, (("content-type", "application/json"), ("x-should-retry", "false")), len(body))
        down.write(body)
        down.end()
        return CLOSE

    def log_exception(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Count and drop aiohttp's own complaint: its text may quote the request."""
        self.server.unhandled += 1


class EdgeServer(web.Server):
    """A server whose handler answers through `ClientDownstream`; a client that leaves cancels its handler at once.

    Run it with `web.ServerRunner` and `web.TCPSite`. `unhandled` counts failures below the handler.
    """

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        limits: EdgeLimits | None = None,
        *,
        on_parser_error: Callable[[GatewayError, web.BaseRequest], None] | None = None,
    ) -> None:
        require_c_parser()
        self.limits = limits if limits is not None else EdgeLimits()
        self.on_parser_error = on_parser_error if on_parser_error is not None else _ignore
        self.unhandled = 0
        self.draining = False
        super().__init__(
            handler,
            handler_cancellation=True,
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=self.limits.keep_alive,
            lingering_time=0.0,
            max_field_size=self.limits.header,
            max_line_size=self.limits.header,
        )

    def __call__(self) -> EdgeProtocol:
        """Make the protocol of a new connection."""
        return EdgeProtocol(self, loop=self._loop, **self._kwargs)

    @property
    def full(self) -> bool:
        """Whether more connections are open than allowed."""
        return len(self._connections) > self.limits.connections

    def close_idle(self) -> None:
        """Close connections that serve nothing, let the others finish, and offer no keep-alive from here on."""
        self.draining = True
        for connection in self.connections:
            if connection._request_in_progress or connection._messages:
                connection.close()
            else:
                connection.force_close()


def _ignore(err: GatewayError, request: web.BaseRequest) -> None:  # noqa: ARG001
    return
