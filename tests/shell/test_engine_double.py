"""The doubles are held to recordings of the real engines: what an adapter reads of both must be the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.engines.adapter import Answer, Engine
from gateway.engines.registry import engine
from gateway.fleet.probing import Prober, Target
from tests.recordings import recording
from tests.shell.engine_double import EngineDouble, llama_cpp, says, vllm, vllm_metrics
from tests.shell.fixtures import Start

RECORDED = {
    "llama.cpp": {
        "/props": "get_props",
        "/v1/models": "get_models",
        "/slots": "get_slots_idle",
        "/metrics": "get_metrics",
    },
    "vllm": {"/v1/models": "get_models", "/metrics": "get_metrics", "/version": "get_version"},
}


def recorded(flavour: str) -> dict[str, Answer]:
    answers = {}
    for path, name in RECORDED[flavour].items():
        page = recording(flavour, name)
        answers[path] = Answer(page.status, page.headers, page.body)
    return answers


async def asked(double: EngineDouble) -> tuple[Engine, dict[str, Answer]]:
    adapter, prober = engine(double.flavour), Prober()
    async with double:
        probes = (*adapter.discovery, *adapter.loading)
        answers = dict(await prober.ask(Target("b1", double.url), probes, 5))
        await prober.close()
    return adapter, answers


@pytest.mark.parametrize("make", [lambda: llama_cpp(slots=2, window=4096), lambda: vllm(window=2048, block=128)])
async def test_an_adapter_reads_of_a_double_what_it_reads_of_the_real_engine(make: Any) -> None:
    double = make()
    adapter, answers = await asked(double)
    real = recorded(double.flavour)
    ours, theirs = adapter.facts(answers), adapter.facts(real)
    assert (ours.slots, ours.pool_tokens, ours.block) == (theirs.slots, theirs.pool_tokens, theirs.block)
    assert (ours.version, ours.abilities, ours.notes) == (theirs.version, theirs.abilities, theirs.notes)
    assert [(m.id, m.window, m.params) for m in ours.models] == [(m.id, m.window, m.params) for m in theirs.models]
    assert adapter.load(answers) == adapter.load(real)


@pytest.mark.parametrize("flavour", RECORDED)
async def test_a_doubles_pages_have_the_members_of_the_real_ones(flavour: str) -> None:
    _, answers = await asked({"llama.cpp": llama_cpp, "vllm": vllm}[flavour]())
    for path, real in recorded(flavour).items():
        ours = answers[path]
        assert ours.status == real.status
        assert real.headers["content-type"].startswith(ours.headers["content-type"])
        if real.headers["content-type"].startswith("application/json"):
            assert shape(json.loads(ours.body)) == shape(json.loads(real.body))


def shape(value: Any) -> Any:
    """Names and types, without the values; of a list, those of its first member."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else type(value).__name__


async def test_a_doubles_load_is_what_it_was_told() -> None:
    double = vllm()
    double.pages["/metrics"] = vllm_metrics(pool=1000, block=10, running=3, usage=0.25)
    adapter, answers = await asked(double)
    load = adapter.load(answers)
    assert (load.running, load.kv_usage, load.kv_tokens) == (3, 0.25, 250)


@pytest.mark.parametrize(
    ("make", "model", "name"), [(llama_cpp, "smollm2", "chat_nonstream"), (vllm, "tiny", "chat_nonstream")]
)
async def test_what_a_double_says_has_the_members_that_clients_read_of_the_real_answer(
    start: Start, make: Any, model: str, name: str
) -> None:
    double = make(says("a", "b"))
    gateway = await start({"b1": double})
    ours, real = (await gateway.chat(model=model)).json, json.loads(recording(double.flavour, name).body)
    assert ours.keys() <= real.keys()
    for member in ("choices", "usage"):
        mine, theirs = ours[member], real[member]
        if isinstance(mine, list):
            mine, theirs = mine[0], theirs[0]
        assert mine.keys() <= theirs.keys()
