"""Hypothesis strategies for JSON objects as text: odd spacing, escapes, number forms, duplicate keys."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hypothesis import strategies as st

space = st.text(alphabet=" \t\n\r", max_size=3).map(str.encode)
plain = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=8)
strings = st.one_of(
    plain.map(lambda text: json.dumps(text, ensure_ascii=True).encode()),
    plain.map(lambda text: json.dumps(text, ensure_ascii=False).encode()),
    st.sampled_from(
        [rb'"\/"', rb'"\\\""', rb'"\u00e9"', rb'"\ud83d\ude00"', '"é你"'.encode(), rb'"{\"a\":[1}"', rb'"\\"']
    ),
)
scalars = st.one_of(
    strings,
    st.sampled_from(
        [b"null", b"true", b"false", b"1.0", b"-0", b"1e5", b"12345678901234567890123", b"0.1000000000000000055"]
    ),
    st.integers().map(lambda number: str(number).encode()),
)


def _array(items: list[tuple[bytes, bytes, bytes]]) -> bytes:
    return b"[" + b",".join(b"".join(item) for item in items) + b"]"


def _object(items: list[tuple[bytes, bytes, bytes, bytes]]) -> bytes:
    return b"{" + b",".join(before + key + b":" + value + after for before, key, value, after in items) + b"}"


values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(st.tuples(space, inner, space), max_size=3).map(_array),
        st.lists(st.tuples(space, strings, inner, space), max_size=3).map(_object),
    ),
    max_leaves=5,
)

# A few keys, some of them the same key in other words, so that duplicates are common.
KEYS = (b'"model"', b'"stream"', b'"\\u006dodel"', b'"a\\"b"', '"é"'.encode(), b'"\\u00e9"', b'"messages"', b'""')


@dataclass(frozen=True)
class Text:
    """One object as text; a member is (space before, raw key, raw colon, raw value, space after)."""

    before: bytes
    inside: bytes
    members: tuple[tuple[bytes, bytes, bytes, bytes, bytes], ...]
    after: bytes

    @property
    def body(self) -> bytes:
        return self.with_values([value for _, _, _, value, _ in self.members])

    def with_values(self, new: list[bytes]) -> bytes:
        members = (
            before + key + colon + value + after
            for (before, key, colon, _, after), value in zip(self.members, new, strict=True)
        )
        inside = b",".join(members) if self.members else self.inside
        return self.before + b"{" + inside + b"}" + self.after

    @property
    def keys(self) -> list[str]:
        return [json.loads(key) for _, key, _, _, _ in self.members]


def objects(unique: bool = False) -> st.SearchStrategy[Text]:
    colon = st.tuples(space, space).map(lambda around: around[0] + b":" + around[1])
    member = st.tuples(space, st.sampled_from(KEYS), colon, values, space)
    unique_by = (lambda item: json.loads(item[1])) if unique else None
    members = st.lists(member, max_size=6, unique_by=unique_by).map(tuple)
    return st.builds(Text, space, space, members, space)
