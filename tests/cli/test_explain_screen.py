from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from gateway.telemetry.explanation import explain_text
from gateway.telemetry.figures import count, ratio, seconds
from tests.cli import records

LONG = tuple(f"department-{name}-of-the-second-floor" for name in records.EIGHT)
KINDS: dict[str, dict[str, Any]] = {
    "eight": records.eight(),
    "eight long names": records.eight(LONG),
    "fallback": records.fallback(),
    "attempts": records.attempts(),
    "refused": records.refused(),
    "shed": records.shed(),
    "waiting": records.waiting(),
}


def shown(record: dict[str, Any], width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False, force_terminal=False)
    console.print(explain_text(record))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_cut_off_or_too_wide(kind: str, width: int) -> None:
    lines = shown(KINDS[kind], width)
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if line.endswith("…")]


def test_one_decision_in_80_columns() -> None:
    lines = shown(records.eight(), 80)
    assert lines == EIGHT_IN_80


EIGHT_IN_80 = """\
r-1  2023-11-14 22:13:20 UTC ───────────────────────────────────────────────────
asked for  code, streamed, needs tools
from       client agents, class interactive, internal data
prompt     about 9,000 tokens (95 % sure: under 9,400), estimated from its bytes
cached     rig 86% of the prompt, as far as is known

✓ admitted to spark-a as org/code

  ▶  spark-a  850 ms  chosen
  ✓  spark-b  1.48 s  open, 630 ms more
  ✓  rig-1    2.68 s  open, 1.83 s more
  ✓  rig-3    9.27 s  open, 8.42 s more
  ✓  p40      33.1 s  open, 32.2 s more
  ✓  mac      62.7 s  open, 61.9 s more
  …  rig-2    4.95 s  runs as many requests as it may (at most 4, this would
                      make 5)
  …  pro6000  17.5 s  has too little free KV cache now (needs 9,920 tokens,
                      1,200 free)

                  spark-a spark-b  rig-1  rig-3    p40    mac  rig-2 pro6000
  completion time  700 ms  1.33 s 2.53 s 9.12 s 32.9 s 62.6 s 4.80 s  17.3 s
  move penalty     150 ms  150 ms 150 ms 150 ms 150 ms 150 ms 150 ms  150 ms
  total            850 ms  1.48 s 2.68 s 9.27 s 33.1 s 62.7 s 4.95 s  17.5 s
  prompt tokens     9,000   9,000  9,000  9,000  9,000  9,000  9,000   9,000
  of them cached    8,000   8,000  8,000  8,000  8,000  8,000  8,000   8,000
  KV tokens         9,920   9,920  9,920  9,920  9,920  9,920  9,920   9,920
  no harm to others

✓ completed, HTTP 200, 7.50 s from arrival to end

                  predicted  measured
  queue                   –    0.4 ms
  first token        750 ms    810 ms  ×1.08
  per token           20 ms     21 ms  ×1.05
  whole request      6.75 s    7.50 s  ×1.11
  prompt tokens       9,000         –
  of them cached      8,000         –
  output tokens         300       310  ×1.03""".splitlines()


def test_long_names_are_folded_at_hyphens_and_tables_follow_each_other() -> None:
    lines = shown(records.eight(LONG), 80)
    assert sum("completion time" in line for line in lines) == 2
    assert any(line.split() == ["department-"] * 4 for line in lines)
    assert sum("completion time" in line for line in shown(records.eight(LONG), 140)) == 1


def test_a_fallback_is_named_and_both_models_are_listed() -> None:
    text = "\n".join(shown(records.fallback(), 80))
    assert "✓ admitted to rig with small-code, fallback 1 of code\n" in text
    rows = [line.split()[:3] for line in text.splitlines()]
    assert rows.index(["code", "asked", "for"]) < rows.index(["small-code", "fallback", "1"])
    assert rows.index(["small-code", "fallback", "1"]) + 1 == rows.index(["▶", "rig", "850"])
    assert "failed repeatedly and rests before its next trial (in 3.20 s)" in " ".join(text.split())
    assert text.endswith("… not finished yet")


def test_every_attempt_of_a_request() -> None:
    text = "\n".join(shown(records.attempts(), 80))
    assert "1/2 ✓ admitted to spark" in text
    assert "spark failed before its first token; tried elsewhere" in text
    assert "2/2 ✓ admitted to rig as org/code after 2.50 s\n" in text
    assert "has already failed this request" in text
    assert "✗ failed, HTTP 502, broken, 4.00 s from arrival to end" in text


def test_a_refusal_has_its_limits_in_words() -> None:
    text = " ".join(" ".join(shown(records.refused(limit=8192), 80)).split())
    assert (
        "✗ refused: the prompt is longer than any backend that may serve it can hold; at most 8,192 tokens fit" in text
    )
    assert "(needs 9,712 tokens, window 8,192)" in text
    assert "(data confidential, cleared for public)" in text
    assert "✗ refused, HTTP 400, context_length_exceeded, 0.6 ms from arrival to end" in text
    assert "predicted" not in text


def test_whoever_waited_for_nothing_was_shed() -> None:
    text = " ".join(" ".join(shown(records.shed(), 80)).split())
    assert (
        "✗ shed after 60.0 s in the queue: no place freed up within the queue's wait limit; try again in 7.00 s" in text
    )
    assert "… rig 9.15 s has more seconds of prefill queued than allowed (12.3 s queued, 4.00 s allowed)" in text


def test_whoever_waits_for_something_better() -> None:
    text = " ".join(" ".join(shown(records.waiting(), 80)).split())
    assert "… waits, 1.50 s so far: a better backend frees up sooner than the open one would finish" in text
    assert "✓ p40 9.15 s open" in text


def test_a_record_of_another_version_is_shown_as_far_as_it_goes() -> None:
    later = {
        "id": "r-9",
        "request": {"model": "code"},
        "decisions": [
            {"verdict": "admit", "backend": "rig", "candidates": [{"backend": "rig", "reason": "too_quantum"}]},
        ],
    }
    text = "\n".join(shown(later, 80))
    assert "✗  rig    too quantum" in text
    assert "✓ admitted to rig" in text
    assert shown({"id": "r-9"}, 80)[0].startswith("r-9 ")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, ""),
        (0, "0"),
        (0.00002, "<0.1 ms"),
        (0.00123, "1.2 ms"),
        (0.0266, "27 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"),
        (9.994, "9.99 s"),
        (9.996, "10.0 s"),
        (99.96, "100 s"),
        (12345.6, "12,346 s"),
    ],
)
def test_seconds_have_three_figures(value: object, text: str) -> None:
    assert seconds(value) == text


def test_counts_and_ratios() -> None:
    assert (count(12345), count(None), count(True)) == ("12,345", "", "")
    assert (ratio(3, 2), ratio(50, 2), ratio(None, 2), ratio(1, 0), ratio(0, 1)) == ("×1.50", "×25", "", "", "")
