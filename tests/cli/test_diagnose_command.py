"""`kvgate diagnose` against an admin port."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.cli.main import main
from tests.cli.test_top_command import FakeServer, server
from tests.cli.top_documents import backend, documents

__all__ = ["server"]

SLOW = {
    "name": "bandwidth",
    "sentence": "its memory is slow: another program on it, or weights or cache outside of it",
    "since_seconds": 340.0,
    "evidence": ["decoding is slow, prompts are not", "tokens take 2.4 times as long as usual"],
    "runner_up": "unknown",
    "advice": "Look for other programs on the device.",
}


def asked(server: FakeServer, *words: str, rows: list[dict[str, Any]]) -> int:
    server.documents = documents(*rows)
    return main(["diagnose", *words, "--admin", server.url])


def test_a_sick_backend_is_told_of_in_sentences(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(server, "mac", rows=[backend("rig"), backend("mac", cause=SLOW, decode_factor=2.5)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "✗ mac" in said
    assert "rig" not in said
    assert "Its memory is slow: another program on it, or weights or cache outside of it, for 6 min" in said
    assert "· tokens take 2.4 times as long as usual" in said
    assert "If not that, then most likely: unknown." in said
    assert "→ Look for other programs on the device." in said
    assert "decode takes 2.50 times what the catalogue says" in said


def test_without_a_name_all_are_and_nothing_wrong_is_no_failure(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    full = SLOW | {"name": "queueing", "sentence": "it is full, which is no fault"}
    assert asked(server, rows=[backend("rig", cause=None), backend("mac", cause=full)]) == 0
    said = capsys.readouterr().out
    assert "✓ rig" in said
    assert "✓ mac" in said
    assert "It is full, which is no fault" in said


def test_findings_for_a_program(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(server, "--json", rows=[backend("mac", cause=SLOW)]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["name"], found["cause"]) == ("mac", SLOW)


@pytest.mark.parametrize(("name", "hint"), [("maC", "did you mean mac?"), ("zzz", "known here: mac")])
def test_a_name_that_is_none(server: FakeServer, capsys: pytest.CaptureFixture[str], name: str, hint: str) -> None:
    assert asked(server, name, rows=[backend("mac")]) == 1
    assert capsys.readouterr().err == f"kvgate diagnose: there is no backend {name}; {hint}\n"


def test_nobody_to_ask(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "--admin", "http://127.0.0.1:9"]) == 2
    assert "no gateway answers at http://127.0.0.1:9" in capsys.readouterr().err


def test_a_name_can_not_command_the_terminal(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    asked(server, rows=[backend("\x1b[2Jmac[red]", cause=SLOW)])
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "[red]" in said
