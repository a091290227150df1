"""Requests generated from the description of the public port, valid and not: every answer is one that it promises."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.shell.engine_double import says, vllm
from tests.shell.fixtures import Start

KEY = "the-right-key-1"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
)
# 501 answers a transfer coding that is not read; the others are promised where engines are asked.
EXPECTED = '[checks.not_a_server_error]\nexpected-statuses = ["2xx", "4xx", 501, 502, 503, 504]\n'


def naming(node: Any) -> Any:
    """The description with names of models to pick from, so that most requests get past the name."""
    if isinstance(node, list):
        return [naming(item) for item in node]
    if not isinstance(node, dict):
        return node
    named = {key: naming(value) for key, value in node.items()}
    properties = named.get("properties")
    if isinstance(properties, dict) and properties.get("model") == {"type": "string"}:
        properties["model"] = {"enum": ["tiny", "tiny", "nobody"]}
    return named


@pytest.mark.slow
async def test_every_generated_request_gets_an_answer_that_was_promised(start: Start, tmp_path: Path) -> None:
    gateway = await start({"b1": vllm(says("ok"))}, rest=f"auth: {{keys: [{{name: k, key: {KEY}}}]}}")
    description = naming((await gateway.get("/openapi.json", admin=True)).json)
    file, settings = tmp_path / "openapi.json", tmp_path / "schemathesis.toml"
    await asyncio.to_thread(file.write_text, json.dumps(description))
    await asyncio.to_thread(settings.write_text, EXPECTED)
    generator = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(settings), "run", str(file)),
        *("--url", f"http://127.0.0.1:{gateway.port}", "--header", f"Authorization: Bearer {KEY}"),
        *("--phases", "examples,coverage,fuzzing", "--checks", ",".join(CHECKS), "--max-examples", "5"),
        *("--seed", "1", "--generation-deterministic", "--warnings", "off"),
        *("--continue-on-failure", "--no-shrink", "--request-timeout", "20"),
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await generator.communicate()
    assert generator.returncode == 0, said.decode()
    asked = [line for line in await gateway.access() if line["route"] != "unparsed"]
    assert len(asked) > 1000
    assert {line["status"] for line in asked} >= {200, 400, 401, 404, 405}
