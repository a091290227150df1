"""The public port: from a matched route to a call of the gateway."""

from __future__ import annotations

import re
from typing import Protocol

from aiohttp import web

from gateway.edge.answers import answer_error, answer_json
from gateway.edge.auth import Keyring
from gateway.edge.body import BodyBudget, check_declared, read_body
from gateway.edge.connection import HeadersTooLarge, UnknownExpectation, UnknownTransferCoding
from gateway.edge.cors import Cors
from gateway.edge.downstream import ClientDownstream
from gateway.edge.handler import Exchange
from gateway.edge.limits import EdgeLimits
from gateway.edge.origin import ForeignCaller, page_is_foreign
from gateway.edge.routes import Route, match
from gateway.errors import MethodNotAllowed
from gateway.wire.inbound import Client, Inbound

__all__ = ["Gateway", "Public"]

_CREDENTIALS = frozenset(("authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"))
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/@+-]{1,128}")


class Gateway(Protocol):
    """What the door opens to."""

    async def serve(self, inbound: Inbound, down: ClientDownstream) -> None:
        """Answer one generation request through `down`, or raise GatewayError before anything was sent."""

    def models(self, client: Client) -> bytes:
        """The model list that this client may see, as JSON."""

    def model(self, client: Client, model: str) -> bytes:
        """One entry of that list, as JSON. Raises UnknownModel."""

    def ready(self) -> bool:
        """Whether configuration is loaded and the process is not draining; says nothing about backends."""


class Public:
    """Answers the exchanges of the public port. `keyring` and `cors` are replaced whole at a reload."""

    def __init__(self, gateway: Gateway, keyring: Keyring, limits: EdgeLimits, cors: Cors | None = None) -> None:
        self._gateway = gateway
        self.keyring = keyring
        self.limits = limits
        self.cors = cors if cors is not None else Cors()
        self.bodies = BodyBudget(limits.memory)

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one exchange, or raise GatewayError."""
        request, down = exchange.request, exchange.down
        if sum(len(k) + len(v) for k, v in request.raw_headers) > self.limits.header:
            raise HeadersTooLarge(
                f"the header fields are over the limit of {self.limits.header} bytes (server.limits.header)"
            )
        if request.headers.get("Expect", "100-continue").lower() != "100-continue":
            raise UnknownExpectation("no Expect but 100-continue is met here")
        if any(coding.strip().lower() != "chunked" for coding in request.headers.getall("Transfer-Encoding", ())):
            down.keep_alive = False  # where this body ends is a matter of opinion
            raise UnknownTransferCoding("no Transfer-Encoding but chunked is read; compress with Content-Encoding")
        route, model = match(request._message.path)
        exchange.route = route.template
        if request.method not in route.methods:
            self._other_method(exchange, route)
            return
        if route.name == "serve":
            await self._serve(exchange, route)
        elif route.name == "live":
            answer_json(down, 200, b'{"status":"live"}')
        elif route.name == "ready":
            ready = self._gateway.ready()
            answer_json(down, 200 if ready else 503, b'{"status":"ready"}' if ready else b'{"status":"not ready"}')
        else:
            client = self._identify(exchange)
            answer_json(
                down,
                200,
                self._gateway.models(client) if route.name == "models" else self._gateway.model(client, model),
            )

    def _other_method(self, exchange: Exchange, route: Route) -> None:
        request, down = exchange.request, exchange.down
        if request.method == "OPTIONS" and self.cors.on and self.cors.allows(request.headers):
            down.start(204, self.cors.preflight(request.headers), None)
            down.end()
            return
        allow = ", ".join(route.methods)
        err = MethodNotAllowed(f"{route.template} takes {allow}")
        exchange.note.outcome, exchange.note.reason = "refused", err.code
        answer_error(down, err, (("allow", allow),))

    def _identify(self, exchange: Exchange) -> Client:
        request = exchange.request
        headers = request.headers
        client = self.keyring.identify(headers.get("Authorization"), headers.get("x-api-key"), request.remote or "")
        # Without keys a page of any site could reach a local gateway through its visitor's browser.
        if self.keyring.open and page_is_foreign(headers) and not self.cors.allows(headers):
            raise ForeignCaller("web pages of other origins are not served without a key")
        exchange.client = client.name
        return client

    async def _serve(self, exchange: Exchange, route: Route) -> None:
        request = exchange.request
        client = self._identify(exchange)
        check_declared(request, self.limits)
        with self.bodies.hold() as hold:
            body = await read_body(request, self.limits, hold)
            headers = {
                name: value for key, value in request.headers.items() if (name := key.lower()) not in _CREDENTIALS
            }
            inbound = Inbound(
                surface=route.surface or "chat",
                body=body,
                headers=headers,
                client=client,
                received_at=exchange.started_at,
                request_id=_printable_id(request),
                note=exchange.note,
            )
            await self._gateway.serve(inbound, exchange.down)


def _printable_id(request: web.BaseRequest) -> str | None:
    sent = request.headers.get("x-request-id")
    return sent if sent is not None and _REQUEST_ID.fullmatch(sent) else None
