"""The public port: from a matched route to a call of the gateway."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from aiohttp import web
from multidict import CIMultiDictProxy

from gateway import clock
from gateway.core.memory import MemoryBudget
from gateway.edge import listing
from gateway.edge.answers import answer_error, answer_json
from gateway.edge.auth import Keyring, presented
from gateway.edge.body import check_declared, read_body
from gateway.edge.connection import HeadersTooLarge, UnknownExpectation, UnknownTransferCoding, too_many_connections
from gateway.edge.cors import Cors
from gateway.edge.downstream import ClientDownstream
from gateway.edge.handler import Exchange
from gateway.edge.limits import EdgeLimits
from gateway.edge.origin import ForeignCaller, page_is_foreign
from gateway.edge.routes import Route, find
from gateway.errors import MethodNotAllowed, NotOffered
from gateway.wire.inbound import Client, Inbound, forwarded
from gateway.wire.models import ModelEntry
from gateway.wire.ollama.models import version as ollama_version

__all__ = ["Gateway", "Public"]

_CREDENTIALS = frozenset(("authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"))
_HEALTH = frozenset(("live", "ready"))
_STATES = {
    "live": b'{"status":"live"}',
    "ready": b'{"status":"ready"}',
    "root": b'{"name":"kvgate","status":"running"}',
}
_OLLAMA_VERSION = "0.12.0"
"""Of Ollama's API as it is spoken here: clients ask it to learn what they may use."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/@+-]{1,128}")


class Gateway(Protocol):
    """What the door opens to."""

    async def serve(self, inbound: Inbound, down: ClientDownstream) -> None:
        """Answer one request of a surface through `down`, or raise GatewayError before anything was sent."""

    def models(self, client: Client) -> Sequence[ModelEntry]:
        """The models that this client may see."""

    def model(self, client: Client, model: str) -> ModelEntry:
        """One of them. Raises UnknownModel."""

    async def stored(self, client: Client, method: str, answer: str, action: str, down: ClientDownstream) -> None:
        """Ask the backend that keeps an answer for this client. Raises NotFound for an answer of nobody's."""

    def ready(self) -> bool:
        """Whether configuration is loaded and the process is not draining; says nothing about backends."""


class Public:
    """Answers the exchanges of the public port. `keyring` and `cors` are replaced whole at a reload."""

    def __init__(self, gateway: Gateway, keyring: Keyring, limits: EdgeLimits, cors: Cors | None = None) -> None:
        self._gateway = gateway
        self.keyring = keyring
        self.limits = limits
        self.cors = cors if cors is not None else Cors()
        self.memory = MemoryBudget(limits.memory)

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one exchange, or raise GatewayError."""
        request, down = exchange.request, exchange.down
        found = find(request._message.path, request.headers)
        down.dialect = found.dialect
        if exchange.spare and (found.route is None or found.route.name not in _HEALTH):
            raise too_many_connections()
        self._check_head(exchange)
        route = found.known
        exchange.route = route.template
        if request.method not in route.methods:
            self._other_method(exchange, route)
        elif route.name == "serve":
            await self._serve(exchange, route)
        elif route.name in _HEALTH or route.name == "root":
            self._say_state(down, route)
        else:
            await self._tell(exchange, route, found.id, self._identify(exchange))

    def _check_head(self, exchange: Exchange) -> None:
        request = exchange.request
        if sum(len(k) + len(v) for k, v in request.raw_headers) > self.limits.header:
            raise HeadersTooLarge(
                f"the header fields are over the limit of {self.limits.header} bytes (server.limits.header)"
            )
        if request.headers.get("Expect", "100-continue").lower() != "100-continue":
            raise UnknownExpectation("no Expect but 100-continue is met here")
        if any(coding.strip().lower() != "chunked" for coding in request.headers.getall("Transfer-Encoding", ())):
            exchange.down.keep_alive = False  # where this body ends is a matter of opinion
            raise UnknownTransferCoding("no Transfer-Encoding but chunked is read; compress with Content-Encoding")

    def _say_state(self, down: ClientDownstream, route: Route) -> None:
        if route.name == "ready" and not self._gateway.ready():
            answer_json(down, 503, b'{"status":"not ready"}')
        else:
            answer_json(down, 200, _STATES[route.name])

    async def _tell(self, exchange: Exchange, route: Route, wanted: str, client: Client) -> None:
        """What the gateway answers itself, for a client with a key."""
        gateway, dialect = self._gateway, exchange.down.dialect
        if route.name == "models":
            body = listing.listed(gateway.models(client), dialect)
        elif route.name == "model":
            body = listing.one(gateway.model(client, wanted), dialect)
        elif route.name == "tags":
            body = listing.tags(gateway.models(client))
        elif route.name == "ps":
            body = listing.running(gateway.models(client))
        elif route.name == "version":
            body = ollama_version(_OLLAMA_VERSION)
        elif route.name == "show":
            with self.memory.hold() as hold:
                wanted = listing.wanted(await read_body(exchange.request, self.limits, hold))
            body = listing.shown(gateway.model(client, wanted))
        else:
            await self._stored(exchange, route, wanted, client)
            return
        answer_json(exchange.down, 200, body)

    async def _stored(self, exchange: Exchange, route: Route, answer: str, client: Client) -> None:
        """An answer that a backend keeps; what asks for no answer that was made is not served."""
        if not answer:
            raise NotOffered(f"{route.template} is not served here")
        action = route.template.partition("{id}")[2]
        method = "GET" if exchange.request.method == "HEAD" else exchange.request.method
        await self._gateway.stored(client, method, answer, action, exchange.down)

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
        client = self.keyring.identify(presented(headers), request.remote or "")
        # Without keys a page of any site could reach a local gateway through its visitor's browser.
        if self.keyring.open and page_is_foreign(headers) and not self.cors.allows(headers):
            raise ForeignCaller("web pages of other origins are not served without a key")
        exchange.client = client.name
        return client

    async def _serve(self, exchange: Exchange, route: Route) -> None:
        request = exchange.request
        client = self._identify(exchange)
        check_declared(request, self.limits)
        with self.memory.hold() as hold:
            headers = _fields(request.headers)
            inbound = Inbound(
                surface=route.surface or "chat",
                body=await read_body(request, self.limits, hold),
                headers=headers,
                client=client,
                received_at=exchange.started_at,
                request_id=_printable_id(request),
                note=exchange.note,
                content_type=headers.get("content-type", "application/json"),
                forward=forwarded(headers),
                hold=hold,
            )
            load = listing.loaded(inbound.surface, inbound.body, int(clock.wall()))
            if load is None:
                await self._gateway.serve(inbound, exchange.down)
                return
            self._gateway.model(client, load[0])  # there, and this client's
            answer_json(exchange.down, 200, load[1])


def _fields(headers: CIMultiDictProxy[str]) -> dict[str, str]:
    """The fields without credentials, names in lower case; those that came several times are one list."""
    fields: dict[str, str] = {}
    for key, value in headers.items():
        name = key.lower()
        if name not in _CREDENTIALS:
            fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


def _printable_id(request: web.BaseRequest) -> str | None:
    sent = request.headers.get("x-request-id")
    return sent if sent is not None and _REQUEST_ID.fullmatch(sent) else None
