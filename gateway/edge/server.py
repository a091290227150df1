"""aiohttp's low-level server with our own connections: no routing, no middleware, no access log of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import http_parser, web

from gateway.edge.connection import EdgeProtocol
from gateway.edge.limits import EdgeLimits
from gateway.errors import ConfigError, GatewayError

__all__ = ["RESERVE", "EdgeServer", "require_c_parser"]

RESERVE = 16
"""Connections over the limit that may ask for the gateway's health."""


def require_c_parser() -> None:
    """Raise ConfigError on aiohttp's pure-Python HTTP parser.

    It is slow, and was open to request smuggling once (GHSA-9548-qrrj-x5pj).
    """
    compiled = getattr(http_parser, "HttpRequestParserC", None)
    if compiled is None or http_parser.HttpRequestParser is not compiled:
        raise ConfigError(
            "aiohttp runs without its compiled HTTP parser; install its wheel and unset AIOHTTP_NO_EXTENSIONS"
        )


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

    @property
    def overfull(self) -> bool:
        """Whether the reserve for health checks is used up too: a busy gateway that seems dead would be restarted."""
        return len(self._connections) > self.limits.connections + RESERVE

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
