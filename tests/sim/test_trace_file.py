"""Traces are read as they are published, and what can't be read is named by file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.errors import ConfigError
from gateway.sim.trace_file import TraceRow, read_trace
from gateway.sim.trace_traffic import played, segment


def written(tmp_path: Path, name: str, *lines: str) -> Path:
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return path


def lengths(rows: list[TraceRow]) -> list[tuple[float, int, int]]:
    return [(row.at_s, row.prompt, row.output) for row in rows]


def test_mooncake_as_published(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "trace.jsonl",
        '{"timestamp": 3000, "input_length": 1030, "output_length": 5, "hash_ids": [1, 2, 4]}',
        '{"timestamp": 1000, "input_length": 1024, "output_length": 7, "hash_ids": [1, 2]}',
    )
    rows = read_trace(path)
    assert lengths(rows) == [(0.0, 1024, 7), (2.0, 1030, 5)]
    assert [row.blocks for row in rows] == [(1, 2), (1, 2, 4)]


def test_azure_as_published(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "azure.csv",
        "TIMESTAMP,ContextTokens,GeneratedTokens",
        "2023-11-16 18:15:46.6805900,374,44",
        "2023-11-16 18:15:50.9951690,396,109",
    )
    assert lengths(read_trace(path)) == [(0.0, 374, 44), (pytest.approx(4.314579), 396, 109)]


def test_burstgpt_without_its_failed_requests(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "burst.csv",
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type",
        "5,ChatGPT,472,18,490,Conversation log",
        "45,ChatGPT,1087,0,1087,Conversation log",
        "118,GPT-4,417,276,693,Conversation log",
    )
    assert lengths(read_trace(path)) == [(0.0, 472, 18), (113.0, 417, 276)]


def entry(at: float, prompt: int, **more: object) -> str:
    settled = {"outcome": "ok", "prompt_tokens": prompt, "completion_tokens": 10, "cached_tokens": 900}
    request = {"model": "chat", "client": "agents", "class": "interactive", **more}
    return json.dumps({"id": "x", "at": at, "request": request, "decisions": [], "settled": settled})


def test_the_journal_shares_what_was_said_in_a_session(tmp_path: Path) -> None:
    refused = json.dumps({"id": "y", "at": 2.0, "request": {"model": "chat"}, "settled": {"outcome": "refused"}})
    path = written(tmp_path, "j.jsonl", entry(1.0, 1000, session="s"), refused, entry(3.0, 1500, session="s"))
    first, second = read_trace(path)
    assert (first.model, first.client, first.klass) == ("chat", "agents", "interactive")
    arrivals = played([first, second], 1.0, 2.0, longest=4096)
    one, two = (each.request.text for each in arrivals)
    assert one.key(0, 992, 0) == two.key(0, 992, 0)
    assert one.key(0, 1008, 0) != two.key(0, 1008, 0), "the first prompt ends there"
    assert arrivals[0].session == "s"


def test_without_sessions_the_journal_shares_what_was_cached(tmp_path: Path) -> None:
    path = written(tmp_path, "j.jsonl", entry(1.0, 1000), entry(3.0, 1500), entry(4.0, 1000, client="others"))
    texts = [each.request.text for each in played(read_trace(path), 1.0, 3.0, longest=4096)]
    assert texts[0].key(0, 896, 0) == texts[1].key(0, 896, 0) != texts[2].key(0, 896, 0)
    assert texts[0].key(896, 912, 0) != texts[1].key(896, 912, 0)


@pytest.mark.parametrize(
    ("name", "lines", "what"),
    [
        ("a.jsonl", ['{"timestamp_ms": 0, "input_tokens": 5, "output_tokens": 1}', "{"], "a.jsonl:2: this line is not"),
        ("a.jsonl", ["[1, 2]"], "a.jsonl:1: this line is a list, not an object"),
        ("a.jsonl", ['{"timestamp_ms": 0, "output_tokens": 1}'], "a.jsonl:1: this line has no input_tokens"),
        ("a.jsonl", ['{"timestamp_ms": 0, "input_tokens": 1.5, "output_tokens": 1}'], "1.5 is not a number of tokens"),
        ("a.csv", ["timestamp_ms,input_tokens,output_tokens", "0,5,1", "soon,5,1"], "a.csv:3: this line can't be read"),
        ("a.csv", ["x,y", "1,2"], "a.csv:2: this line has no"),
        ("a.jsonl", ['{"timestamp_ms": 0, "input_tokens": 5, "output_tokens": 0}'], "holds no answered request"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, name: str, lines: list[str], what: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_trace(written(tmp_path, name, *lines))
    assert what in refused.value.message


def test_segments_follow_each_other_and_begin_anew_at_the_end() -> None:
    rows = [TraceRow(float(at), 10 + at, 1, line=at) for at in range(4)]
    assert [row.line for row in segment(rows, 2, 3)] == [2, 3, 0]
    assert [row.at_s for row in segment(rows, 2, 3)] == [0.0, 1.0, 4.0]
