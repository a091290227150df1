"""Half an hour of a fleet with three faults, in virtual time, decided again from its recording, bit for bit."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.main import main
from gateway.config.compile import compile_policy
from gateway.config.endpoint import endpoints
from gateway.config.load import load
from gateway.core import choosing, weighing
from gateway.core.costs import harm_to_others
from gateway.core.reasons import Reason
from gateway.replay.reading import Recorded, files_of, looks
from gateway.replay.report import Report, replay
from gateway.sim.engine_model import EngineModel, Slowdown
from gateway.sim.events import Breakdown
from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.profile import engine_profile
from gateway.sim.virtual import simulate
from gateway.telemetry.recording import Recording
from gateway.telemetry.rotating_file import RotatingFile
from gateway.telemetry.turns import Look, TurnWriter
from tests.sim.gateway_traffic import anybody, config, stream

SPAN = 1800.0
DEVICES = {"spark": "dgx-spark", "left": "rtx-3090", "right": "rtx-3090"}
FILE = config(DEVICES, more="queue: {wait: 3s, length: 6}", timeouts="{first_token: 10s, token_gap: 10s}")
FAULTS = (
    Breakdown(300.0, "left", hang=True),
    Breakdown(420.0, "left"),
    Breakdown(700.0, "right", hang=True, crash=True),
    Breakdown(900.0, "right"),
    Breakdown(1200.0, "left", Slowdown(prefill=3.0, decode=3.0)),
    Breakdown(1500.0, "left"),
)


def engines() -> dict[str, EngineModel]:
    """Two requests at once each, so that a crowd has to wait."""
    profiles = {name: engine_profile(device) for name, device in DEVICES.items()}
    return {name: EngineModel(replace(profile, max_num_seqs=2)) for name, profile in profiles.items()}


@dataclass(frozen=True)
class HalfHour:
    """The recording, its first lines, its looks, and what the gateway did."""

    file: Path
    short: Path
    looks: list[Recorded | int]
    granted: list[tuple[str, str]]


@pytest.fixture(scope="module")
def half_hour(tmp_path_factory: pytest.TempPathFactory) -> HalfHour:
    file = tmp_path_factory.mktemp("replay") / "recording.jsonl"
    recording = Recording(RotatingFile(file, size=600_000, count=20), queued=1 << 30)
    policy = load(FILE).policy
    gateway = GatewayPolicy(
        compile_policy(policy), endpoints(policy), anybody, breakdowns=FAULTS, seed=1, recorder=recording
    )
    arrivals = stream(1, 0.45, SPAN, output=(50, 600))
    arrivals += stream(2, 4.0, 8.0)  # a crowd, so that some wait and some are turned away
    for number, one in enumerate(arrivals):
        object.__setattr__(one.request, "id", f"q{number}")
    simulate(sorted(arrivals, key=lambda one: one.at_s), engines(), gateway, breakdowns=FAULTS, horizon_s=0.5)
    recording.close(60.0)
    assert not recording.dropped
    short = file.with_name("short.jsonl")
    with files_of(file)[0].open("rb") as lines:
        short.write_bytes(b"".join(islice(lines, 120)))
    return HalfHour(
        file, short, list(looks(files_of(file))), [(lease.request.id, lease.backend) for lease in gateway.granted]
    )


def recorded(path: Path) -> list[Recorded]:
    return [look for look in looks([path]) if isinstance(look, Recorded)]


def again(half_hour: HalfHour) -> Report:
    return replay(half_hour.looks)


def test_every_decision_comes_out_the_same_bit_for_bit(half_hour: HalfHour) -> None:
    report = again(half_hour)
    assert report.diverging == 0, report.first
    assert report.unused == 0
    assert len(files_of(half_hour.file)) > 1
    assert report.seconds > 0.97 * SPAN
    assert report.final >= len(half_hour.granted) > 700


def test_it_holds_what_three_faults_and_a_crowd_lead_to(half_hour: HalfHour) -> None:
    found = [look for look in half_hour.looks if isinstance(look, Recorded)]
    outcomes = Counter((row["verdict"], row["reason"]) for look in found for row in look.decisions)
    assert {("admit", "admitted"), ("wait", "queued"), ("shed", "queue_timeout")} <= outcomes.keys()
    fell_out = {candidate[3] for look in found for row in look.decisions for candidate in row.get("candidates", ())}
    assert {Reason.BREAKER_OPEN, Reason.DOWN, Reason.ALREADY_TRIED, Reason.SLOTS_FULL} <= fell_out
    assert any(request.attempt for look in found for request in look.requests)
    admitted = [
        (row["request"], row["backend"]) for look in found for row in look.decisions if row["verdict"] == "admit"
    ]
    assert admitted == half_hour.granted


@pytest.mark.parametrize(
    ("module", "name", "value", "field"),
    [
        (weighing, "_CHUNK", 2048.001, "predicted_prefill"),
        (choosing, "_COLD_SHARE", 0.5, "backend"),
        (harm_to_others.HarmToOthers, "seconds", lambda self, weighing: 0.0, "candidates.terms.harm_to_others"),
    ],
    ids=["a millionth", "who is equal", "a term"],
)
def test_a_changed_constant_is_found(
    half_hour: HalfHour, monkeypatch: pytest.MonkeyPatch, module: object, name: str, value: object, field: str
) -> None:
    monkeypatch.setattr(module, name, value)
    if name == "seconds":
        from gateway.core.costs import costs_of

        costs_of.cache_clear()
        monkeypatch.setattr("gateway.core.decide.costs_of", costs_of.__wrapped__)
    report = again(half_hour)
    assert report.diverging
    assert report.fields[field]
    assert report.first[0].fields


def test_what_rests_on_a_lost_line_is_told_and_not_used(half_hour: HalfHour, tmp_path: Path) -> None:
    lines = half_hour.short.read_bytes().splitlines(keepends=True)
    file = tmp_path / "recording.jsonl"
    file.write_bytes(b"".join([*lines[:40], *lines[41:], lines[0], *lines[1:10], lines[10][:-20]]))
    report = replay(looks([file]))
    assert report.unused == len(lines) - 41 + 1
    assert report.looks == 40 + 10
    assert report.diverging == 0


def test_a_gap_in_what_the_writer_gets_begins_anew(half_hour: HalfHour) -> None:
    writer, found = TurnWriter(), recorded(half_hour.short)[:3]
    lines = [
        writer.line(Look(number, look.how, look.plan, look.snapshot, look.requests, []))
        for number, look in zip((0, 1, 3), found, strict=True)
    ]
    assert [b'"begins"' in line for line in lines] == [True, False, True]


def test_the_command_says_so_and_fails_when_something_differs(
    half_hour: HalfHour, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(half_hour.short)]) == 0
    assert "all the same, bit for bit" in " ".join(capsys.readouterr().out.split())
    monkeypatch.setattr(weighing, "_RHO_CAP", 0.1)
    assert main(["replay", str(half_hour.short), "--json", "--first", "1"]) == 1
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["diverging"] > 0
    (first,) = told["first"]
    assert {"field", "recorded", "replayed"} == first["fields"][0].keys()
    assert main(["replay", str(half_hour.short)]) == 1
    assert "come out differently" in " ".join(capsys.readouterr().out.split())


def test_another_file_chooses_otherwise_and_says_where_to(
    half_hour: HalfHour, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(FILE + "routing: {harm: 5}\n")
    assert main(["replay", str(half_hour.short), "--config", str(other), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["decided_differently"] > 0
    moves = [(each["recorded"], each["replayed"]) for each in told["moves"]]
    assert any(one in DEVICES and now != one for one, now in moves)
    same = tmp_path / "same.yaml"
    same.write_text(FILE)
    assert main(["replay", str(half_hour.short), "--config", str(same), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["decided_differently"] == 0
    less = tmp_path / "less.yaml"
    less.write_text(config({name: device for name, device in DEVICES.items() if name != "left"}))
    assert main(["replay", str(half_hour.short), "--config", str(less)]) == 0
    assert "only one of the two has them: left" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("content", [b"{}\n", b"not json\n", b'{"timestamp": 1}\n', b""])
def test_what_is_no_recording_is_said_so(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file.jsonl"
    file.write_bytes(content)
    assert main(["replay", str(file)]) == 1
    assert str(file) in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "nothing")]) == 1
    shutil.rmtree(tmp_path)
