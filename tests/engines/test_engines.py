"""What every adapter must do, and the one for servers of which nothing is known."""

from __future__ import annotations

import json

import pytest

from gateway.engines.adapter import Answer, Facts, FailureKind, Load
from gateway.engines.metrics_text import samples
from gateway.engines.openai_compatible import OpenAiCompatible
from gateway.engines.registry import ENGINES, engine
from gateway.wire.splice import splice
from tests.engines.probed import body, chat, page

ODD = [
    b"",
    b"null",
    b"[]",
    b"{}",
    b"3",
    b'"x"',
    b"<html>",
    b'{"data":3}',
    b'{"data":[{"id":3}]}',
    b"\xff\xfe",
    b"[" * 3000,
]


def test_there_is_no_engine_of_another_name() -> None:
    with pytest.raises(KeyError):
        engine("nope")


@pytest.mark.parametrize("name", sorted(ENGINES))
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("status", [200, 404, 500])
def test_odd_answers_are_no_answers(name: str, odd: bytes, status: int) -> None:
    adapter = engine(name)
    found = {probe.key: Answer(status, {}, odd) for probe in (*adapter.discovery, *adapter.loading)}
    found |= {probe.key: Answer(status, {}, odd) for probe in adapter.follow_up(found)}
    facts = adapter.facts(found)
    assert isinstance(facts, Facts)
    assert facts.models == ()
    assert facts.pool_tokens is None
    load = adapter.load(found)
    assert (load.running, load.waiting, load.kv_usage, load.kv_tokens) == (None, None, None, None)
    assert adapter.failure(500, odd).kind is FailureKind.SERVER


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_the_prompt_is_never_touched(name: str) -> None:
    adapter = engine(name)
    raw = b'{ "messages":[ {"role":"user","content":"\\u00e9 \\/"} ] ,"model":"alias","seed":12345678901234567890123 }'
    req = chat()
    edits = adapter.edits(req, served_as="served", stream=adapter.streams_upstream(req), max_tokens=9)
    result = splice(raw, edits)
    assert result.startswith(raw[: raw.index(b'"alias"')])
    assert b'"seed":12345678901234567890123' in result
    assert "messages" not in edits
    assert json.loads(result)["max_tokens"] == 9


def test_a_server_of_which_nothing_is_known() -> None:
    adapter = OpenAiCompatible()
    listed = {
        "data": [{"id": "a", "context_length": 8192}, {"id": "b", "max_model_len": 4096}, {"id": "c", "n_ctx": "9"}]
    }
    facts = adapter.facts({"/v1/models": page(json.dumps(listed))})
    assert [(model.id, model.window) for model in facts.models] == [("a", 8192), ("b", 4096), ("c", None)]
    assert adapter.load({}) == Load()
    assert adapter.headers("id-1") == {"x-client-request-id": "id-1"}
    req = chat(stream=True)
    edits = adapter.edits(req, served_as="alias", stream=True, max_tokens=None)
    assert json.loads(splice(body(stream=True), edits))["stream_options"] == {"include_usage": True}


PAGE = rb"""# HELP a_total words a_total 9
# TYPE a_total counter
a_total 5
a_total_other 6
b{x="1",y="quo\"te, {brace}"} 2.5e3 1700000000
b{x="2"}	+7
c NaN
d{} 1 # {trace="x"} 0.5
e +Inf
f oops
"""


def test_samples_of_a_page() -> None:
    found = samples(PAGE, ("a_total", "b", "c", "d", "e", "f", "g"))
    assert {name: [tuple(sample) for sample in family] for name, family in found.items()} == {
        "a_total": [({}, 5.0)],
        "b": [({"x": "1", "y": 'quo"te, {brace}'}, 2500.0), ({"x": "2"}, 7.0)],
        "d": [({}, 1.0)],
    }
