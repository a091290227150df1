"""What clients sent, sent again: `python -m tests.clients.replay [FOLDER]`, the recordings of the tests without one.

Each file goes through a gateway before an engine that speaks the client's surface, before one that has only chat
completions, and before one that has only Anthropic's messages. Every answer must have the right status, be of the SDK's
types, and say what the engine said.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from gateway.wire.surfaces import SURFACES
from tests.clients.answers import WHOLE, Ill, said
from tests.clients.captures import RECORDED, Captured, captures, load
from tests.clients.scripted_engine import ScriptedEngine
from tests.clients.setups import Reached, reach

__all__ = ["Replayed", "flavour_for", "models_of", "replay"]

_PATHS = {surface.path: surface.name for surface in SURFACES.values()}
_LISTS = {"/v1/models": "data", "/api/tags": "models"}
_HELD_BACK = {"host", "content-length", "connection", "transfer-encoding"}
SETUPS = ("passed through", "translated", "from messages")
_FLAVOURS = {"translated": "openai", "from messages": "anthropic"}
_NOT_OFFERED = {"completions", "embeddings", "ollama_embed"}
"""By a service that has only messages, and nothing that it has could stand in."""


@dataclass(slots=True)
class Replayed:
    """The outcome of one file in one set-up."""

    file: str
    setup: str
    requests: int = 0
    faults: list[str] = field(default_factory=list)


def flavour_for(setup: str, requests: Sequence[Captured]) -> str:
    """The flavour of the engine in a set-up; where they are passed through, one that speaks all that they use."""
    if setup in _FLAVOURS:
        return _FLAVOURS[setup]
    return "ollama" if any(each.path.startswith("/api/") for each in requests) else "vllm"


def models_of(requests: Sequence[Captured]) -> tuple[str, ...]:
    """The models that they ask for."""
    named = [each.body["model"] for each in requests if isinstance(each.body, dict) and "model" in each.body]
    return tuple(dict.fromkeys(named)) or ("large",)


def replay(requests: Sequence[Captured], at: Reached, outcome: Replayed) -> None:
    """Send them one after the other and note what is wrong with the answers. Blocks: call it in a thread."""
    for request in requests:
        outcome.requests += 1
        before = len(at.engine.asked)
        status, headers, answer = _send(at.base, request)
        asked = at.engine.asked[before:]
        try:
            _check(request, status, headers, answer, at.engine, at.setup)
            for each in asked:
                if each.complaints:
                    raise Ill(f"the engine was sent what templates refuse: {each.complaints[0]}")
        except (Ill, ValidationError, ValueError, LookupError, TypeError) as error:
            told = " ".join(str(error).split())[:300]
            outcome.faults.append(f"{request.number} {request.path} ({request.what}): {type(error).__name__}: {told}")


def _send(base: str, request: Captured) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=30)
    try:
        connection.putrequest(request.method, request.target, skip_accept_encoding=True)
        for name, value in request.headers:
            if name.lower() not in _HELD_BACK:
                connection.putheader(name, value)
        data = request.data()
        if data:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data or None)
        reply = connection.getresponse()
        return reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()
    finally:
        connection.close()


def _check(
    request: Captured, status: int, headers: dict[str, str], answer: bytes, engine: ScriptedEngine, setup: str
) -> None:
    if request.path.startswith("/v1beta/"):  # Gemini's API is not among those served
        error = json.loads(answer)["error"]
        if status != 404 or "/v1/chat/completions" not in error["message"]:
            raise Ill(f"status {status}: {answer[:200]!r}")
        return
    surface = _PATHS.get(request.path, "")
    if setup == "from messages" and (surface in _NOT_OFFERED or _wants_any_json(request.body)):
        if status != 404 or b"surface_not_offered" not in answer:
            raise Ill(f"status {status} for what is not offered: {answer[:200]!r}")
        return
    if status != 200:
        raise Ill(f"status {status}: {answer[:300].decode(errors='replace')}")
    if request.method == "HEAD":
        return
    if request.path in _LISTS:
        names = {each.get("id") or each.get("name") for each in json.loads(answer)[_LISTS[request.path]]}
        if names != set(engine.models):
            raise Ill(f"models {names}")
        return
    if request.path == "/api/show":
        if "capabilities" not in json.loads(answer):
            raise Ill(f"no capabilities: {answer[:200]!r}")
        return
    if surface in ("count_tokens", "embeddings", "ollama_embed"):
        value = json.loads(answer)
        base64 = isinstance(request.body, dict) and request.body.get("encoding_format") == "base64"
        if not base64:
            WHOLE[surface].validate_python(value)
        return
    _compare(request, surface, headers, answer, engine)


def _wants_any_json(body: Any) -> bool:
    """JSON without a schema, which Anthropic's API has no word for."""
    return isinstance(body, dict) and (body.get("response_format") or {}).get("type") == "json_object"


def _compare(request: Captured, surface: str, headers: dict[str, str], answer: bytes, engine: ScriptedEngine) -> None:
    stream = request.body.get("stream", surface.startswith("ollama"))
    kind = headers["content-type"].partition(";")[0]
    wanted = (
        ("application/x-ndjson" if surface.startswith("ollama") else "text/event-stream")
        if stream
        else "application/json"
    )
    if kind != wanted:
        raise Ill(f"content type {kind} instead of {wanted}")
    found, step = said(surface, answer, stream=stream), engine.asked[-1].step
    calls = [(call.name, json.loads(call.arguments)) for call in step.calls]
    if (found.text, found.calls) != (step.text, calls):
        raise Ill(f"said {found.text!r} {found.calls} instead of {step.text!r} {calls}")
    if found.usage not in ((step.prompt_tokens, step.output_tokens), None):
        raise Ill(f"usage {found.usage}")
    named = _model(answer, stream)
    if named != request.body["model"]:
        raise Ill(f"model {named}")


def _model(answer: bytes, stream: bool) -> Any:
    if not stream:
        return json.loads(answer)["model"]
    start = answer.index(b'"model":') + len(b'"model":')
    return json.JSONDecoder().raw_decode(answer[start:].decode(errors="replace").lstrip())[0]


async def replay_all(folder: Path, setups: Sequence[str]) -> list[Replayed]:
    """Every file of `folder` in every set-up, each before a gateway of its own for its models."""
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="kvgate-replay-") as temporary:
        for setup in setups:
            for file in captures(folder):
                requests = load(file)
                flavour = flavour_for(setup, requests)
                async with AsyncExitStack() as stack:
                    place = Path(temporary, setup, file.stem)
                    at = await stack.enter_async_context(reach(setup, flavour, place, models=models_of(requests)))
                    outcome = Replayed(file.stem, setup)
                    await asyncio.to_thread(replay, requests, at, outcome)
                    outcomes.append(outcome)
    return outcomes


def main(argv: Sequence[str] | None = None) -> int:
    """Run; the exit status of the program."""
    flags = argparse.ArgumentParser(prog="python -m tests.clients.replay", description=__doc__)
    flags.add_argument("folder", nargs="?", type=Path, default=RECORDED, help="with *.jsonl files of captured requests")
    flags.add_argument("--setup", action="append", choices=SETUPS, help="only this one; may be repeated")
    given = flags.parse_args(argv)
    console = Console()
    outcomes = asyncio.run(replay_all(given.folder, given.setup or SETUPS))
    shown = Table(title="kvgate: requests of real clients, replayed", title_justify="left")
    for heading in ("client", "set-up", "requests", "right"):
        shown.add_column(heading, justify="right" if heading in ("requests", "right") else "left")
    for outcome in outcomes:
        right = outcome.requests - len(outcome.faults)
        shown.add_row(outcome.file, outcome.setup, str(outcome.requests), f"{'[red]' if outcome.faults else ''}{right}")
        for fault in outcome.faults:
            console.print(f"{outcome.file}, {outcome.setup}: {fault}", style="red", markup=False, highlight=False)
    console.print(shown)
    return 1 if any(outcome.faults for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
