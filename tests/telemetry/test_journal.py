from __future__ import annotations

import json
from pathlib import Path
from threading import Event

import pytest

from gateway.core.decision import Candidate, Decision, Trace, Verdict
from gateway.core.failure import FailureKind
from gateway.core.reasons import Reason
from gateway.core.request import Estimate, Request
from gateway.telemetry.journal import Journal
from gateway.telemetry.record import Settled, decision_record
from gateway.telemetry.rotating_file import RotatingFile
from tests.telemetry.conftest import make_admit, make_request

DONE = Settled(
    "completed", 200, 2.5, backend="rig", ttft_s=0.8, prompt_tokens=9100, completion_tokens=120, cached_tokens=7900
)
# What a prompt looks like, put wherever a caller could put one.
MARKER = "the MARKER of a private prompt"


def test_decisions_of_one_request_join_and_are_settled_once(request_: Request, admit: Decision) -> None:
    journal = Journal()
    wait = make_admit(verdict=Verdict.WAIT, reason=Reason.QUEUED, backend=None, now=100.1)
    journal.decided(request_, wait)
    journal.decided(request_, admit)
    journal.settled("r-1", DONE)
    journal.settled("r-1", Settled("failed", 502, 9.0))
    record = journal.record("r-1")
    assert record is not None
    assert [decision["verdict"] for decision in record["decisions"]] == ["wait", "admit"]
    assert record["settled"]["outcome"] == "completed"
    assert record["settled"]["cached_tokens"] == 7900
    assert journal.record("r-2") is None


def test_each_failed_attempt_keeps_what_went_wrong(request_: Request, admit: Decision) -> None:
    journal = Journal()
    journal.decided(request_, admit)
    journal.failed("r-1", "rig", FailureKind.SERVER)
    journal.decided(request_, make_admit(backend="spark"))
    journal.failed("r-1", "rig", FailureKind.BROKEN)  # told late
    journal.failed("r-1", "spark", FailureKind.FIRST_TOKEN)
    journal.failed("r-2", "spark", FailureKind.FIRST_TOKEN)
    record = journal.record("r-1")
    assert record is not None
    assert [decision["failed"] for decision in record["decisions"]] == ["broken", "first_token"]
    for now in range(20):
        journal.decided(request_, make_admit(now=200.0 + now))
    record = journal.record("r-1")
    assert record is not None
    assert [decision.get("failed") for decision in record["decisions"]] == ["broken"] + [None] * 7


def test_memory_is_a_ring_and_long_waits_keep_first_and_last(admit: Decision) -> None:
    journal = Journal(capacity=3)
    for number in range(5):
        journal.decided(make_request(id=f"r-{number}"), admit)
    assert len(journal) == 3
    assert journal.record("r-1") is None
    assert journal.record("r-4") is not None
    waiting = make_request(id="long")
    for now in range(100):
        journal.decided(waiting, make_admit(verdict=Verdict.WAIT, now=float(now)))
    record = journal.record("long")
    assert record is not None
    times = [decision["now"] for decision in record["decisions"]]
    assert len(times) == 8
    assert times[0] == 0.0
    assert times[-3:] == [97.0, 98.0, 99.0]


def test_a_decision_can_be_made_again_from_its_record(request_: Request, admit: Decision) -> None:
    record = decision_record(admit, request_)
    decision, request = record["decisions"][0], record["request"]
    assert (decision["now"], decision["roll"]) == (100.5, 0.25)
    assert request["estimates"]["code"] == {
        "prompt": 9000,
        "prompt_high": 9400,
        "output": 300,
        "output_high": 512,
        "tier": "A",
        "prompt_floor": None,
        "output_roomy": None,
        "output_tight": None,
        "prompt_ceiling": None,
    }
    assert request["hits"]["rig"] == {"share": 0.9, "trust": 0.95, "pinned": False}
    rig = decision["candidates"][1]
    assert rig["terms"] == [["prefill", 0.7], ["harm", 0.05]]
    assert rig["footprint"]["kv"] == 9920
    assert decision["candidates"][2]["reason"] == "window_too_small"
    assert json.loads(json.dumps(record)) == record


def test_no_text_of_the_callers_gets_into_a_record() -> None:
    request = make_request(
        model=MARKER,
        client=MARKER,
        klass=MARKER,
        session=MARKER,
        needs=frozenset((MARKER, "tools")),
        estimates={MARKER: Estimate(1, 1, 1, 1)},
    )
    decision = make_admit(
        model=MARKER, served_as=MARKER, trace=Trace((Candidate("rig", MARKER, reason=Reason.NOT_SERVED),))
    )
    text = json.dumps(decision_record(decision, request))
    assert "MARKER" not in text
    assert "private" not in text
    assert '"tools"' in text


def test_one_line_a_request_in_the_file(tmp_path: Path, admit: Decision) -> None:
    path = tmp_path / "journal" / "decisions.jsonl"
    journal = Journal(sink=RotatingFile(path))
    for number in range(20):
        journal.decided(make_request(id=f"r-{number}"), admit)
        journal.settled(f"r-{number}", DONE)
    journal.close()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["id"] for record in records] == [f"r-{number}" for number in range(20)]
    assert path.stat().st_mode & 0o077 == 0
    assert journal.dropped == 0


def test_files_rotate_by_size_and_count(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    file = RotatingFile(path, size=100, count=2)
    for number in range(12):
        file.write(f"{number:039}\n".encode())
    file.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["j.jsonl", "j.jsonl.1", "j.jsonl.2"]
    assert all(p.stat().st_size <= 100 for p in tmp_path.iterdir())
    assert path.read_text().endswith(f"{11:039}\n")
    again = RotatingFile(path, size=100, count=2)
    again.write(b"x" * 39 + b"\n")
    again.close()
    assert (tmp_path / "j.jsonl.1").read_text().endswith(f"{11:039}\n")


class StuckDisk:
    def __init__(self) -> None:
        self.entered, self.release = Event(), Event()

    def write(self, data: bytes) -> None:
        self.entered.set()
        assert self.release.wait(10)

    def close(self) -> None:
        pass


class FullDisk:
    def write(self, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    def close(self) -> None:
        pass


def test_a_stuck_disk_drops_lines_and_stops_nobody(admit: Decision) -> None:
    disk = StuckDisk()
    journal = Journal(sink=disk, queued=10)
    journal.decided(make_request(id="first"), admit)
    journal.settled("first", DONE)
    assert disk.entered.wait(5)
    for number in range(30):
        journal.decided(make_request(id=f"r-{number}"), admit)
        journal.settled(f"r-{number}", DONE)
    assert journal.dropped == 20
    disk.release.set()
    journal.close()


def test_a_full_disk_is_counted(admit: Decision) -> None:
    journal = Journal(sink=FullDisk())
    journal.decided(make_request(), admit)
    journal.settled("r-1", DONE)
    journal.close()
    assert journal.dropped == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_loses_lines_and_ends_quietly(request_: Request, admit: Decision, tmp_path: Path) -> None:
    full = tmp_path / "journal.jsonl"
    full.symlink_to("/dev/full")
    journal = Journal(sink=RotatingFile(full))
    journal.decided(request_, admit)
    journal.settled("r-1", DONE)
    journal.close()  # an exception in its thread would fail this test
    assert journal.dropped == 1
