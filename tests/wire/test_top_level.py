from __future__ import annotations

import base64
import json
import random
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.wire.members import MAX_MEMBERS, members
from gateway.wire.top_level import MOST_KEPT, TopLevel
from tests.wire.json_text import Text, objects
from tests.wire.test_speed import best_seconds

ALIAS = b'"the alias"'
EMBEDDINGS = (
    b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":[-0.1,2e-05,[{"model":"inner"}]],'
    b'"model":"inner"},{"x":"}]\\\\","y":"\\"model\\":\\"z"}],"model" : "org\\/m\\"" ,"usage":{"prompt_tokens":3,'
    b'"d":[{"a":"]}"}]},"note":"\xc3\xa9\\u00e9","n":-1.5e3,"ok":true}\n'
)


def cut(data: bytes, at: int, **how: object) -> tuple[bytes, dict[str, bytes]]:
    walk = TopLevel(how.get("replace", {"model": ALIAS}), how.get("capture", ("usage",)))  # type: ignore[arg-type]
    return walk.feed(data[:at]) + walk.feed(data[at:]), walk.captured


def in_bytes(data: bytes) -> tuple[bytes, dict[str, bytes]]:
    walk = TopLevel({"model": ALIAS}, ("usage",))
    return b"".join(walk.feed(data[i : i + 1]) for i in range(len(data))), walk.captured


def expected(body: bytes) -> tuple[bytes, dict[str, bytes]]:
    parts, at, usage = [], 0, {}
    for member in members(body):
        value = body[member.value_start : member.value_end]
        if member.key == "model" and value != b"null":
            parts += [body[at : member.value_start], ALIAS]
            at = member.value_end
        if member.key == "usage":
            usage["usage"] = value
    return b"".join([*parts, body[at:]]), usage


def test_b3_an_answer_cut_at_every_byte_comes_out_the_same() -> None:
    wanted = EMBEDDINGS.replace(b'"org\\/m\\""', ALIAS)
    usage = {"usage": b'{"prompt_tokens":3,"d":[{"a":"]}"}]}'}
    assert expected(EMBEDDINGS) == (wanted, usage)
    for at in range(len(EMBEDDINGS) + 1):
        assert cut(EMBEDDINGS, at) == (wanted, usage)
    assert in_bytes(EMBEDDINGS) == (wanted, usage)


@settings(max_examples=40, deadline=None)
@given(objects(), st.data())
def test_any_object_in_any_pieces(text: Text, data: st.DataObject) -> None:
    body = text.body.replace(b'"messages"', b'"usage"')
    wanted = expected(body)
    assert cut(body, data.draw(st.integers(0, len(body)))) == wanted
    assert in_bytes(body) == wanted


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet='{}[]",:\\ a1n\n', max_size=40))
@example('{"model":}')
@example('{"model":,"model":1}')
@example('{"model":"a"')
@example('{"usage":[}]')
def test_garbage_passes_and_its_cuts_make_no_difference(text: str) -> None:
    data = text.encode()
    whole = cut(data, 0)
    assert in_bytes(data) == whole
    assert in_bytes(b'{"usage":' + data) == cut(b'{"usage":' + data, len(data) // 2)
    if b'"model"' not in data:
        assert whole[0] == data


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[" + EMBEDDINGS + b"]",
        b'"model"',
        b"<html>",
        b'\xef\xbb\xbf{"model":"m"}',
        b'{"mode":"m","models":["m"],"Model":"m","data":{"model":"m"}}',
        b'{"model":null}',
        b'{"a":1}{"model":"m"}',
        b'{"a" "model":"m"}',
        b'{"\\ud83d":1,"x\\":5]}',
        b'{"' + b"model" * 1000 + b'":"m"}',
    ],
)
def test_without_the_member_every_byte_stays(body: bytes) -> None:
    for at in range(0, len(body) + 1, max(1, len(body) // 200)):
        assert cut(body, at)[0] == body
    walk = TopLevel({"model": ALIAS})
    assert walk.feed(body) is body  # not even copied


def test_a_key_may_be_written_in_escapes() -> None:
    assert cut(b'{"\\u006dodel":"m"}', 4)[0] == b'{"\\u006dodel":"the alias"}'


def test_values_of_any_kind_are_replaced_and_twice_if_they_come_twice() -> None:
    for value in (b"1", b"{}", b'{"a":[1]}', b"[]", b'""', b"true"):
        body = b'{"model":' + value + b',"b":2,"model":' + value + b"}"
        assert in_bytes(body)[0] == b'{"model":"the alias","b":2,"model":"the alias"}'


def test_what_is_captured_is_bounded() -> None:
    small = b'"' + b"x" * (MOST_KEPT - 2) + b'"'
    assert cut(b'{"usage":' + small + b"}", 9)[1] == {"usage": small}
    assert cut(b'{"usage":' + small[:-1] + b'x"}', 9)[1] == {}
    assert cut(b'{"usage":[' + small + b"]}", 99)[1] == {}
    assert cut(b'{"usage":{"a":1', 9)[1] == {}


def test_nothing_is_held_back() -> None:
    walk = TopLevel({"model": ALIAS})
    sent = b""
    for i in range(len(EMBEDDINGS)):
        sent += walk.feed(EMBEDDINGS[i : i + 1])
        if i < EMBEDDINGS.index(b'"org'):
            assert sent == EMBEDDINGS[: i + 1]


def test_after_very_many_members_the_walk_ends() -> None:
    body = b"{" + b'"a":{},' * MAX_MEMBERS + b'"model":"m"}'
    assert cut(body, 100)[0] == body
    body = b"{" + b'"a":{},' * (MAX_MEMBERS - 2) + b'"model":"m"}'
    assert cut(body, 100)[0] == body.replace(b'"m"', ALIAS)


def test_deep_nesting_costs_no_more_than_its_bytes() -> None:
    body = b'{"a":' + b"[" * 400_000 + b"]" * 400_000 + b',"model":"m"}'
    assert cut(body, 300_000)[0].endswith(b',"model":"the alias"}')
    assert best_seconds(lambda: cut(body, 300_000), 3) < 0.4


def large(floats: bool) -> bytes:
    chance = random.Random(7)
    vectors = [[chance.gauss(0, 0.05) for _ in range(1024)] for _ in range(60)]
    embeddings = vectors if floats else [base64.b64encode(repr(v).encode()).decode() for v in vectors]
    data = [{"object": "embedding", "index": i, "embedding": e} for i, e in enumerate(embeddings)]
    body = json.dumps({"object": "list", "data": data, "model": "org/m", "usage": {"prompt_tokens": 5}}).encode()
    assert len(body) > 1_000_000
    return body


@pytest.mark.parametrize("floats", [True, False], ids=["floats", "base64"])
def test_a_megabyte_of_embeddings_passes_in_milliseconds(floats: bool) -> None:
    body = large(floats)
    pieces = [body[i : i + 65_536] for i in range(0, len(body), 65_536)]

    def walk() -> tuple[bytes, dict[str, bytes]]:
        top = TopLevel({"model": ALIAS}, ("usage",))
        return b"".join([top.feed(piece) for piece in pieces]), top.captured

    assert walk() == (body.replace(b'"org/m"', ALIAS), {"usage": b'{"prompt_tokens": 5}'})
    assert best_seconds(walk, 5) / (len(body) / 1e6) < 0.010


def test_memory_does_not_grow_with_the_answer() -> None:
    top = TopLevel({"model": ALIAS}, ("usage",))
    piece = b'{"object":"embedding","embedding":"' + b"A" * 50_000 + b'"},'
    top.feed(b'{"data":[')
    tracemalloc.start()
    for _ in range(600):
        assert top.feed(piece) is piece
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
