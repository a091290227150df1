"""The public port described as OpenAPI 3.1, made from the routes and surfaces that serve it."""

from __future__ import annotations

import json
from typing import Any

from gateway import __version__
from gateway.edge.openapi_answers import RESPONSES, SCHEMAS, responses
from gateway.edge.openapi_requests import REQUESTS
from gateway.edge.routes import ROUTES, Route
from gateway.wire.surfaces import SURFACES, Kind

__all__ = ["openapi", "openapi_text"]

_Node = dict[str, Any]

_KEYS: dict[str, _Node] = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "api-key": {"type": "apiKey", "in": "header", "name": "api-key"},
}
_PATH_ID: _Node = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
_LABEL: _Node = {
    "name": "x-data-label",
    "in": "header",
    "description": "How far the data may travel; backends that are not cleared for it are left out.",
    "schema": {"enum": ["public", "internal", "confidential", "restricted"]},
}
_FALLBACK: _Node = {
    "name": "x-allow-fallback",
    "in": "header",
    "description": "Which other models may answer when no backend of the one asked for works: none, quant (other "
    "number formats of the same weights), any that the operator declares, or their names with commas between them.",
    "schema": {"type": "string", "minLength": 1},
}
_CONTINUATION: _Node = {
    "name": "x-allow-continuation",
    "in": "header",
    "description": "Whether a stream whose engine fails in the middle may go on in another, where the model allows it.",
    "schema": {"enum": ["yes", "no"]},
}
_VERSION: _Node = {
    "name": "anthropic-version",
    "in": "header",
    "description": "Asks for the answer in Anthropic's dialect.",
    "schema": {"type": "string", "pattern": "^[0-9-]{1,20}$"},
}
_SUMMARIES = {
    "models": "The models that this key may use",
    "model": "One model",
    "tags": "The models, in Ollama's dialect",
    "show": "One model, in Ollama's dialect",
    "ps": "The models of which a backend works now",
    "version": "The version of Ollama's API that is spoken",
    "stored_response": "Responses are not kept here; says so",
    "live": "Whether the process turns",
    "ready": "Whether it takes requests",
    "root": "Who is there",
}
_OPEN = frozenset(("live", "ready", "root"))
_TEXT: _Node = {"type": "string"}
_NAMED: _Node = {"type": "object", "required": ["model"], "properties": {"model": _TEXT}}


def openapi() -> _Node:
    """The description, as a value of plain dicts and lists."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kvgate",
            "version": __version__,
            "description": "Paths are also found without /v1, below /openai, /anthropic and /ollama, and with doubled "
            "or trailing slashes. Bodies are listed loosely: members that are not named here reach the engine too.",
        },
        "paths": {
            route.template: {method.lower(): _operation(route, method) for method in route.methods} for route in ROUTES
        },
        "components": {"schemas": SCHEMAS, "responses": RESPONSES, "securitySchemes": _KEYS},
        "security": [{name: []} for name in _KEYS],
    }


def openapi_text() -> str:
    """The description as JSON text, indented."""
    return json.dumps(openapi(), indent=2) + "\n"


def _operation(route: Route, method: str) -> _Node:
    made: _Node = {
        "operationId": "_".join([method.lower(), *route.template.translate(_NAMING).split()]),
        "summary": _summary(route),
        "responses": responses(route, method),
    }
    parameters = [_PATH_ID] if "{id}" in route.template else []
    if route.name in ("models", "model"):
        parameters = [*parameters, _VERSION]
    if route.surface is not None:
        parameters = [*parameters, _LABEL, _FALLBACK, _CONTINUATION]
    if parameters:
        made["parameters"] = parameters
    if route.name in _OPEN:
        made["security"] = []
    body = _request(route)
    if body is not None:
        form = route.surface is not None and SURFACES[route.surface].kind is Kind.FORM
        kind = "multipart/form-data" if form else "application/json"
        made["requestBody"] = {"required": True, "content": {kind: {"schema": body}}}
    return made


_NAMING = str.maketrans({"/": " ", "{": "", "}": ""})


def _summary(route: Route) -> str:
    if route.surface is None:
        return _SUMMARIES[route.name]
    noun = SURFACES[route.surface].noun
    return noun[0].upper() + noun[1:]


def _request(route: Route) -> _Node | None:
    if route.name == "show":
        return _NAMED
    if route.template == "/api/embeddings":  # the older spelling of /api/embed, with one text
        return {**_NAMED, "required": ["model", "prompt"], "properties": {"model": _TEXT, "prompt": _TEXT}}
    return REQUESTS[route.surface] if route.surface is not None else None
