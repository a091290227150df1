"""`kvgate simulate`: the same command gives the same bytes; what differs between files is seen; errors say where."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.main import main

TRACE = Path(__file__).parents[1] / "recordings" / "traces" / "mooncake-conversation.csv"
BACKEND = "  - {{name: {name}, url: 'http://{name}.test', engine: {engine}, device: {device}, models: [{model}]}}\n"
MODEL = "{id: Qwen3-30B-A3B, weights: q4_k_m, context: 24576}"


def config(tmp_path: Path, name: str, *devices: str, engine: str = "vllm", more: str = "") -> str:
    text = "backends:\n" + "".join(
        BACKEND.format(name=f"b{number}", engine=engine, device=device, model=MODEL)
        for number, device in enumerate(devices)
    )
    path = tmp_path / f"{name}.yaml"
    path.write_text(text + more)
    return str(path)


def words(*more: str, trace: Path = TRACE, requests: int = 40) -> list[str]:
    return ["simulate", "--trace", str(trace), "--requests", str(requests), "--rate", "1/s", *more]


def played(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, object]:
    assert main(words(*more, "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_the_same_command_gives_the_same_bytes_whatever_the_hashes(tmp_path: Path) -> None:
    command = words("--config", config(tmp_path, "fleet", "rtx-3090", "dgx-spark"), "--baseline", "all", "--json")
    outputs = {
        subprocess.run(
            [sys.executable, "-m", "gateway.cli", *command],
            capture_output=True, check=True, timeout=50, env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1
    assert b'"goodput"' in outputs.pop()


def test_another_seed_is_another_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = config(tmp_path, "fleet", "rtx-3090", "dgx-spark")
    found = played(capsys, "--config", file, "--seeds", "2")
    one, two = found["runs"]
    assert (one["seed"], two["seed"]) == (1, 2)
    assert one["ttft_s"] != two["ttft_s"]


def test_a_device_more_is_seen_against_the_same_traffic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = config(tmp_path, "small", "dgx-spark")
    large = config(tmp_path, "large", "dgx-spark", "rtx-3090", "rtx-3090")
    found = played(capsys, "--config", small, "--against", large)
    before, after = found["runs"]
    assert before["requests"] == after["requests"]
    assert before["makespan_s"] > after["makespan_s"]
    (gap,) = (each for each in found["differences"] if each["figure"] == "good answers")
    assert gap["mean"] == pytest.approx(after["goodput"] - before["goodput"])
    assert gap["mean"] > 0.2


def test_a_fleet_slower_than_its_catalogue_is_slower(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = config(tmp_path, "fleet", "rtx-3090")
    as_told = played(capsys, "--config", file, "--noise", "0%")["runs"][0]
    slow = played(capsys, "--config", file, "--noise", "0%", "--factor", "b0=3")["runs"][0]
    assert slow["tpot_s"][0] > 2.0 * as_told["tpot_s"][0]
    assert slow["ttft"]["bias"] > as_told["ttft"]["bias"]


def test_a_fault_is_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = config(tmp_path, "fleet", "rtx-3090", "rtx-3090")
    well = played(capsys, "--config", file)["runs"][0]
    sick = played(capsys, "--config", file, "--fault", "b0=dead@10s")["runs"][0]
    assert sick["backends"]["b0"]["requests"] < well["backends"]["b0"]["requests"] / 2


def test_llama_cpp_keeps_sequences_in_slots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = config(tmp_path, "fleet", "rtx-3090", "rtx-3090", engine="llama.cpp")
    run = played(capsys, "--config", file)["runs"][0]
    assert run["answered"] > 0.3


def test_a_journal_is_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "decisions.jsonl"
    journal.write_text(
        "".join(
            json.dumps(
                {
                    "id": f"r{number}",
                    "at": 1e9 + 2.0 * number,
                    "request": {"model": "chat", "client": "agents", "class": "default", "session": f"s{number % 3}"},
                    "decisions": [],
                    "settled": {"prompt_tokens": 2000 + 300 * number, "completion_tokens": 50, "cached_tokens": 0},
                }
            )
            + "\n"
            for number in range(30)
        )
    )
    named = "models:\n  - {name: other, serves: Qwen3-30B-A3B}\n  - {name: chat, serves: Qwen3-30B-A3B}\n"
    file = config(tmp_path, "fleet", "rtx-3090", "rtx-3090", more=named)
    assert main(["simulate", "--trace", str(journal), "--config", file, "--json"]) == 0
    run = json.loads(capsys.readouterr().out)["runs"][0]
    assert run["answered"] == 1.0
    assert run["cached"] > 0.5, "turns of a session share what was said before"
    assert run["prefilled"] < 1.3


def test_tables_fit_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    file = config(tmp_path, "fleet", "rtx-3090", "dgx-spark")
    assert main(words("--config", file, "--baseline", "round-robin,least-requests")) == 0
    out = capsys.readouterr().out
    for word in ("Answers", "Backends", "Calibration", "Less fleet", "round-robin", "least-requests", "b0", "TTFT"):
        assert word in out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_pictures_are_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    file = config(tmp_path, "fleet", "rtx-3090")
    for name in ("a.svg", "b.svg", "page.html", "shot.png"):
        assert main(words("--config", file, "--plot", str(tmp_path / name), requests=12)) == 0
    capsys.readouterr()
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "time to first token" in (tmp_path / "page.html").read_text()
    assert (tmp_path / "shot.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("more", "status", "what"),
    [
        (["--model", "nobody"], 1, "nobody serves nobody; the file has Qwen3-30B-A3B"),
        (["--fault", "b9=hang@1s"], 1, "there is no backend b9; the file has b0"),
        (["--factor", "b9=2"], 1, "there is no backend b9"),
        (["--longest", "3"], 1, "is as short as 3 tokens"),
        (["--fault", "b0=sleepy@1s"], 2, "write it like spark=slow:3@2m"),
        (["--fault", "b0=slow:0.5@1s"], 2, "a factor over 1"),
        (["--baseline", "magic"], 2, "there is no baseline 'magic'"),
        (["--plot", "out.gif"], 2, "must end with .html, .svg or .png"),
        (["--seeds", "0"], 2, "is not a number of at least 1"),
    ],
)
def test_what_cannot_be_played_is_said(
    more: list[str], status: int, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = words("--config", config(tmp_path, "fleet", "rtx-3090"), *more)
    if status == 2:
        with pytest.raises(SystemExit):
            main(given)
    else:
        assert main(given) == status
    assert what in " ".join(capsys.readouterr().err.split())


def test_a_bad_line_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"timestamp": 0, "input_length": 5, "output_length": 1}\n{"timestamp": 0}\n')
    assert main(words("--config", config(tmp_path, "fleet", "rtx-3090"), trace=bad)) == 1
    assert f"{bad}:2: this line has no input_tokens" in capsys.readouterr().err


def test_a_backend_that_cannot_be_emulated_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nameless = tmp_path / "nameless.yaml"
    nameless.write_text("backends:\n  - {name: b0, url: 'http://b0.test', engine: vllm, device: rtx-3090}\n")
    assert main(words("--config", str(nameless))) == 1
    assert "backend b0 names no model" in capsys.readouterr().err


def test_what_is_recorded_can_be_decided_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, kept = config(tmp_path, "fleet", "rtx-3090", "dgx-spark"), tmp_path / "recording.jsonl"
    assert main(words("--config", file, "--record", str(kept), "--seeds", "2", requests=8)) == 0
    capsys.readouterr()
    assert main(["replay", str(kept), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["final"] >= 6
    assert told["decisions"] < 100
    assert told["diverging"] == 0
    assert main(words("--config", file, "--record", str(tmp_path / "no" / "where"), requests=8)) == 1
