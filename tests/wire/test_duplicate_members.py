"""No member of a body may be given twice, on whatever surface: which of them counts would be each reader's choice."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import MalformedRequest
from gateway.wire.distinct import distinct_members
from gateway.wire.reading import read_request

_BODIES = {
    "chat": '"messages":[{"role":"user","content":"Why?"}]',
    "completions": '"prompt":"Why?"',
    "embeddings": '"input":"Why?"',
    "messages": '"max_tokens":5,"messages":[{"role":"user","content":"Why?"}]',
    "count_tokens": '"messages":[{"role":"user","content":"Why?"}]',
    "responses": '"input":"Why?"',
    "ollama_chat": '"messages":[{"role":"user","content":"Why?"}]',
    "ollama_generate": '"prompt":"Why?"',
    "ollama_embed": '"input":"Why?"',
    "rerank": '"query":"Why?","documents":["a"]',
    "score": '"text_1":"Why?","text_2":"b"',
    "tokenize": '"content":"Why?"',
    "detokenize": '"tokens":[1]',
    "images": '"prompt":"Why?"',
    "speech": '"input":"Why?"',
}


def refused(surface: str, body: str) -> MalformedRequest:
    with pytest.raises(MalformedRequest, match="more than once") as raised:
        read_request(surface, body.encode())
    assert (raised.value.status, raised.value.code) == (400, "duplicate_member")
    return raised.value


@pytest.mark.parametrize("surface", _BODIES)
@pytest.mark.parametrize("again", ['"model":"other"', '"\\u006dodel":"other"'])
def test_a_member_that_is_given_twice_is_refused(surface: str, again: str) -> None:
    body = f'{{"model":"m",{_BODIES[surface]},%s}}'
    assert read_request(surface, (body % '"user":"u"').encode()).model == "m"
    assert refused(surface, body % again).param == "model"


@pytest.mark.parametrize("surface", _BODIES)
@pytest.mark.parametrize(
    ("inside", "path"),
    [
        ('"x":{"a":1,"a":1}', "x.a"),
        ('"x": { "a" : 1 , "a" : 2 }', "x.a"),
        ('"x":[1,"{",[{}],[{"b":{}},{"b":"a:b","\\u0062":[":"]}]]', "x[3][1].b"),
        ('"x":{"\\u003a":1,"a":1,"a":1}', "x.a"),
        ('"x":' + '{"y":' * 20 + '{"a":1,"a":2}' + "}" * 20, "x" + ".y" * 20 + ".a"),
    ],
)
def test_so_is_one_inside_of_any_value(surface: str, inside: str, path: str) -> None:
    assert refused(surface, f'{{"model":"m",{_BODIES[surface]},{inside}}}').param == path


@pytest.mark.parametrize("spaced", [False, True])
@pytest.mark.parametrize(
    "second",
    [
        r'"content":"a","content":"Ein\u003a"',  # the escape makes up for the member's colon
        r'"content":"a:b","content":"\u003A\u003a"',
        r'"role":"user","content":"Why?"',
        r'"content":":","x":1,"x":2',
        r'"content":"é","x":{"y":1,"y":2}',
        r'"content":null,"name":"a:","name":"b"',
    ],
)
def test_so_is_one_among_messages_that_are_texts(second: str, spaced: bool) -> None:
    for tools in ("", '"tools":[{"type":"function","function":{"name":"a:b"}}],'):
        once = f'{{"model":"m",{tools}"messages":[{{"role":"user","content":"Why: is it?"}},{{"role":"user",%s}}]}}'
        body = once % second
        path = refused("chat", body.replace(",", ", ") if spaced else body).param
        assert path is not None
        assert path.startswith("messages[1].")
        assert read_request("chat", (once % r'"content":"Ein\u003a : \\u003a"').encode()).text.messages == 2


@pytest.mark.parametrize(
    ("surface", "rest", "path"),
    [
        ("chat", '"messages":[{"role":"user","content":"a","content":"b"}]', "messages[0].content"),
        ("chat", '"messages":[{"role":"user","content":[{"type":"text","text":"a","text":"b"}]}]',
         "messages[0].content[0].text"),
        ("chat", '"stream_options":{"include_usage":true,"include_usage":false},' + _BODIES["chat"],
         "stream_options.include_usage"),
        ("chat", '"tools":[{"type":"function","function":{"name":"a","name":"b"}}],' + _BODIES["chat"],
         "tools[0].function.name"),
        ("chat", '"response_format":{"type":"text","type":"json_object"},' + _BODIES["chat"], "response_format.type"),
        ("messages", '"max_tokens":5,"messages":[{"role":"user","role":"user","content":"a"}]', "messages[0].role"),
        ("responses", '"input":[{"role":"user","content":"a","content":"b"}]', "input[0].content"),
        ("ollama_chat", '"options":{"num_predict":1,"num_predict":9},' + _BODIES["ollama_chat"], "options.num_predict"),
        ("ollama_generate", '"prompt":"a","raw":true,"prompt":"b"', "prompt"),
    ],
)  # fmt: skip
def test_what_the_decision_reads_is_there_once(surface: str, rest: str, path: str) -> None:
    assert refused(surface, f'{{"model":"m",{rest}}}').param == path


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a:{}[]",\\ é', max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='a:"\\é', max_size=3), inner, max_size=4)
    ),
    max_leaves=30,
)


@given(value=st.dictionaries(st.sampled_from("xyz"), _JSON), ascii_only=st.booleans(), spaced=st.booleans())
def test_what_has_no_key_twice_passes(value: dict[str, object], ascii_only: bool, spaced: bool) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only, separators=None if spaced else (",", ":")).encode()
    assert [member.key for member in distinct_members(body)] == list(value)


@given(
    value=_JSON,
    twice=st.text(alphabet='a:"\\é', max_size=2),
    spaced=st.booleans(),
    depth=st.integers(0, 12),
    arrays=st.booleans(),
)
def test_what_has_one_twice_does_not(value: object, twice: str, spaced: bool, depth: int, arrays: bool) -> None:
    # Blanks where others have none make up for nothing.
    inner, key = json.dumps(value, separators=None if spaced else (",", ":")), json.dumps(twice)
    body = f'{{{key}:{inner},"other":{inner},{key}: 1}}'
    for _ in range(depth):
        body = f"[{inner},{body}]" if arrays else f'{{"b":{inner},"c":{body}}}'
    with pytest.raises(MalformedRequest, match="more than once"):
        distinct_members(f'{{"model":"m","x":{body}}}'.encode())


def test_a_path_is_named_in_bounded_length() -> None:
    body = json.dumps({"a" * 500: "@"}).replace('"@"', '{"b":1,"b":2}')
    with pytest.raises(MalformedRequest) as raised:
        distinct_members(body.encode())
    assert len(raised.value.param or "") == 64


_TEXT = st.text(alphabet=':a"\\é', max_size=4)
_MEMBER = st.tuples(st.sampled_from(["content", "name", "x:"]), _TEXT | st.none() | st.just([{"type": "text"}]))


@given(
    said=st.lists(st.lists(_MEMBER, max_size=4), min_size=1, max_size=3),
    escaped=st.booleans(),
    spaced=st.booleans(),
)
def test_messages_pass_only_if_none_has_a_key_twice(
    said: list[list[tuple[str, object]]], escaped: bool, spaced: bool
) -> None:
    def written(value: object) -> str:
        text = json.dumps(value, separators=None if spaced else (",", ":"))
        return text.replace(":", "\\u003a") if escaped and isinstance(value, str) else text

    objects = [
        "{" + ",".join(['"role":"user"', *(f"{written(key)}:{written(value)}" for key, value in message)]) + "}"
        for message in said
    ]
    body = f'{{"model":"m","messages":[{",".join(objects)}]}}'
    if all(len(dict(message)) == len(message) for message in said):
        assert read_request("chat", body.encode()).text.messages == len(said)
    else:
        refused("chat", body)
