from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from gateway.errors import MalformedRequest
from gateway.wire.chat_request import parse_chat, parse_completion
from tests.wire.json_text import values

USER = {"role": "user", "content": "Hi"}


def chat(**more: Any) -> bytes:
    return json.dumps({"model": "m", "messages": [USER], **more}).encode()


def completion(**more: Any) -> bytes:
    return json.dumps({"model": "m", "prompt": "Hi", **more}).encode()


def test_what_is_unsaid() -> None:
    req = parse_chat(chat())
    assert (req.surface, req.model, req.stream, req.n, req.prompts) == ("chat", "m", False, 1, 1)
    assert (req.max_tokens, req.max_tokens_field, req.include_usage, req.stream_options) == (None, None, None, None)
    assert (req.tools, req.needs, req.images, req.session) == (0, frozenset(), 0, None)
    assert not req.stops
    assert not req.verbose


def test_what_is_said() -> None:
    req = parse_chat(
        chat(
            stream=True,
            n=3,
            max_tokens=7,
            stream_options={"include_usage": False, "x": 1},
            tools=[{"type": "function"}, {}],
            logprobs=True,
            response_format={"type": "json_schema", "json_schema": {}},
            prompt_cache_key="thread-1",
            stop=["\n"],
        )
    )
    assert (req.stream, req.n, req.max_tokens, req.max_tokens_field) == (True, 3, 7, "max_tokens")
    assert (req.include_usage, req.stream_options) == (False, b'{"include_usage": false, "x": 1}')
    assert (req.tools, req.session, req.stops) == (2, "thread-1", True)
    assert req.needs == {"tools", "json_schema", "logprobs"}


def test_null_is_unsaid() -> None:
    nothing = dict.fromkeys(
        (
            "stream",
            "n",
            "max_tokens",
            "stream_options",
            "tools",
            "logprobs",
            "response_format",
            "stop",
            "prompt_cache_key",
        )
    )
    assert parse_chat(chat(**nothing)) == parse_chat(chat()).__class__(
        **{
            **{name: getattr(parse_chat(chat()), name) for name in parse_chat(chat()).__slots__},
            "stream_options": b"null",
        }
    )


@pytest.mark.parametrize(
    ("budgets", "expected"),
    [
        ({"max_tokens": 5}, (5, "max_tokens")),
        ({"max_tokens": 5.0}, (5, "max_tokens")),
        ({"max_tokens": 0}, (0, "max_tokens")),
        ({"max_completion_tokens": 9, "max_tokens": 5}, (9, "max_completion_tokens")),
        ({"max_completion_tokens": None, "max_tokens": 5}, (5, "max_tokens")),
        ({"n_predict": 4}, (4, "n_predict")),
        ({"n_predict": 4, "max_tokens": 5}, (5, "max_tokens")),
        ({"n_predict": -1}, (None, None)),
    ],
)
def test_the_output_budget(budgets: dict[str, Any], expected: tuple[int | None, str | None]) -> None:
    for req in (parse_chat(chat(**budgets)), parse_completion(completion(**budgets))):
        assert (req.max_tokens, req.max_tokens_field) == expected


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"", None),
        (b"{", None),
        (b"[]", None),
        (b"null", None),
        (b'{"messages":[{"role":"user","content":"Hi"}]}', "model"),
        (chat(model=""), "model"),
        (chat(model=3), "model"),
        (chat(messages=[]), "messages"),
        (chat(messages=None), "messages"),
        (chat(messages="Hi"), "messages"),
        (chat(messages=[{"content": "Hi"}]), "messages[0].role"),
        (chat(messages=[USER, {"role": 1}]), "messages[1].role"),
        (chat(messages=[{"role": "user", "content": {}}]), "messages[0].content"),
        (chat(messages=[{"role": "user", "content": [{"type": "text", "text": 1}]}]), "messages[0].content[0].text"),
        (chat(stream="yes"), "stream"),
        (chat(n=0), "n"),
        (chat(n=129), "n"),
        (chat(n=1.5), "n"),
        (chat(n=True), "n"),
        (chat(max_tokens=-1), "max_tokens"),
        (chat(max_tokens=2**31), "max_tokens"),
        (chat(max_tokens=10**30), "max_tokens"),
        (chat(max_tokens=1e300), "max_tokens"),
        (chat(max_tokens="many"), "max_tokens"),
        (chat(max_completion_tokens=-5, max_tokens=5), "max_completion_tokens"),
        (chat(tools={}), "tools"),
        (chat(tools=[1]), "tools[0]"),
        (chat(tools=[{}, "f"]), "tools[1]"),
        (chat(tools=[None]), "tools[0]"),
        (chat(stream_options=[]), "stream_options"),
        (chat(stream_options={"include_usage": 1}), "stream_options"),
        (chat(response_format="json"), "response_format"),
        (chat(temperature=float("nan")), "temperature"),
        (chat(temperature=float("inf")), "temperature"),
        (b'{"model":"m","messages":[{"role":"user","content":"Hi"}],"max_tokens":1e999}', "max_tokens"),
        (chat(messages=[{"role": "user", "content": "half \ud83d of it"}]), "messages"),
        (chat(messages=[{"role": "user", "content": "\ude00"}]), "messages"),
        (chat(user="\ud83d"), "user"),
        (b'{"model":"m","messages":[{"role":"user","content":"\xff"}]}', "messages"),
        (b'{"model":"m","messages":[{"role":"user","content":"Hi"}],"x":["\xc3"]}', "x"),
        (b'{"model":"m","messages":[{"role":"user","content":"Hi"}],"x":tru}', "x"),
        (chat()[:-1] + b',"x":' + b"[" * 5000 + b"]" * 5000 + b"}", None),
        (chat()[:-1] + b',"x":' + b'{"a":' * 100_000, None),
        (chat() + chat(), None),
    ],
)
def test_what_is_refused_and_which_member_is_named(body: bytes, param: str | None) -> None:
    with pytest.raises(MalformedRequest) as caught:
        parse_chat(body)
    assert caught.value.status == 400
    assert caught.value.param == param


def test_no_prompt_text_in_a_refusal() -> None:
    secret = "the-secret-word"
    for broken in (
        chat(messages=[{"role": "user", "content": {secret: secret}}]),
        chat(messages=[{"role": "user", "content": secret + "\ud83d"}]),
        chat(messages=[{"role": "user", "content": secret, "name": secret}])[:-2],
        chat(messages=[{"content": secret}]),
        chat(messages=[{"role": "user", "content": [{"type": "text", "text": [secret]}]}]),
    ):
        with pytest.raises(MalformedRequest) as caught:
            parse_chat(broken)
        assert secret not in str(vars(caught.value))
        assert secret not in str(caught.value)


def _unrepeated(value: bytes) -> bool:
    objects: list[list[tuple[str, Any]]] = []
    json.loads(value, object_pairs_hook=objects.append)
    return all(len(dict(pairs)) == len(pairs) for pairs in objects)


@settings(max_examples=25, deadline=None)
@given(values.filter(_unrepeated))
def test_unknown_members_are_not_looked_at(value: bytes) -> None:
    assert parse_chat(chat()[:-1] + b',"min_p":' + value + b"}") == parse_chat(chat())


def test_the_canonical_text() -> None:
    tools = '[ {"type":"function", "x":1.0} ]'
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "name": "ann", "content": [{"type": "text", "text": "Héllo"}, {"type": "text", "text": "!"}]},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "think",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
    ]
    body = ('{"tools":' + tools + ',"messages":' + json.dumps(messages) + ',"model":"m"}').encode()
    text = parse_chat(body).text
    expected = [
        tools.encode(),
        b"system\nBe brief.\n",
        "user\nann\nHéllo!\n".encode(),
        b'assistant\nf\n{"a":1}think\n',
        b"tool\n42\n",
    ]
    assert b"".join(text.pieces) == b"".join(expected)
    ends = [sum(map(len, expected[: i + 1])) for i in range(len(expected))]
    assert text.message_ends == ends[1:]
    assert text.messages == 4


def test_the_same_text_in_other_escapes_renders_the_same() -> None:
    raw = '{"model":"m","messages":[{"role":"user","content":"é你😀/"}]}'.encode()
    escaped = rb'{"model":"m","messages":[{"role":"user","content":"\u00e9\u4f60\ud83d\ude00\/"}]}'
    assert parse_chat(raw).text == parse_chat(escaped).text


def test_ids_do_not_tell_prompts_apart() -> None:
    def with_id(name: str) -> bytes:
        call = {"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        return chat(
            messages=[
                {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": name, "content": ""},
            ]
        )

    assert parse_chat(with_id("a")).text == parse_chat(with_id("b")).text


def test_pictures_and_sounds() -> None:
    def picture(data: str) -> bytes:
        url = f"data:image/png;base64,{data}"
        parts = [
            {"type": "text", "text": "What?"},
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
        ]
        return chat(messages=[{"role": "user", "content": parts}])

    first, second = parse_chat(picture("A" * 100_000)), parse_chat(picture("A" * 99_999 + "B"))
    assert first.needs == {"vision", "audio"}
    assert first.images == 1
    assert first.text != second.text  # told apart
    assert first.text.message_ends[-1] < 200  # but base64 is no text to count


def test_odd_shapes_that_an_engine_may_take_are_not_refused() -> None:
    parse_chat(
        chat(messages=[{"role": "assistant", "content": "x", "tool_calls": {"odd": 1}, "reasoning": {"text": "y"}}])
    )
    parse_chat(chat(messages=[{"role": "user", "content": ["plain", {"type": "new_kind", "data": 1}]}]))
    parse_chat(chat(prompt_cache_key=17, tool_choice={"type": "function"}, stop="x"))
    parse_chat(chat(messages=[{"role": "assistant", "tool_calls": None, "content": "x"}]))


def test_tools_that_may_not_be_used_are_no_need() -> None:
    req = parse_chat(chat(tools=[{}], tool_choice="none"))
    assert (req.tools, req.needs) == (1, frozenset())
    assert parse_chat(chat(tools=[])).needs == frozenset()


def test_an_endless_session_key_is_none() -> None:
    assert parse_chat(chat(prompt_cache_key="k" * 1000)).session is None
    assert parse_chat(chat(session_id="s")).session == "s"


@pytest.mark.parametrize(
    ("prompt", "prompts", "tokens", "text"),
    [
        ("Hi", 1, None, b"Hi"),
        (["Hi", "you"], 2, None, b"Hiyou"),
        ([1, 2, 3], 1, 3, b"[1,2,3]"),
        ([[1, 2], [3]], 2, 3, b"[1,2][3]"),
        (["Hi", [3]], 2, None, b"Hi[3]"),
    ],
)
def test_prompts(prompt: Any, prompts: int, tokens: int | None, text: bytes) -> None:
    req = parse_completion(completion(prompt=prompt))
    assert (req.surface, req.prompts, req.prompt_tokens) == ("completions", prompts, tokens)
    assert b"".join(req.text.pieces) == text
    assert req.text.messages == prompts
    assert req.text.message_ends[-1] == len(text)


@pytest.mark.parametrize("prompt", [None, [], {}, 3, [1.5], [[["x"]]]])
def test_prompts_that_are_none(prompt: Any) -> None:
    with pytest.raises(MalformedRequest) as caught:
        parse_completion(completion(prompt=prompt))
    assert (caught.value.param or "").startswith("prompt")


def test_completion_logprobs_may_be_zero() -> None:
    assert parse_completion(completion(logprobs=0)).needs == {"logprobs"}
    assert parse_completion(completion(logprobs=None)).needs == frozenset()


def test_more_prompts_messages_or_members_than_any_engine_takes() -> None:
    assert parse_completion(completion(prompt=[[1]] * 2048)).prompts == 2048
    with pytest.raises(MalformedRequest, match="2048 prompts"):
        parse_completion(completion(prompt=[[1]] * 2049))
    with pytest.raises(MalformedRequest, match="2048 prompts"):
        parse_completion(completion(prompt=["a"] * 2049))
    assert parse_completion(completion(prompt=[1] * 5000)).prompt_tokens == 5000
    with pytest.raises(MalformedRequest, match="messages and parts"):
        parse_chat(chat(messages=[USER] * 100_001))
    with pytest.raises(MalformedRequest, match="messages and parts"):
        parse_chat(chat(messages=[{"role": "user", "content": [{"type": "text", "text": "a"}] * 100_000}]))
    with pytest.raises(MalformedRequest, match="1000 members"):
        parse_chat(chat(**{f"k{i}": i for i in range(1000)}))


def test_where_the_members_lie_is_part_of_it() -> None:
    body = chat(stream=True)
    found = {m.key: body[m.value_start : m.value_end] for m in parse_chat(body).members}
    assert found["model"] == b'"m"'
    assert found["stream"] == b"true"
    assert json.loads(found["messages"]) == [USER]


@pytest.mark.parametrize("parse", [parse_chat, parse_completion])
@pytest.mark.parametrize(
    ("twice", "param"),
    [
        (b'"model":"a","model":"b"', "model"),
        (b'"model":"a","\\u006dodel":"a"', "model"),
        (b'"model":"a","stream":true,"x":{"stream":1},"stream":false', "stream"),
        (b'"model":"a","x_unknown":1,"x_unknown":1', "x_unknown"),
    ],
)
def test_a_member_given_twice_is_refused(parse: Any, twice: bytes, param: str) -> None:
    body = b'{"messages":[{"role":"user","content":"Hi"}],"prompt":"Hi",' + twice + b"}"
    with pytest.raises(MalformedRequest) as caught:
        parse(body)
    assert (caught.value.code, caught.value.param) == ("duplicate_member", param)


@pytest.mark.parametrize("before", range(32_700, 32_770, 3))
def test_a_character_may_lie_across_the_pieces_in_which_a_body_is_checked(before: int) -> None:
    head = b'{"model":"m","messages":[{"role":"user","content":"Hi"}],"note":"' + b"x" * before
    assert parse_chat(head + "日本語 é 😀".encode() + b'"}').model == "m"
    for broken in (b"\xe6\x97", b"\xa5", b"\xff", b"\xed\xa0\x80"):
        with pytest.raises(MalformedRequest, match="not valid UTF-8") as caught:
            parse_chat(head + broken + b'"}')
        assert caught.value.param == "note"
    with pytest.raises(MalformedRequest):
        parse_chat(head + b"\xe6\x97")
