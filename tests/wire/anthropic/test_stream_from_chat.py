from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import StreamBroken
from gateway.wire.anthropic.answer_from_chat import answer
from gateway.wire.anthropic.request_to_chat import Asked
from gateway.wire.anthropic.stream_from_chat import MessageWriter
from gateway.wire.sse import Framer, data_of
from gateway.wire.translation import Stamp
from tests.recordings import FOLDER, pairs, recording
from tests.wire.anthropic.checked import events, final_message, message

STAMP = Stamp("abc123", 1_764_000_000, "alias", stream=True)
PAIRS = [name for name in pairs() if name.startswith("chat_")]


def chunk(delta: dict[str, Any], reason: str | None = None, **choice: Any) -> dict[str, Any]:
    return {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": reason, **choice}]}


def calls(*pieces: Any) -> dict[str, Any]:
    """A chunk of tool calls; a piece is (index, arguments) or (index, arguments, id, name)."""
    written = []
    for index, arguments, *head in pieces:
        one: dict[str, Any] = {"index": index, "function": {"arguments": arguments}}
        if head:
            one |= {"id": head[0], "type": "function"}
            one["function"]["name"] = head[1]
        written.append(one)
    return chunk({"tool_calls": written})


def fed(*chunks: dict[str, Any], stops: tuple[str, ...] = ()) -> bytes:
    writer = MessageWriter(Asked(stops), STAMP)
    return b"".join(writer.feed(json.dumps(one).encode()) for one in chunks) + writer.end()


def written(body: bytes, cut: int | None = None) -> bytes:
    """What a recorded chat stream becomes, read in one piece or in two."""
    framer, writer = Framer(), MessageWriter(Asked(), STAMP)
    parts = [body] if cut is None else [body[:cut], body[cut:]]
    found = [event for part in parts for event in framer.feed(part)]
    return b"".join(writer.feed(data) for event in found if (data := data_of(event)) is not None) + writer.end()


def kinds(body: bytes) -> list[str]:
    return [event.type for event in events(body)]


def test_the_events_of_a_text() -> None:
    body = fed(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "he"}),
        chunk({"content": "llo"}),
        chunk({}, "stop"),
        {
            "choices": [],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}},
        },
    )
    assert kinds(body) == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    told = final_message(body)
    assert (told.id, told.model, told.content[0].text, told.stop_reason) == ("msg_abc123", "alias", "hello", "end_turn")
    usage = told.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (4, 5, 2)


def test_the_first_chunk_starts_the_message() -> None:
    writer = MessageWriter(Asked(), STAMP)
    assert kinds(writer.feed(json.dumps(chunk({"role": "assistant", "content": None})).encode())) == ["message_start"]


def test_reasoning_text_and_calls_are_blocks_in_a_row() -> None:
    told = final_message(
        fed(
            chunk({"reasoning_content": "h"}),
            chunk({"reasoning": "m"}),
            chunk({"content": "hi"}),
            calls((0, "", "c1", "run")),
            calls((0, '{"a"')),
            calls((0, ":1}")),
            chunk({}, "tool_calls"),
        )
    )
    assert [block.type for block in told.content] == ["thinking", "text", "tool_use"]
    assert (told.content[0].thinking, told.content[1].text) == ("hm", "hi")
    assert (told.content[2].id, told.content[2].name, told.content[2].input) == ("c1", "run", {"a": 1})
    assert told.stop_reason == "tool_use"


def test_r2_parallel_calls_whose_pieces_alternate() -> None:
    body = fed(
        calls((0, "", "c1", "run"), (1, "", "c2", "now")),
        calls((0, '{"x":')),
        calls((1, '{"y"')),
        calls((0, '"1')),
        calls((1, ':"2'), (0, '"}')),
        {"choices": [{"index": 0, "delta": calls((1, '"}'))["choices"][0]["delta"], "finish_reason": "tool_calls"}]},
    )
    open_blocks: list[int] = []
    for event in events(body):
        if event.type == "content_block_start":
            assert not open_blocks
            open_blocks.append(event.index)
        elif event.type == "content_block_delta":
            assert open_blocks == [event.index]
        elif event.type == "content_block_stop":
            assert open_blocks.pop() == event.index
    told = final_message(body)
    assert [(block.name, block.input) for block in told.content] == [("run", {"x": "1"}), ("now", {"y": "2"})]


def test_calls_one_after_the_other_are_written_as_they_arrive() -> None:
    writer = MessageWriter(Asked(), STAMP)
    for one in (calls((0, "", "c1", "run")), calls((0, '{"x":1}'))):
        writer.feed(json.dumps(one).encode())
    second = writer.feed(json.dumps(calls((1, "", "c2", "now"))).encode())
    assert kinds(second) == ["content_block_stop"]  # more of the name may come
    third = writer.feed(json.dumps(calls((1, '{"y"'))).encode())
    assert kinds(third) == ["content_block_start", "content_block_delta"]


def test_calls_in_one_chunk_and_calls_all_numbered_zero() -> None:
    one = fed(calls((0, '{"a":1}', "c1", "run"), (1, "{}", "c2", "now")), chunk({}, "tool_calls"))
    zero = fed(calls((0, '{"a":1}', "c1", "run"), (0, "{}", "c2", "now")), chunk({}, "tool_calls"))
    for body in (one, zero):
        assert [(block.id, block.input) for block in final_message(body).content] == [("c1", {"a": 1}), ("c2", {})]


def test_calls_without_an_index_or_an_id() -> None:
    def bare(arguments: Any, **more: Any) -> dict[str, Any]:
        return chunk({"tool_calls": [{"index": None, "function": {"arguments": arguments, **more}}]})

    told = final_message(fed(bare("", name="run"), bare('{"a":'), bare("1}"), bare({"b": 2}, name="now")))
    assert [(block.id, block.name, block.input) for block in told.content] == [
        ("toolu_abc123_0", "run", {"a": 1}),
        ("toolu_abc123_1", "now", {"b": 2}),
    ]


def test_text_after_a_call_is_kept_for_its_turn() -> None:
    told = final_message(
        fed(calls((0, '{"a"', "c1", "run")), chunk({"content": "so"}), calls((0, ":1}")), chunk({}, "stop"))
    )
    assert [block.type for block in told.content] == ["tool_use", "text"]
    assert told.content[0].input == {"a": 1}


def test_an_empty_answer_is_a_message_with_an_empty_text() -> None:
    for body in (fed(), fed(chunk({"content": ""}, "stop"))):
        told = final_message(body)
        assert [(block.type, block.text) for block in told.content] == [("text", "")]
        assert told.stop_reason == "end_turn"


def test_a_refusal() -> None:
    told = final_message(fed(chunk({"refusal": "No"}), chunk({"refusal": "."}), chunk({}, "stop")))
    assert (told.stop_reason, told.content[0].text) == ("refusal", "No.")


def test_the_stop_sequence_that_was_met() -> None:
    told = final_message(fed(chunk({"content": "x"}), chunk({}, "stop", stop_reason="END"), stops=("END",)))
    assert (told.stop_reason, told.stop_sequence) == ("stop_sequence", "END")


def test_a_call_that_the_budget_cut_off_ends_with_max_tokens() -> None:
    body = fed(calls((0, '{"a":', "c1", "run")), chunk({}, "length"))
    assert events(body)[-2].delta.stop_reason == "max_tokens"


def test_other_choices_are_none_of_this_message() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}]}
    told = final_message(fed(chunk({"content": "yes"}), other, chunk({}, "stop")))
    assert (told.content[0].text, told.stop_reason) == ("yes", "end_turn")


@pytest.mark.parametrize("name", PAIRS)
def test_streamed_it_is_the_message_that_the_whole_answer_becomes(name: str) -> None:
    folder = FOLDER / "llama.cpp" / "pairs"
    streamed = written((folder / f"{name}.sse").read_bytes())
    whole = message(answer((folder / f"{name}.json").read_bytes(), Asked(), STAMP))
    if whole.stop_reason == "max_tokens" and b'"tool_use"' in streamed:
        assert [event.type for event in events(streamed)][-2:] == ["message_delta", "message_stop"]
        return  # the whole answer leaves out what was cut; the SDK reads what there is of it
    told = final_message(streamed)
    assert len(told.content) == len(whole.content)
    for one, other in zip(told.content, whole.content, strict=True):
        left, right = one.model_dump(), other.model_dump()
        for ours in (left, right):
            ours.pop("id", None)
            ours.pop("parsed_output", None)
        assert {key: left.get(key) for key in right} == right
    assert told.stop_reason == whole.stop_reason
    assert told.usage.output_tokens == whole.usage.output_tokens


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        ("llama.cpp", "chat_stream_usage"),
        ("llama.cpp", "reasoning_content_stream"),
        ("vllm", "chat_stream_usage"),
        ("vllm", "chat_tools_named_stream"),
        ("vllm", "chat_reasoning_parser_stream"),
    ],
)
def test_cut_at_every_byte_it_is_the_same(engine: str, name: str) -> None:
    body = recording(engine, name).body
    whole = written(body)
    assert events(whole)[-1].type == "message_stop"
    assert all(written(body, cut) == whole for cut in range(len(body)))


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b'"x"',
        b'{"choices":5}',
        b'{"choices":[{"delta":"x"}]}',
        b'{"choices":[{"delta":{"content":{}}}]}',
        b'{"choices":[{"delta":{"tool_calls":[5]}}]}',
        b'{"choices":[{"delta":{"tool_calls":[{"index":"0"}]}}]}',
        b'{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"x","arguments":[1]}}]}}]}',
        b'{"error":{"message":"m"}}',
        b'{"choices":[{"delta":{"content":"\xff"}}]}',
    ],
)
def test_what_is_no_chunk(data: bytes) -> None:
    with pytest.raises(StreamBroken):
        MessageWriter(Asked(), STAMP).feed(data)


def test_a_call_that_never_has_a_name() -> None:
    writer = MessageWriter(Asked(), STAMP)
    writer.feed(json.dumps(chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]})).encode())
    with pytest.raises(StreamBroken):
        writer.end()


def test_arguments_after_their_end() -> None:
    writer = MessageWriter(Asked(), STAMP)
    for one in (calls((0, "{}", "c1", "run")), calls((1, "", "c2", "now"))):
        writer.feed(json.dumps(one).encode())
    assert writer.feed(json.dumps(calls((0, " "))).encode()) == b""
    with pytest.raises(StreamBroken):
        writer.feed(json.dumps(calls((0, "{}"))).encode())


def test_calls_without_end() -> None:
    endless = [calls((number, "{}", f"c{number}", "run")) for number in range(2000)]
    with pytest.raises(StreamBroken):
        fed(*endless)


PIECES = st.lists(
    st.one_of(
        st.tuples(st.just("text"), st.text(max_size=4)),
        st.tuples(st.just("thinking"), st.text(max_size=4)),
        st.tuples(st.integers(0, 3), st.sampled_from(["", "{", '"a":', "1}", " "])),
    ),
    max_size=12,
)


@given(PIECES)
def test_blocks_never_overlap_and_lose_nothing(pieces: list[tuple[Any, str]]) -> None:
    chunks, sent = [], {"text": "", "thinking": ""}
    inputs: dict[int, str] = {}
    for kind, piece in pieces:
        if isinstance(kind, int):
            head = (f"c{kind}", "run") if kind not in inputs else ()
            inputs[kind] = inputs.get(kind, "") + piece
            chunks.append(calls((kind, piece, *head)))
        else:
            sent[kind] += piece
            chunks.append(chunk({"content" if kind == "text" else "reasoning_content": piece}))
    try:
        body = fed(*chunks, chunk({}, "stop"))
    except StreamBroken:  # arguments that went on after their end
        assert any(piece in ("{", '"a":', "1}") for piece in (piece for _, piece in pieces))
        return
    got: dict[Any, str] = {"text": "", "thinking": ""}
    current: Any = None
    for event in events(body):
        if event.type == "content_block_start":
            assert current is None
            current = event.content_block.id if event.content_block.type == "tool_use" else event.content_block.type
            got.setdefault(current, "")
        elif event.type == "content_block_delta":
            got[current] += next(iter(event.delta.model_dump(exclude={"type"}).values()))
        elif event.type == "content_block_stop":
            current = None
    whitespace_may_go = {f"c{kind}": told.strip() for kind, told in inputs.items()}
    assert {key: value.strip() if key in whitespace_may_go else value for key, value in got.items()} == {
        **sent,
        **whitespace_may_go,
    }
