"""What every adapter must do with what its engine answers; see `tests.engines.cases`."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gateway.config import backends, capacity
from gateway.engines.adapter import Engine, FailureKind, Load, Probe
from gateway.engines.registry import ENGINES
from gateway.wire.splice import splice
from gateway.wire.surfaces import SURFACES
from tests.engines.cases import Case, all_cases
from tests.engines.probed import body, chat

CASES = all_cases()
EACH = pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)


def _probes(adapter: Engine, case: Case) -> tuple[Probe, ...]:
    return (*adapter.discovery, *adapter.follow_up(case.discovery), *adapter.loading)


def test_every_engine_has_a_case_and_a_name_in_the_configuration() -> None:
    assert sorted(CASES) == sorted(ENGINES)
    assert tuple(ENGINES) == backends.ENGINES
    assert set(capacity._SLOTS) == set(ENGINES)
    assert {name: capacity._SLOTS[name] for name in ENGINES} == {n: e.traits.default_slots for n, e in ENGINES.items()}


@EACH
def test_discovery(case: Case) -> None:
    adapter = ENGINES[case.name]
    asked = {probe.key for probe in adapter.discovery}
    assert set(case.discovery) == asked
    assert {probe.key for probe in adapter.follow_up(case.discovery)} == set(case.follow_up)
    facts = adapter.facts(case.discovery | case.follow_up)
    assert tuple((model.id, model.window) for model in facts.models) == case.models
    assert (facts.slots, facts.pool_tokens, facts.version) == (case.slots, case.pool, case.version)
    assert facts.abilities == case.abilities
    assert facts.surfaces == case.surfaces
    assert not facts.loading
    assert facts.notes


@EACH
def test_what_was_not_answered_is_not_known(case: Case) -> None:
    adapter = ENGINES[case.name]
    facts = adapter.facts({})
    assert (facts.models, facts.slots, facts.pool_tokens, facts.surfaces) == ((), None, None, None)
    first = adapter.facts(case.discovery)
    assert tuple(model.id for model in first.models) == tuple(name for name, _ in case.models)


@EACH
def test_load(case: Case) -> None:
    adapter = ENGINES[case.name]
    assert {probe.key for probe in adapter.loading} == set(case.loading)
    assert adapter.load(case.loading) == case.load
    assert adapter.load({}) == Load()


@EACH
def test_probes_start_nothing(case: Case) -> None:
    adapter = ENGINES[case.name]
    probes = _probes(adapter, case)
    assert len({probe.key for probe in (*adapter.discovery, *adapter.follow_up(case.discovery))}) == len(
        (*adapter.discovery, *adapter.follow_up(case.discovery))
    )
    generating = {surface.path for surface in SURFACES.values()}
    for probe in probes:
        assert probe.path.startswith("/")
        if probe.method == "GET":
            assert not probe.body
            continue
        assert probe.method == "POST"
        assert probe.kept  # once after a start, not every minute
        if probe.path in generating:
            with pytest.raises(json.JSONDecodeError):
                json.loads(probe.body)
    assert {probe.method for probe in adapter.loading} <= {"GET"}


@EACH
def test_surfaces(case: Case) -> None:
    adapter = ENGINES[case.name]
    assert adapter.traits.surfaces
    assert adapter.traits.surfaces | adapter.traits.also <= set(SURFACES)
    assert {"chat", "messages"} & adapter.traits.surfaces  # all that clients ask for can be translated to one of them
    facts = adapter.facts(case.discovery | case.follow_up)
    ever = adapter.traits.surfaces | adapter.traits.also
    assert not adapter.traits.surfaces & adapter.traits.also
    assert (facts.surfaces or frozenset()) <= ever
    for model in facts.models:
        assert model.surfaces is None or model.surfaces <= ever
    for name in facts.surfaces or adapter.traits.surfaces:
        assert adapter.path(name).startswith("/")
        assert tuple(adapter.surface_headers(name)) == case.surface_headers
    with pytest.raises(KeyError):
        adapter.path("nope")


@EACH
def test_failures(case: Case) -> None:
    adapter = ENGINES[case.name]
    kinds = {kind for _, _, kind in case.failures}
    assert {FailureKind.CONTEXT, FailureKind.NOT_OFFERED} <= kinds
    assert case.failures[0][2] is FailureKind.CONTEXT
    for status, payload, kind in case.failures:
        failure = adapter.failure(status, payload)
        assert failure.kind is kind, payload
        assert failure.message
        assert failure.blame == (kind in (FailureKind.SERVER, FailureKind.CREDENTIALS))
    too_long = adapter.failure(case.failures[0][0], case.failures[0][1])
    assert (too_long.limit, too_long.requested) == case.overflow
    assert "maximum context length" in too_long.message


@EACH
def test_its_key_and_ids(case: Case) -> None:
    adapter = ENGINES[case.name]
    assert adapter.credential("k") == case.credential
    one, other = dict(adapter.headers("id-1")), dict(adapter.headers("id-2"))
    assert set(one) == set(other)
    assert not {name.lower() for name in one} & {"authorization", "x-api-key", "content-type", "content-length"}
    for name, value in one.items():  # an id that is sent is this attempt's own
        assert value == other[name] or (value, other[name]) == ("id-1", "id-2")


@EACH
def test_edits(case: Case) -> None:
    adapter = ENGINES[case.name]
    more = {**dict.fromkeys(case.drops, "x"), "min_p": 0.1, "x_unknown": [1]}
    req = chat(**more)
    stream = adapter.streams_upstream(req)
    edits = adapter.edits(req, served_as="served", stream=stream, max_tokens=None)
    sent = json.loads(splice(body(**more), edits))
    assert sent["model"] == "served"
    assert sent.get("stream", False) is stream
    assert stream is adapter.traits.stream_always
    assert (sent["min_p"], sent["x_unknown"]) == (0.1, [1])
    assert not case.drops & sent.keys()
    assert case.drops <= set(adapter.traits.drops)
    untouched = {"messages", "tools", "prompt", "input", "system"}
    assert not untouched & edits.keys()
    for surface in adapter.traits.surfaces:
        beside = adapter.surface_edits(surface)
        assert set(adapter.traits.drops) <= beside.keys()
        assert not untouched & beside.keys()


@EACH
def test_a_stream_tells_its_usage(case: Case) -> None:
    adapter = ENGINES[case.name]
    asked = chat(stream=True, stream_options={"include_usage": True})
    edits = adapter.edits(asked, served_as="alias", stream=True, max_tokens=None)
    assert json.loads(splice(body(stream=True, stream_options={"include_usage": True}), edits))["stream_options"] == {
        "include_usage": True
    }
    whole = replace(chat(), include_usage=None)
    if adapter.streams_upstream(whole):
        sent = json.loads(splice(body(), adapter.edits(whole, served_as="alias", stream=True, max_tokens=None)))
        assert sent["stream_options"] == {"include_usage": True}
