"""Paths: what is served, in every spelling that base URLs produce. No redirects: one may turn POST into GET."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from gateway.errors import NotFound

__all__ = ["Route", "match", "path_of", "served"]


@dataclass(frozen=True, slots=True)
class Route:
    """One thing that is served. `template` is its label in logs; `methods` include HEAD where GET is."""

    name: str
    template: str
    methods: tuple[str, ...]
    surface: str | None = None


_GET = ("GET", "HEAD")
_CHAT = Route("serve", "/v1/chat/completions", ("POST",), "chat")
_COMPLETIONS = Route("serve", "/v1/completions", ("POST",), "completions")
_MODELS = Route("models", "/v1/models", _GET)
_MODEL = Route("model", "/v1/models/{id}", _GET)
_LIVE = Route("live", "/health/live", _GET)
_READY = Route("ready", "/health/ready", _GET)

_BY_PATH = {
    "chat/completions": _CHAT,
    "completions": _COMPLETIONS,
    "models": _MODELS,
    "health/live": _LIVE,
    "health/ready": _READY,
}
# The spellings that nearly everybody sends, found without taking the path apart.
_EXACT = {route.template: route for route in _BY_PATH.values()}


def path_of(target: str) -> str:
    """The path of a request target, percent-encoded: without query, fragment, or (absolute form) scheme and host."""
    for mark in ("?", "#"):
        target = target.partition(mark)[0]
    if not target.startswith("/") and "://" in target:
        target = "/" + target.partition("://")[2].partition("/")[2]
    return target


def match(target: str) -> tuple[Route, str]:
    """The route of a request target, and the model id of `/v1/models/{id}` (else empty).

    `/x`, `/v1/x`, `/v1/v1/x`, doubled and trailing slashes all mean `/v1/x`. Ids may hold slashes, raw or encoded.
    Raises NotFound, naming what is served.
    """
    route = _EXACT.get(target)
    if route is not None:
        return route, ""
    segments = [segment for segment in path_of(target).split("/") if segment]
    while segments and segments[0] == "v1":
        del segments[0]
    route = _BY_PATH.get("/".join(segments))
    if route is not None:
        return route, ""
    if len(segments) > 1 and segments[0] == "models":
        return _MODEL, unquote("/".join(segments[1:]))
    raise NotFound(f"no such path; served here: {served()}")


def served() -> str:
    """What is served, for people: `POST /v1/chat/completions, ...`."""
    routes = (_CHAT, _COMPLETIONS, _MODELS, _MODEL, _LIVE, _READY)
    return ", ".join(f"{route.methods[0]} {route.template}" for route in routes)
