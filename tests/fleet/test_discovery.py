from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.engines.adapter import Answer, Probe
from gateway.engines.asking import Asked
from gateway.engines.registry import engine
from gateway.fleet.discovery import discover
from gateway.fleet.probing import ProbeFailed, Prober, Target

TARGET = Target("b", "http://127.0.0.1:1")


class Asks:
    """Answers every probe; those in `silent` not."""

    def __init__(self, *silent: str) -> None:
        self.silent = silent
        self.asked: list[str] = []

    async def ask(self, target: Target, probes: Iterable[Probe], timeout: float) -> Mapping[str, Answer]:
        answers = {}
        for probe in probes:
            self.asked.append(probe.key)
            if probe.key in self.silent:
                raise ProbeFailed("no answer", refused=False)
            answers[probe.key] = Answer(200, {}, b"{}")
        return answers


class Engine(Asked):
    name = "e"
    traits = engine("openai").traits
    discovery = (Probe("GET", "/now"), Probe("GET", "/once", kept=True))
    loading = ()

    def follow_up(self, answers: Mapping[str, Answer]) -> tuple[Probe, ...]:
        return tuple(Probe("POST", f"/after{key}", b"{", kept=True) for key in answers)

    facts = engine("openai").facts


async def test_two_rounds_and_what_may_be_kept_is_asked_once() -> None:
    asks, kept = Asks(), dict[str, Answer]()
    first = await discover(asks, TARGET, Engine(), 1.0, kept)
    assert sorted(first) == ["/after/now", "/after/once", "/now", "/once"]
    assert asks.asked == ["/now", "/once", "/after/now", "/after/once"]
    asks.asked.clear()
    assert await discover(asks, TARGET, Engine(), 1.0, kept) == first
    assert asks.asked == ["/now"]


async def test_an_engine_too_busy_for_a_kept_probe_is_up_all_the_same() -> None:
    asks, kept = Asks("/once"), dict[str, Answer]()
    answers = await discover(asks, TARGET, Engine(), 1.0, kept)
    assert sorted(answers) == ["/after/now", "/now"]
    asks.silent = ()
    assert "/once" in await discover(asks, TARGET, Engine(), 1.0, kept)


async def test_an_engine_that_does_not_answer_is_down() -> None:
    with pytest.raises(ProbeFailed):
        await discover(Asks("/now"), TARGET, Engine(), 1.0)


async def test_a_probe_is_sent_with_body_headers_and_credential() -> None:
    seen: list[tuple[str, str, dict[str, str], bytes]] = []

    async def handler(request: web.Request) -> web.Response:
        names = ("x-api-key", "authorization", "content-type", "x-extra")
        told = {name: request.headers[name] for name in names if name in request.headers}
        seen.append((request.method, request.path_qs, told, await request.read()))
        return web.Response(status=400, text="no")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    server, prober = TestServer(app), Prober()
    await server.start_server()
    try:
        target = Target("b", str(server.make_url("/")), ("x-api-key", "k"))
        probes = (Probe("POST", "/v1/messages?a=1", b"{", (("x-extra", "1"),), name="m"), Probe("GET", "/v1/models"))
        answers = await prober.ask(target, probes, 5.0)
    finally:
        await prober.close()
        await server.close()
    assert {key: found.status for key, found in answers.items()} == {"m": 400, "/v1/models": 400}
    assert seen == [
        ("POST", "/v1/messages?a=1", {"x-api-key": "k", "content-type": "application/json", "x-extra": "1"}, b"{"),
        ("GET", "/v1/models", {"x-api-key": "k"}, b""),
    ]
    assert "k" not in repr(target).replace("Target(b)", "")
