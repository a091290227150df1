"""No byte of a labelled request reaches a backend below its label, whatever fails and whatever is reloaded."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gateway import attempts, clock
from gateway.config.load import load
from gateway.config.problems import Problems
from gateway.core import hedging
from gateway.core.boundary import Label
from gateway.core.snapshot import Health
from tests.relay.fake_engine import ROLE, Request, Script, Wire, json_answer, raw, silent, sse, token
from tests.shell.engine_double import COUNTING, EngineDouble, llama_cpp, openai_compatible, page, says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import Running, backend, chat, config

MARK = re.compile(rb"mark-(\d)-(\d+)")
"""In every prompt: the label that binds it, and its number."""
LAG = 0.3
"""Seconds after a reload in which bytes may still arrive that were sent before it."""
LABELS = [label.name.lower() for label in Label]
KEYS = "".join(f"    - {{name: {name}, key: sk-{name}-0123456789abcdef, data: {name}}}\n" for name in LABELS)
FAULTS: tuple[Script, ...] = (
    raw(then="reset"),
    raw(then="close"),
    silent(),
    json_answer({"error": {"message": "boom"}}, 500),
    json_answer({"error": {"message": "busy"}}, 503, [("Retry-After", "1")]),
    json_answer({"error": {"message": "Loading model"}}, 503),
    json_answer({"error": {"message": "no such model", "code": 404}}, 404),
    sse(ROLE, token("The sea"), token(" is "), end=False, then="reset"),
    sse(ROLE, token("The sea"), end=False, then="silent"),
)
TIMEOUTS = "{first_token: 150ms, token_gap: 150ms, connect: 500ms}"
FLEET = {
    "house": (lambda: vllm(says(" here"), model="tiny"), "on-prem"),
    "annex": (lambda: llama_cpp(says(" there"), model="tiny"), "on-prem"),
    "small": (lambda: vllm(says(" less"), model="small"), "on-prem"),
    "cloud": (lambda: openai_compatible(says(" away"), model="tiny"), "off-prem"),
    "open": (lambda: openai_compatible(says(" far"), model="small"), "off-prem"),
}


class Witness:
    """Which prompts came to a backend, and what it was cleared for then."""

    def __init__(self) -> None:
        self.cleared: dict[str, list[tuple[float, Label]]] = {}
        self.seen: list[tuple[str, float, Label, Request]] = []

    def now_cleared(self, clearances: dict[str, str]) -> None:
        for name, cleared in clearances.items():
            self.cleared.setdefault(name, []).append((clock.monotonic(), Label.parse(cleared)))

    def watch(self, name: str, engine: EngineDouble) -> None:
        inner = engine.scripts

        async def script(request: Request, wire: Wire) -> None:
            for label, _ in MARK.findall(request.body):
                self.seen.append((name, clock.monotonic(), Label(int(label)), request))
            assert callable(inner)
            await inner(request, wire)

        engine.scripts = script

    def leaks(self) -> list[tuple[str, Label, str]]:
        """Who saw what it was never cleared for in the last moment before."""
        found = []
        for name, at, label, request in self.seen:
            past = [each for each in self.cleared[name] if each[0] <= at]
            lately = [cleared for since, cleared in past if since > at - LAG] + [
                cleared for since, cleared in past[-1:]
            ]
            before = [cleared for since, cleared in past if since <= at - LAG][-1:]
            if label > max([*lately, *before]):
                found.append((name, label, request.line))
        return found


def written(engines: dict[str, EngineDouble], clearances: dict[str, str], chance: random.Random) -> tuple[str, Any]:
    """A file with these clearances and routes at random; and the labels of its names."""
    lines = []
    for name, engine in engines.items():
        more = {"location": FLEET[name][1], "clearance": clearances[name], "timeouts": TIMEOUTS}
        model = "small" if name in ("small", "open") else "tiny"
        more["models"] = f"[{{id: {model}, context: 2048}}]"
        lines.append(backend(name, engine.url, engine.flavour, **more))
    labels = {"tiny": chance.choice(LABELS[:3]), "loose": "public", "small": chance.choice(LABELS[:2])}
    consent = chance.choice(("none", "quant", "any"))
    rest = f"""models:
  - {{name: tiny, serves: tiny, fallback: [small], consent: {consent}, continuation: true, class: interactive,
      data: {labels["tiny"]}}}
  - {{name: loose, serves: tiny, continuation: true, class: interactive, data: public}}
  - {{name: small, serves: small, data: {labels["small"]}}}
classes: {{interactive: {{}}}}
retry: {{hedge: 100%}}
queue: {{wait: 600ms}}
health: {{probe: 100ms, breaker: {{failures: 3, open: 200ms}}}}
auth:
  keys:
{KEYS}"""
    return config(*lines, rest=rest), labels


def drawn(chance: random.Random) -> dict[str, str]:
    """Clearances that a file may have: nothing restricted leaves the house, and each model has a cleared backend."""
    found = {name: chance.choice(LABELS) for name in FLEET}
    for name, (_, place) in FLEET.items():
        if place == "off-prem":
            found[name] = chance.choice(LABELS[:3])
    return found | {"house": chance.choice(LABELS[2:]), "small": chance.choice(LABELS[2:])}


async def one(gateway: Running, number: int, labels: dict[str, str], chance: random.Random, witness: Witness) -> None:
    """A request at random; what it gets doesn't matter here."""
    model, key = chance.choice(("tiny", "tiny", "loose", "small")), chance.choice(LABELS)
    headers = {"authorization": f"Bearer sk-{key}-0123456789abcdef"}
    bound = max(Label.parse(labels[model]), Label.parse(key))
    if chance.random() < 0.5:
        said = chance.choice(LABELS)
        headers["x-data-label"] = said
        bound = max(bound, Label.parse(said))
    if chance.random() < 0.3:
        headers["x-allow-fallback"] = chance.choice(("none", "quant", "any"))
    text = f"mark-{int(bound)}-{number} " + "word " * chance.choice((3, 3, 1500, 6000))
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": text}]}
    path = chance.choice(
        ("/v1/chat/completions",) * 5 + ("/v1/messages", "/v1/messages/count_tokens", "/v1/embeddings")
    )
    if path == "/v1/embeddings":
        body = {"model": model, "input": text}
    else:
        body |= {"max_tokens": chance.choice((8, 64)), "stream": "count" not in path and chance.random() < 0.7}
    client = await gateway.send(body, path, **headers)
    try:
        async with asyncio.timeout(4.0):
            await client.reply()
    except (TimeoutError, ConnectionError, asyncio.IncompleteReadError, AssertionError, ValueError):
        pass
    finally:
        client.close()


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


@pytest.mark.parametrize("seed", range(4))
async def test_no_byte_of_a_labelled_request_reaches_a_backend_below_its_label(
    stack: AsyncExitStack, start: Start, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hedging, "LEAST", 0.03)
    monkeypatch.setattr(hedging, "LATE", 0.0)
    monkeypatch.setattr(hedging, "BUSY", 2.0)
    chance = random.Random(seed)
    engines = {name: make() for name, (make, _) in FLEET.items()}
    witness, clearances = Witness(), drawn(chance)
    for name, engine in engines.items():
        witness.watch(name, engine)
    witness.now_cleared(clearances)
    for engine in engines.values():
        await stack.enter_async_context(engine)
        engine.pages["/tokenize"] = page({"tokens": list(range(40)), "count": 40, "max_model_len": 2048})
    text, labels = written(engines, clearances, chance)
    gateway = await start(engines, text=text, up=False)
    await gateway.up("house", "small")
    asked = 0
    for _ in range(3):
        for engine in engines.values():
            engine.now_plays(*chance.choices((*FAULTS, says(" fine"), says(" good")), k=6), says(" well"))
        # What is asked may be bound by the labels before and after the reload in its middle: by the lower at least.
        after = drawn(chance)
        text, later = written(engines, after, chance)
        least = {name: min(labels[name], later[name], key=LABELS.index) for name in labels}
        runs = [asyncio.create_task(one(gateway, asked + n, least, chance, witness)) for n in range(24)]
        asked += len(runs)
        await asyncio.sleep(chance.uniform(0.0, 0.1))
        witness.now_cleared(after)
        assert (await gateway.reload(text)).status == 200
        labels = later
        await asyncio.gather(*runs)
    assert not witness.leaks()
    assert len({name for name, *_ in witness.seen}) >= 4
    assert len(witness.seen) > asked / 4


async def test_what_loses_its_clearance_between_choice_and_sending_is_sent_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = {"first": vllm(says("no")), "second": vllm(says("yes"))}
    gateway = await start(engines, second={"device": "dgx-spark"})
    before = await asyncio.to_thread(gateway.file.read_text)
    after = before.replace("name: first,", "name: first, clearance: public,")
    assert after != before
    prepare = attempts.prepare

    async def while_the_file_changes(*args: Any) -> Any:
        if not engines["second"].asked:
            assert (await gateway.reload(after)).status == 200
        return await prepare(*args)

    monkeypatch.setattr(attempts, "prepare", while_the_file_changes)
    reply = await gateway.chat("mark", stream=True)
    assert reply.headers["x-kvgate-backend"] == "second"
    assert not engines["first"].asked
    assert await gateway.value('kvgate_retries_total{backend="first"}') == 1
    assert gateway.health("first") is Health.UP


async def test_what_moved_out_of_the_house_under_its_name_is_sent_nothing_that_was_meant_for_the_house(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = {"first": vllm(says("no")), "open": vllm(says("no"), model="other")}
    public = "{{name: {0}, url: '{1}', engine: vllm, location: off-prem, clearance: public, models: [{{id: tiny}}]}}"
    loose = "models: [{name: tiny, serves: tiny, data: public}, {name: other, serves: other}]"
    gateway = await start(engines, rest=loose)
    moved = config(
        public.format("first", engines["open"].url), rest=loose.replace(", {name: other, serves: other}", "")
    )
    prepare, changed = attempts.prepare, asyncio.Event()

    async def while_it_moves(*args: Any) -> Any:
        if not changed.is_set():
            changed.set()
            reply = await gateway.reload(moved)
            assert reply.status == 200, reply.body
        return await prepare(*args)

    monkeypatch.setattr(attempts, "prepare", while_it_moves)
    reply = await gateway.ask(chat("mark"), **{"x-data-label": "internal"})
    assert reply.status >= 400
    assert not engines["first"].asked
    assert not engines["open"].asked


async def test_a_prompt_is_not_shown_for_counting_where_it_may_not_be_seen_any_more(start: Start) -> None:
    engines = {"first": vllm(says("ok")), "second": vllm(says("ok"))}
    gateway = await start(engines)
    before = await asyncio.to_thread(gateway.file.read_text)
    other = {"first": "second", "second": "first"}
    counted: list[str] = []

    def counts(name: str) -> Script:
        async def script(_request: Request, wire: Wire) -> None:
            counted.append(name)
            if len(counted) == 1:  # the other one is asked next, and may not be by then
                text = before.replace(f"name: {other[name]},", f"name: {other[name]}, clearance: public,")
                assert (await gateway.reload(text)).status == 200
            wire.reset()

        return script

    for name, engine in engines.items():
        engine.pages.update(dict.fromkeys(COUNTING, counts(name)))
    body = {"model": "tiny", "max_tokens": 8, "messages": [{"role": "user", "content": "mark"}]}
    await gateway.ask(body, "/v1/messages/count_tokens")
    assert len(set(counted)) == 1


@pytest.mark.parametrize("said", ["secret", "", "internal, public", "restricted\x00"])
async def test_a_label_that_nobody_knows_is_no_label_for_less(start: Start, said: str) -> None:
    engines = {"cloud": openai_compatible(says("away"), model="tiny")}
    more = {"location": "off-prem", "clearance": "internal", "models": "[{id: tiny, context: 4096}]"}
    gateway = await start(engines, cloud=more)
    reply = await gateway.ask(
        {"model": "tiny", "messages": [{"role": "user", "content": "hi"}]}, **{"x-data-label": said}
    )
    assert reply.status == 400
    assert not engines["cloud"].asked


async def test_a_hosted_service_gets_no_byte_of_what_may_not_leave_the_house(start: Start) -> None:
    """Every way there: the house fails in all ways, its answers break off, and the hosted model is a fallback too."""
    house, hosted = vllm(model="tiny"), openai_compatible(says("away"), model="small")
    house.now_plays(*FAULTS[:4], *FAULTS[5:], *FAULTS[:4])  # not the one that asks to be left alone for a second
    away = {"location": "off-prem", "clearance": "internal", "models": "[{id: small, context: 4096}]"}
    rest = """models:
  - {name: tiny, serves: tiny, fallback: [small], continuation: true, class: interactive, data: confidential}
  - {name: small, serves: small, data: internal}
classes: {interactive: {}}
retry: {hedge: 100%, budget: 100%}
health: {probe: 100ms, canary: true, breaker: {failures: 2, open: 200ms}}
queue: {wait: 300ms}"""
    text = config(
        backend("house", "http://127.0.0.1:9", timeouts=TIMEOUTS),
        backend("hosted", "http://127.0.0.1:9", **away),
        rest=rest,
    )
    assert "confidential" in text
    with pytest.raises(Problems):
        await asyncio.to_thread(load, text)  # such a fallback could never be taken: the file is refused
    loose = rest.replace("data: confidential", "data: internal")
    gateway = await start({"house": house, "hosted": hosted}, rest=loose, house={"timeouts": TIMEOUTS}, hosted=away)
    for number in range(24):
        body = chat(f"mark {number} " + "word " * (900 if number % 3 else 3), stream=True)
        await gateway.ask(body, **{"x-data-label": "confidential"})
    assert len(house.asked) > 5
    assert {request.body for request in hosted.requests} <= {
        b"",
        b"{",
    }  # probes: what it lists, and which routes it has
    assert (await gateway.ask(chat("mark", model="small"))).headers["x-kvgate-backend"] == "hosted"
