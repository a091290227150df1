from __future__ import annotations

import argparse
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from gateway.cli import explain
from gateway.core.decision import Decision, Verdict
from gateway.core.failure import SENTENCES, FailureKind
from gateway.core.quota import Quota, Shortfall
from gateway.core.reasons import Reason
from gateway.core.request import Request
from gateway.telemetry.explanation import explain_text
from gateway.telemetry.record import Settled, entry_record
from tests.telemetry.conftest import make_admit

DONE = Settled(
    "completed",
    200,
    2.5,
    backend="rig",
    queue_s=0.01,
    ttft_s=0.81,
    tpot_s=0.025,
    prompt_tokens=9100,
    cached_tokens=7900,
)


def shown(record: dict[str, object], color: bool = False, width: int = 80) -> str:
    console = Console(
        file=io.StringIO(),
        width=width,
        highlight=False,
        force_terminal=color,
        color_system="standard" if color else None,
    )
    console.print(explain_text(record))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def lines_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_each_candidate_with_its_seconds_or_its_reason(request_: Request, admit: Decision) -> None:
    text = shown(entry_record(1.7e9, request_, [admit], DONE))
    assert "  ▶  rig    750 ms  chosen\n  ✓  spark  4.30 s  open, 3.55 s more\n" in text
    said = " ".join(text.split())
    assert "✗ p40 has a context window below this request (needs 9,712 tokens, window 8,192)" in said
    assert "✓ admitted to rig as org/code after 500 ms in the queue" in text


def test_the_terms_of_every_priced_backend(request_: Request, admit: Decision) -> None:
    rows = lines_of(shown(entry_record(1.7e9, request_, [admit], DONE)))
    assert ["rig", "spark"] in rows
    assert ["prefill", "700", "ms", "4.20", "s"] in rows
    assert ["harm", "50", "ms", "100", "ms"] in rows
    assert ["total", "750", "ms", "4.30", "s"] in rows
    assert ["of", "them", "cached", "8,000", "8,000"] in rows


def test_predicted_beside_measured(request_: Request, admit: Decision) -> None:
    rows = lines_of(shown(entry_record(1.7e9, request_, [admit], DONE)))
    assert ["first", "token", "750", "ms", "810", "ms", "×1.08"] in rows
    assert ["of", "them", "cached", "8,000", "7,900", "×0.99"] in rows
    assert ["whole", "request", "7.25", "s", "2.50", "s", "×0.34"] in rows
    assert ["queue", "–", "10", "ms"] in rows


def test_the_chosen_one_stands_out(request_: Request, admit: Decision) -> None:
    text = shown(entry_record(1.7e9, request_, [admit], None), color=True)
    line = next(line for line in text.splitlines() if "▶" in line)
    assert "\x1b[1;32mrig" in line
    assert "not finished yet" in text


def test_every_reason_has_its_sentence(request_: Request) -> None:
    for reason in Reason:
        decision = make_admit(verdict=Verdict.REJECT, reason=reason, backend=None, retry_after=7.0, limit=4096)
        text = " ".join(shown(entry_record(1.7e9, request_, [decision], None)).split())
        assert "try again in 7.00 s" in text
        assert "at most 4,096 tokens fit" in text
        assert str(reason) not in text or "_" not in str(reason)


def test_how_each_attempt_failed(request_: Request, admit: Decision) -> None:
    decisions = [admit, admit, make_admit(backend="spark")]
    failures = [FailureKind.LOADING, FailureKind.SERVER, FailureKind.FIRST_TOKEN]
    text = shown(entry_record(1e9, request_, decisions, None, failures), width=200)
    assert "rig was still loading its model; asked again" in text
    assert "rig answered with an error of its own; tried elsewhere" in text
    assert "spark gave no token within the limit\n" in text


def test_every_kind_of_failure_has_its_sentence() -> None:
    assert set(SENTENCES) == set(FailureKind)


def parse(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    explain.add_parser(parser.add_subparsers())
    return parser.parse_args(["explain", *argv])


def test_from_a_journal_file_and_its_older_ones(
    tmp_path: Path, request_: Request, admit: Decision, capsys: pytest.CaptureFixture[str]
) -> None:
    record = entry_record(1.7e9, request_, [admit], DONE)
    path = tmp_path / "j.jsonl"
    path.write_text('{"id": "r-9"}\nnot json r-1\n')
    path.with_name("j.jsonl.1").write_text(json.dumps(record) + "\n")
    args = parse("r-1", "--journal", str(path), "--json")
    assert args.run(args) == 0
    assert json.loads(capsys.readouterr().out) == record
    assert explain.run(parse("r-1", "--journal", str(path))) == 0
    assert "▶  rig" in capsys.readouterr().out
    assert explain.run(parse("r-2", "--journal", str(path))) == 1
    assert "r-2" in capsys.readouterr().err
    assert explain.run(parse("r-1", "--journal", str(tmp_path / "none"))) == 2


def test_nobody_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.run(parse("r-1", "--admin", "http://127.0.0.1:1")) == 2
    assert "no gateway answers" in capsys.readouterr().err
    assert explain.run(parse("r-1", "--admin", "file:///etc/passwd")) == 2


def test_a_limit_of_the_clients_own_is_named_with_what_is_left(request_: Request) -> None:
    short = Shortfall(Quota.TOKENS, 1200.0, 9000.0, 2_000_000.0, 3600.0, 14.0)
    decision = Decision(request_.id, Verdict.REJECT, Reason.OVER_QUOTA, request_.arrival, 0.5, None, quota=short)
    record = entry_record(1.7e9, request_, [decision], Settled("refused", 429, 0.0, code="over_quota"))
    assert record["decisions"][0]["quota"] == {
        "quota": "tokens", "left": 1200, "needed": 9000, "amount": 2_000_000, "per": 3600, "seconds": 14,
    }  # fmt: skip
    said = " ".join(shown(record).split())
    assert "a limit of this key is reached; tokens: 1,200 of 2,000,000 left" in said
