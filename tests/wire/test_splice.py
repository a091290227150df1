from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import MalformedRequest
from gateway.wire.distinct import distinct_members
from gateway.wire.members import MAX_MEMBERS, members, most_keys
from gateway.wire.splice import pieces, splice, splice_path
from tests.wire.json_text import Text, objects, values

KEYS = ("model", "stream", 'a"b', "é", "messages", "", "absent", "other")
few = settings(max_examples=25, deadline=None)
edits = st.dictionaries(st.sampled_from(KEYS), st.one_of(st.none(), values), max_size=4)


def loaded(body: bytes) -> list[tuple[str, object]]:
    return json.loads(body, object_pairs_hook=list, parse_float=str, parse_int=str)


def winning(body: bytes) -> dict[str, object]:
    return dict(json.loads(body, object_pairs_hook=lambda pairs: _Pairs(pairs), parse_float=str, parse_int=str))


class _Pairs(list):
    """Members of an object at any depth, comparable with order and duplicates."""


@few
@given(objects(), edits)
def test_the_result_means_the_same_but_for_the_edits(text: Text, edits: dict[str, bytes | None]) -> None:
    body = text.body
    result = splice(body, edits)
    expected = winning(body)
    for key, value in edits.items():
        if value is None:
            expected.pop(key, None)
        else:
            expected[key] = winning(b'{"x":' + value + b"}")["x"]
    assert winning(result) == expected


@few
@given(objects(), edits)
def test_an_edited_key_is_there_once_at_most(text: Text, edits: dict[str, bytes | None]) -> None:
    keys = [key for key, _ in loaded(splice(text.body, edits))]
    for key, value in edits.items():
        assert keys.count(key) == (value is not None)


@few
@given(objects(unique=True), values)
def test_setting_what_is_there_changes_its_value_only(text: Text, value: bytes) -> None:
    new = [value if key == "model" else old for key, (_, _, _, old, _) in zip(text.keys, text.members, strict=True)]
    if "model" in text.keys:
        assert splice(text.body, {"model": value}) == text.with_values(new)


@few
@given(objects(), edits)
def test_members_that_are_not_named_keep_every_byte_and_their_order(text: Text, edits: dict[str, bytes | None]) -> None:
    result = splice(text.body, edits)
    at = 0
    for key, (_, raw_key, colon, value, _) in zip(text.keys, text.members, strict=True):
        if key not in edits:
            at = result.index(raw_key + colon + value, at) + len(raw_key + colon + value)
    assert result.startswith(text.before)
    assert result.endswith(text.after)


@few
@given(objects())
def test_no_edit_no_change(text: Text) -> None:
    body = text.body
    assert splice(body, {}) == body
    assert splice(body, {"absent": None}) == body


@few
@given(objects())
def test_members_lie_where_they_are(text: Text) -> None:
    body = text.body
    found = members(body)
    assert [member.key for member in found] == text.keys
    for member, (_, raw_key, colon, value, _) in zip(found, text.members, strict=True):
        assert body[member.key_start : member.value_start] == raw_key + colon
        assert body[member.value_start : member.value_end] == value


@few
@given(objects(), st.one_of(st.none(), values))
def test_a_nested_member_is_set_or_removed_alone(text: Text, value: bytes | None) -> None:
    options = b'{ "x" : 1.0 }'
    body = splice(text.body, {"stream_options": options})
    result = splice_path(body, ("stream_options", "include_usage"), value)
    if value is None:
        assert result == body
    else:
        assert result == body.replace(options, b'{ "x" : 1.0,"include_usage":' + value + b" }")
        assert splice_path(result, ("stream_options", "include_usage"), None) == body


def test_what_a_prefix_cache_and_a_schema_depend_on_survives() -> None:
    body = (
        '{ "model" : "alias",\n\t"response_format":{"schema":{"zebra":1.0,"apple":2,"mango":0.1000000000000000055}},'
        '"seed":12345678901234567890123 ,"messages":[{"role":"user","content":"é \\u00e9 \\/ 你"}]}\n'
    ).encode()
    assert splice(body, {"model": b'"org/served"'}) == body.replace(b'"alias"', b'"org/served"')


def test_missing_objects_on_the_way_are_made() -> None:
    assert (
        splice_path(b"{}", ("stream_options", "include_usage"), b"true") == b'{"stream_options":{"include_usage":true}}'
    )
    assert splice_path(b'{"a":null}', ("a", "b", "c"), b"1") == b'{"a":{"b":{"c":1}}}'
    assert splice_path(b'{"a":1}', ("b", "c"), None) == b'{"a":1}'


def test_something_else_on_the_way_is_refused_by_name() -> None:
    with pytest.raises(MalformedRequest) as caught:
        splice_path(b'{"stream_options":[1]}', ("stream_options", "include_usage"), b"true")
    assert caught.value.param == "stream_options"


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"1", b"{", b'{"a":1,}', b'{"a":1} {"b":2}', b'{"a":nan}', b'{"a":"\xff"}'[:5]]
)
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedRequest):
        splice(body, {"model": b'"x"'})


@few
@given(objects(), edits)
def test_pieces_are_the_spliced_body_and_known_members_change_nothing(
    text: Text, edits: dict[str, bytes | None]
) -> None:
    found = members(text.body)
    assert b"".join(pieces(text.body, edits, found)) == splice(text.body, edits)
    assert found == members(text.body)


@settings(max_examples=8, deadline=None)
@given(objects(), st.integers(0, 1))
def test_members_of_a_dense_body_are_the_same(text: Text, last: int) -> None:
    filler = b'"dense":[' + b'{"a":{"b":"}\\"]"}},' * 30_000 + b"1]"
    inner = text.body.strip()
    if inner.strip(b"{} \n\r\t") == b"":
        return
    body = inner[:-1] + b"," + filler + b"}" if last else b"{" + filler + b"," + inner[1:]
    expected = [(key, raw) for key, (_, _, _, raw, _) in zip(text.keys, text.members, strict=True)]
    found = [(m.key, body[m.value_start : m.value_end]) for m in members(body)]
    dense = ("dense", filler[8:])
    assert found == ([*expected, dense] if last else [dense, *expected])


@pytest.mark.parametrize("key", ["k%d", "same", "model"])
@pytest.mark.parametrize("count", [MAX_MEMBERS + 1, 60_000])
def test_a_body_of_very_many_members_is_refused(key: str, count: int) -> None:
    body = "{" + ",".join(f'"{key % i if "%" in key else key}":{i}' for i in range(count)) + "}"
    with pytest.raises(MalformedRequest, match="more than 1000 members"):
        members(body.encode())


def test_keys_are_never_more_than_told() -> None:
    for body, keys in (
        (b'{"a":1,"b" :{"c":2}}', 3),
        (b'{"a":"{\\"b\\":1,\\"c\\":2}"}', 1),
        (rb'{"\\":1,"a\\":2}', 2),
        (rb'{"\"":1}', 1),
    ):
        assert json.loads(body)
        assert keys <= most_keys(body) <= keys + 1


def test_as_many_members_as_are_allowed() -> None:
    body = "{" + ",".join(f'"k{i}":{i}' for i in range(MAX_MEMBERS)) + "}"
    assert len(members(body.encode())) == MAX_MEMBERS


def test_dense_bodies_that_are_no_object_are_refused() -> None:
    for body in (
        b"[" + b'{"a":1},' * 60_000 + b"1]",
        b'{"a":' * 60_000 + b"1" + b"}" * 60_000,
        b'{"a":1' + b":" * 60_000,
    ):
        with pytest.raises(MalformedRequest):
            members(body)


def _repeats_inside(value: object) -> bool:
    if isinstance(value, _Pairs):
        return len(dict(value)) < len(value) or any(_repeats_inside(item) for _, item in value)
    return any(
        map(_repeats_inside, value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    )


@few
@given(objects())
def test_a_key_given_twice_is_refused_by_name(text: Text) -> None:
    twice = [key for i, key in enumerate(text.keys) if key in text.keys[:i]]
    if not twice and not _repeats_inside(winning(text.body)):
        assert list(distinct_members(text.body)) == members(text.body)
        return
    with pytest.raises(MalformedRequest) as caught:
        distinct_members(text.body)
    assert (caught.value.status, caught.value.code, caught.value.param) == (
        400,
        "duplicate_member",
        *(twice[:1] or [caught.value.param]),
    )


def test_a_long_key_given_twice_is_named_in_short() -> None:
    key = "k" * 10_000
    with pytest.raises(MalformedRequest) as caught:
        distinct_members(f'{{"{key}":1,"{key}":2}}'.encode())
    assert caught.value.param == "k" * 64
    assert len(caught.value.message) < 120


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages":[1,2],"model":"m"}',
        b'{"messages":[1],"messages":[1,{"a":"]"}],"n":1}',
        b'{"messages":"x","a":1,"messages":"\\",\\"b\\":\\""}',
        b'{"mess\\u0061ges":[1],"x":{"messages":[2]},"messages":[3]}',
        b'{"__class__":1,"__struct_fields__":[],"messages":null}',
        b'{"other":[' + b'{"a":"]"},' * 9000 + b'0],"messages":[],"z":' + b"9" * 40_000 + b"}",
        b'{"other":"' + b"\\n" * 90_000 + b'","input":[' + b'"\\"",' * 90_000 + b'0], "z" : 1.50 }',
        b'{"a":"' + b"x" * 40_000 + b'","documents":{"b":[' + b"[]," * 30_000 + b'0]},"a":1}',
    ],
    ids=range(8),
)
def test_long_members_and_twins_are_where_they_are(body: bytes) -> None:
    told: list[tuple[str, object]] = json.loads(body, object_pairs_hook=lambda pairs: pairs, parse_int=str)
    found = members(body)
    assert [(one.key, json.loads(body[one.value_start : one.value_end], object_pairs_hook=list, parse_int=str))
            for one in found] == told  # fmt: skip
    for one in found:
        assert body[one.key_start : one.key_start + 1] == b'"'
