"""Paths: what is served, in every spelling that base URLs produce. No redirects: one may turn POST into GET."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from gateway.errors import NotFound
from gateway.wire.dialect import DIALECTS, OPENAI, Dialect, dialect_of
from gateway.wire.surfaces import SURFACES

__all__ = ["ROUTES", "Match", "Route", "find", "path_of", "served"]


@dataclass(frozen=True, slots=True)
class Route:
    """One thing that is served.

    `name` says who answers it. `template` is its label in logs; `methods` include HEAD where GET is. `surface` is that
    of `gateway.wire.surfaces` for what backends answer. `dialect` is how its errors are written.
    """

    name: str
    template: str
    methods: tuple[str, ...]
    surface: str | None = None
    dialect: Dialect = OPENAI


@dataclass(frozen=True, slots=True)
class Match:
    """What a request target means: a route, or None where nothing is served, and the id that the path holds."""

    route: Route | None
    id: str
    dialect: Dialect

    @property
    def known(self) -> Route:
        """The route. Raises NotFound, naming what is served."""
        if self.route is None:
            raise NotFound(f"no such path; served here: {served()}")
        return self.route


_GET = ("GET", "HEAD")
_POST = ("POST",)
_OLLAMA = DIALECTS["ollama_generate"]
_ANTHROPIC = DIALECTS["anthropic"]
_RESPONSES = DIALECTS["responses"]

_SURFACES = tuple(Route("serve", each.path, _POST, each.name, dialect_of(each.name)) for each in SURFACES.values())
_OLD_EMBEDDINGS = Route("serve", "/api/embeddings", _POST, "ollama_embed", _OLLAMA)
_MODEL = Route("model", "/v1/models/{id}", _GET)
_RESPONSE = Route("stored_response", "/v1/responses/{id}", ("GET", "HEAD", "DELETE"), dialect=_RESPONSES)
_CANCEL = Route("stored_response", "/v1/responses/{id}/cancel", _POST, dialect=_RESPONSES)
_INPUT_ITEMS = Route("stored_response", "/v1/responses/{id}/input_items", _GET, dialect=_RESPONSES)

_PLAIN = (
    *_SURFACES,
    _OLD_EMBEDDINGS,
    Route("stored_response", "/v1/responses/compact", _POST, dialect=_RESPONSES),
    Route("stored_response", "/v1/responses/input_tokens", _POST, dialect=_RESPONSES),
    Route("models", "/v1/models", _GET),
    Route("tags", "/api/tags", _GET, dialect=_OLLAMA),
    Route("show", "/api/show", _POST, dialect=_OLLAMA),
    Route("ps", "/api/ps", _GET, dialect=_OLLAMA),
    Route("version", "/api/version", _GET, dialect=_OLLAMA),
    Route("live", "/health/live", _GET),
    Route("ready", "/health/ready", _GET),
    Route("root", "/", _GET),
)

ROUTES: tuple[Route, ...] = (*_PLAIN, _MODEL, _RESPONSE, _CANCEL, _INPUT_ITEMS)
"""Everything that the public port serves."""

_BASES = frozenset(("v1", "openai", "anthropic", "ollama"))
"""What base URLs end in, alone or after one another, before the part of a path that says what is asked for."""
_ALIASES = {"v2/rerank": "rerank", "reranking": "rerank"}
"""Paths of the same thing elsewhere: Cohere's second version, and llama.cpp's."""

_SHARED = frozenset(("models", "model", "root"))
"""Routes by name that clients of OpenAI's and of Anthropic's dialect both ask."""

# The spellings that nearly everybody sends, found without taking the path apart.
_EXACT = {route.template: Match(route, "", route.dialect) for route in _PLAIN}
_BY_PATH = {route.template.strip("/").removeprefix("v1/"): _EXACT[route.template] for route in _PLAIN}


def path_of(target: str) -> str:
    """The path of a request target, percent-encoded: without query, fragment, or (absolute form) scheme and host."""
    for mark in ("?", "#"):
        target = target.partition(mark)[0]
    if not target.startswith("/") and "://" in target:
        target = "/" + target.partition("://")[2].partition("/")[2]
    return target


def find(target: str, headers: Mapping[str, str]) -> Match:
    """What a request target means.

    `/x`, `/v1/x`, `/v1/v1/x`, `/openai/v1/x`, doubled and trailing slashes all mean `/v1/x`. Model ids may hold
    slashes, raw or encoded. Where nothing is served, or the same path serves clients of several families, the dialect
    is that of whoever seems to be asking: clients of Anthropic's send `anthropic-version`, paths of Ollama's begin with
    `/api`.
    """
    found = _EXACT.get(target)
    if found is None:
        found = _taken_apart(target)
    if (found.route is None or found.route.name in _SHARED) and "anthropic-version" in headers:
        return Match(found.route, found.id, _ANTHROPIC)
    return found


def _taken_apart(target: str) -> Match:
    segments = [segment for segment in path_of(target).split("/") if segment]
    while segments and (segments[0] in _BASES or segments[:2] == ["api", "v1"]):
        del segments[0]
    path = "/".join(segments)
    found = _BY_PATH.get(_ALIASES.get(path, path))
    if found is not None:
        return found
    rest = segments[1:]
    match segments[:1]:
        case ["models"] if rest:
            return Match(_MODEL, unquote("/".join(rest)), OPENAI)
        case ["responses"] if len(rest) == 1:
            return Match(_RESPONSE, unquote(rest[0]), _RESPONSES)
        case ["responses"] if len(rest) == 2 and rest[1] == "cancel":
            return Match(_CANCEL, unquote(rest[0]), _RESPONSES)
        case ["responses"] if len(rest) == 2 and rest[1] == "input_items":
            return Match(_INPUT_ITEMS, unquote(rest[0]), _RESPONSES)
        case ["api"]:
            return Match(None, "", _OLLAMA)
        case ["messages"]:
            return Match(None, "", _ANTHROPIC)
        case _:
            return Match(None, "", OPENAI)


def served() -> str:
    """What is served, for people: `POST /v1/chat/completions, ...`."""
    return ", ".join(f"{route.methods[0]} {route.template}" for route in ROUTES if route.name != "stored_response")
