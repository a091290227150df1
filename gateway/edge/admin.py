"""The admin port: health, metrics, reload, and a view of backends, queue and decisions."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import unquote

from gateway.edge.admin_page import CSP, page
from gateway.edge.answers import answer_error, answer_json
from gateway.edge.connection import too_many_connections
from gateway.edge.handler import Exchange
from gateway.edge.openapi import openapi
from gateway.edge.origin import ForeignCaller, host_of, is_loopback, page_is_foreign
from gateway.edge.routes import path_of
from gateway.errors import ConfigError, MethodNotAllowed, NotFound
from gateway.telemetry.metrics import CONTENT_TYPE, Metrics

__all__ = ["Admin", "AdminPort"]

_GET = ("GET", "HEAD")
_METHODS: dict[str, tuple[str, ...]] = {
    "/": _GET,
    "/health/live": _GET,
    "/health/ready": _GET,
    "/metrics": _GET,
    "/openapi.json": _GET,
    "/admin/reload": ("POST",),
    "/admin/backends": _GET,
    "/admin/backends/{name}/drain": ("POST", "DELETE"),
    "/admin/queue": _GET,
    "/admin/keys": _GET,
    "/admin/decisions/{id}": _GET,
}
_DECISIONS = "/admin/decisions/"
_BACKEND = re.compile(r"/admin/backends/([^/]+)/drain")
_LINKS = tuple(path for path, methods in _METHODS.items() if methods == _GET and "{" not in path and path != "/")


class Admin(Protocol):
    """What the admin port shows and can do."""

    def ready(self) -> bool:
        """Whether configuration is loaded and the process is not draining."""

    async def reload(self) -> dict[str, Any]:
        """Read the configuration again and apply it whole.

        Raises ConfigError and changes nothing when it can't be used.
        """

    def backends(self) -> list[dict[str, Any]]:
        """Every backend as it stands now (`backend_view`); at least `name` and `state`."""

    def drain(self, backend: str, on: bool) -> dict[str, Any] | None:
        """Keep a backend from new requests, or let it have them again; what runs there goes on.

        Its row as in `backends`; None where there is none of that name.
        """

    def queue(self) -> dict[str, Any]:
        """What waits, for whom and why (`queue_view`); at least how many `waiting`, and `models` by name."""

    def keys(self) -> list[dict[str, Any]]:
        """Every configured client by name: what it runs, and what is left of its limits. No key."""

    def decision(self, request_id: str) -> dict[str, Any] | None:
        """The journal's record of a request, None when it is not known."""


class AdminPort:
    """Answers the exchanges of the admin port. It asks for no key: whom it is bound to is the operator's choice."""

    def __init__(self, admin: Admin, metrics: Metrics) -> None:
        self._admin = admin
        self._metrics = metrics

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one exchange, or raise GatewayError."""
        request, down = exchange.request, exchange.down
        path = path_of(request._message.path)
        if len(path) > 1:
            path = path.rstrip("/")
        if exchange.spare and not path.startswith("/health/"):
            raise too_many_connections()
        template = "/admin/decisions/{id}" if path.startswith(_DECISIONS) else path
        drained = _BACKEND.fullmatch(path)
        if drained is not None:
            template = "/admin/backends/{name}/drain"
        methods = _METHODS.get(template)
        if methods is None:
            raise NotFound(f"no such path; served here: {', '.join(_METHODS)}")
        exchange.route = template
        if request.method not in methods:
            allow = ", ".join(methods)
            answer_error(down, MethodNotAllowed(f"{template} takes {allow}"), (("allow", allow),))
            return
        if template.startswith("/admin") or template == "/":
            _refuse_foreign_pages(request.headers, _bound_to_loopback(exchange))
        await self._show(exchange, template, path)

    async def _show(self, exchange: Exchange, template: str, path: str) -> None:
        down, admin = exchange.down, self._admin
        if template == "/health/live":
            answer_json(down, 200, {"status": "live"})
        elif template == "/health/ready":
            ready = admin.ready()
            answer_json(down, 200 if ready else 503, {"status": "ready" if ready else "not ready"})
        elif template == "/metrics":
            self._metrics.read()
            self._whole(exchange, await asyncio.to_thread(self._metrics.render), (("content-type", CONTENT_TYPE),))
        elif template == "/openapi.json":
            answer_json(down, 200, openapi())
        elif template == "/admin/reload":
            await self._reload(exchange)
        elif template == "/admin/backends":
            answer_json(down, 200, {"backends": admin.backends()})
        elif template == "/admin/backends/{name}/drain":
            self._drain(exchange, path)
        elif template == "/admin/queue":
            answer_json(down, 200, admin.queue())
        elif template == "/admin/keys":
            answer_json(down, 200, {"keys": admin.keys()})
        elif template == "/":
            html = page(admin.backends(), admin.queue(), _LINKS)
            self._whole(
                exchange, html, (("content-type", "text/html; charset=utf-8"), ("content-security-policy", CSP))
            )
        else:
            record = admin.decision(unquote(path.removeprefix(_DECISIONS)))
            if record is None:
                raise NotFound(
                    "no decision of this id is remembered; the journal file, if there is one, goes further back"
                )
            answer_json(down, 200, record)

    def _drain(self, exchange: Exchange, path: str) -> None:
        named = _BACKEND.fullmatch(path)
        name = unquote(named[1]) if named is not None else ""
        row = self._admin.drain(name, exchange.request.method == "POST")
        if row is None:
            known = [str(each["name"]) for each in self._admin.backends()]
            if name in known:
                raise NotFound(
                    f"{name} was removed from the file and goes when its last request ends; put it back there"
                )
            raise NotFound(f"there is no such backend; known here: {', '.join(known)}")
        answer_json(exchange.down, 200, row)

    async def _reload(self, exchange: Exchange) -> None:
        try:
            answer_json(exchange.down, 200, await self._admin.reload())
        except ConfigError as err:
            # The file is the caller's to mend; what ran before still runs.
            err.status = 422
            answer_error(exchange.down, err)

    @staticmethod
    def _whole(exchange: Exchange, body: bytes, headers: tuple[tuple[str, str], ...]) -> None:
        exchange.down.start(200, headers, len(body))
        exchange.down.write(body)
        exchange.down.end()


def _bound_to_loopback(exchange: Exchange) -> bool:
    transport = exchange.request.transport
    name = transport.get_extra_info("sockname") if transport is not None else None
    return not isinstance(name, tuple) or is_loopback(str(name[0]))


def _refuse_foreign_pages(headers: Mapping[str, str], loopback: bool) -> None:
    """Raise ForeignCaller for what a page of another site made its visitor's browser send.

    On loopback the Host must be loopback too: a page may rebind its own name to 127.0.0.1 and then count as
    same-origin. A program that must send an Origin adds `x-kvgate-admin`; a page can't, it would need a preflight and
    none is granted here.
    """
    if loopback:
        foreign = not is_loopback(host_of(headers.get("Host", "localhost"))) or page_is_foreign(headers)
    else:
        origin = headers.get("Origin")
        same = origin is None or origin.partition("://")[2].lower() == headers.get("Host", "").lower()
        foreign = not same or headers.get("Sec-Fetch-Site") in ("cross-site", "same-site")
    excused = "x-kvgate-admin" in headers and (not loopback or is_loopback(host_of(headers.get("Host", "localhost"))))
    if foreign and not excused:
        raise ForeignCaller("the admin port does not answer web pages of other origins")
