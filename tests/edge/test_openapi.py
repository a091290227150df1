"""The description of the public port: whole, consistent, and the same wherever it is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.cli.main import main
from gateway.edge.openapi import openapi, openapi_text
from gateway.edge.openapi_requests import REQUESTS
from gateway.edge.routes import ROUTES
from gateway.wire.surfaces import SURFACES, Kind


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in openapi()["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for item in node:
            yield from references(item)


def test_every_route_is_described_with_its_methods() -> None:
    described = {(path, method) for path, method, _ in operations()}
    assert described == {(route.template, method.lower()) for route in ROUTES for method in route.methods}


def test_every_surface_has_a_body_that_names_a_model() -> None:
    assert REQUESTS.keys() == SURFACES.keys()
    for name, shape in REQUESTS.items():
        assert shape["required"][0] == "model"
        assert set(shape["required"]) <= shape["properties"].keys()
        (kind,) = openapi()["paths"][SURFACES[name].path]["post"]["requestBody"]["content"]
        assert (kind == "multipart/form-data") == (SURFACES[name].kind is Kind.FORM)


def test_operations_have_ids_of_their_own_and_references_lead_somewhere() -> None:
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(set(names)) == len(names)
    description = openapi()
    for reference in references(description):
        found: Any = description
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]
        assert found


@pytest.mark.parametrize("surface", ["chat", "messages", "ollama_chat", "embeddings"])
def test_streams_and_errors_are_those_of_the_dialect(surface: str) -> None:
    responses = openapi()["paths"][SURFACES[surface].path]["post"]["responses"]
    speaker = {"messages": "Anthropic", "ollama_chat": "Ollama"}.get(surface, "OpenAI")
    assert responses["4XX"] == {"$ref": f"#/components/responses/{speaker}Refused"}
    streams = {"chat": "text/event-stream", "messages": "text/event-stream", "ollama_chat": "application/x-ndjson"}
    assert responses["200"]["content"].keys() == {"application/json", *filter(None, [streams.get(surface)])}


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "--openapi"]) == 0
    printed = capsys.readouterr().out
    assert printed == openapi_text()
    assert json.loads(printed) == openapi()
