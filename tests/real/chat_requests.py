"""Strategies for valid chat requests, as llama.cpp takes them, and for the ways in which JSON can be written."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

__all__ = ["chat_bodies"]

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40) | st.sampled_from(
    (
        'a "quoted" word',
        "tab\tand\nline",
        "C:\\temp\\u0041",
        "🙂 naïve ✓",
        "</s><|im_end|>",
        '{"model":"other","stream":true}',
        "data: [DONE]\n\n",
    )
)
LETTERS = st.text("abcdefgh_", min_size=1, max_size=8)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(-1e6, 1e6) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LETTERS, inner, max_size=3),
    max_leaves=5,
)
CONTENT = TEXT | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}), min_size=1, max_size=2)
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "enum": ["red", "green"]}, "warm": {"type": "boolean"}},
    "required": ["name", "warm"],
}
FORMATS = (
    {"type": "text"},
    {"type": "json_object"},
    {"type": "json_schema", "json_schema": {"name": "colour", "schema": SCHEMA, "strict": True}},
)
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}


@st.composite
def _messages(draw: st.DrawFn) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": draw(TEXT)}] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(0, 2))):
        messages.append({"role": "user", "content": draw(CONTENT)})
        messages.append({"role": "assistant", "content": draw(TEXT)})
    return [*messages, {"role": "user", "content": draw(CONTENT)}]


def _share(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False).map(lambda number: round(number, 3))


_SAMPLING = st.fixed_dictionaries(
    {"seed": st.integers(0, 2**31 - 1), "temperature": st.just(0) | _share(0.1, 2)},
    optional={
        "top_p": _share(0.1, 1),
        "top_k": st.integers(1, 100),
        "min_p": _share(0, 0.5),
        "presence_penalty": _share(-2, 2),
        "frequency_penalty": _share(-2, 2),
        "repeat_penalty": _share(1, 1.5),
        "logit_bias": st.dictionaries(st.integers(100, 2000).map(str), st.integers(-20, 20), max_size=3),
        "stop": st.lists(st.sampled_from(("e", " a", "\n", "zq")), min_size=1, max_size=3)
        | st.sampled_from(("e", "zq")),
        "ignore_eos": st.booleans(),
    },
)
_SHAPE: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"logprobs": st.just(True)}, optional={"top_logprobs": st.integers(0, 5)}),
    st.fixed_dictionaries({"response_format": st.sampled_from(FORMATS)}),
    st.fixed_dictionaries(
        {"tools": st.just([TOOL])},
        optional={"tool_choice": st.sampled_from(("auto", "none")), "parallel_tool_calls": st.booleans()},
    ),
)
_MISCELLANY = st.fixed_dictionaries(
    {},
    optional={
        "user": TEXT,
        "metadata": st.dictionaries(LETTERS, TEXT, max_size=2),
        "n": st.just(1),
        "stream_options": st.fixed_dictionaries({"include_usage": st.booleans()}),
        "timings_per_token": st.booleans(),
        "return_tokens": st.booleans(),
        "chat_template_kwargs": st.dictionaries(LETTERS, st.booleans(), max_size=2),
        "x_unknown": ANYTHING,
    },
)


@st.composite
def chat_bodies(draw: st.DrawFn, model: str) -> tuple[bytes, bytes]:
    """The same request twice, asking for a whole answer and for a stream, as bytes in a spelling of its own."""
    limit = draw(st.sampled_from(("max_tokens", "max_completion_tokens")))
    shape = draw(_SHAPE)
    budget = draw(st.integers(1, 32 if "response_format" in shape else 12))
    parts = [{"model": model, "messages": draw(_messages()), limit: budget}, shape]
    parts += [draw(_SAMPLING), draw(_MISCELLANY)]
    body: dict[str, Any] = {name: value for part in parts for name, value in part.items()}
    options = body.pop("stream_options", None)
    ascii_only, spaces = draw(st.booleans()), draw(st.sampled_from(((",", ":"), (", ", ": "), (" ,\n", " : "))))
    order = draw(st.permutations(sorted({*body, "stream", "stream_options"})))

    def written(**more: Any) -> bytes:
        members = body | more
        ordered = {name: members[name] for name in order if name in members}
        return json.dumps(ordered, ensure_ascii=ascii_only, separators=spaces).encode()

    streamed = {"stream": True} if options is None else {"stream": True, "stream_options": options}
    return written(**draw(st.sampled_from(({}, {"stream": False})))), written(**streamed)
