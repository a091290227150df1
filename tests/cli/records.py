"""Records as the journal keeps them, one for each kind of verdict."""

from __future__ import annotations

from typing import Any

from gateway.core.decision import Candidate, Decision, Trace, Verdict
from gateway.core.reasons import Reason
from gateway.telemetry.record import Settled, entry_record
from tests.telemetry.conftest import FOOTPRINT, make_admit, make_request

AT = 1.7e9

EIGHT = ("spark-a", "spark-b", "rig-1", "rig-2", "rig-3", "pro6000", "p40", "mac")


def priced(name: str, seconds: float, **changes: Any) -> Candidate:
    terms = (("completion_time", seconds), ("harm_to_others", 0.0), ("move_penalty", 0.15))
    total = sum(value for _, value in terms)
    settings: dict[str, Any] = {
        "backend": name,
        "model": "code",
        "terms": terms,
        "total": total,
        "footprint": FOOTPRINT,
    }
    return Candidate(**(settings | changes))


def admit(*candidates: Candidate, **changes: Any) -> Decision:
    return make_admit(trace=Trace(candidates), **changes)


def eight(names: tuple[str, ...] = EIGHT) -> dict[str, Any]:
    """Eight priced backends: two of them are full."""
    full: dict[int, dict[str, Any]] = {
        3: {"reason": Reason.SLOTS_FULL, "limit": 4, "needed": 5},
        5: {"reason": Reason.KV_FULL, "limit": 1200, "needed": 9920},
    }
    candidates = [priced(name, 0.7 * 1.9**number, **full.get(number, {})) for number, name in enumerate(names)]
    done = Settled("completed", 200, 7.5, queue_s=0.0004, ttft_s=0.81, tpot_s=0.021, completion_tokens=310)
    return entry_record(AT, make_request(), [admit(*candidates, backend=names[0], now=100.0)], done)


def fallback() -> dict[str, Any]:
    """The model that was asked for has no working backend."""
    decision = admit(
        Candidate("spark", "code", reason=Reason.DOWN),
        Candidate("rig", "code", reason=Reason.BREAKER_OPEN, limit=0.0, needed=3.2),
        Candidate("spark", "small-code", 1, reason=Reason.DOWN),
        priced("rig", 0.7, model="small-code", tier=1),
        model="small-code",
        served_as="small-code",
        tier=1,
        now=100.0,
    )
    return entry_record(AT, make_request(), [decision], None)


def attempts() -> dict[str, Any]:
    """One backend failed before its first token, the next one answered in pieces and broke."""
    tried = Candidate("spark", "code", reason=Reason.ALREADY_TRIED)
    return entry_record(
        AT,
        make_request(attempt=1, tried=frozenset(("spark",))),
        [
            admit(priced("spark", 0.7), priced("rig", 0.9), backend="spark", now=100.0),
            admit(tried, priced("rig", 0.9), backend="rig", now=102.5),
        ],
        Settled("failed", 502, 4.0, backend="rig", ttft_s=0.4, code="broken"),
    )


def refused(reason: Reason = Reason.CONTEXT_TOO_LONG, **changes: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {"verdict": Verdict.REJECT, "reason": reason, "backend": None, "now": 100.0}
    window = Candidate("rig", "code", reason=Reason.WINDOW_TOO_SMALL, limit=8192, needed=9712)
    label = Candidate("cloud", "code", reason=Reason.OUTSIDE_BOUNDARY, limit=0, needed=2)
    decision = admit(window, label, **(settings | changes))
    return entry_record(AT, make_request(), [decision], Settled("refused", 400, 0.0006, code="context_length_exceeded"))


def shed() -> dict[str, Any]:
    full = priced("rig", 9.0, reason=Reason.PREFILL_BACKLOG, limit=4.0, needed=12.3)
    decision = admit(full, verdict=Verdict.SHED, reason=Reason.QUEUE_TIMEOUT, backend=None, now=160.0, retry_after=7.0)
    return entry_record(AT, make_request(), [decision], Settled("refused", 429, 60.0, code="queue_timeout"))


def waiting() -> dict[str, Any]:
    decision = admit(
        priced("spark", 0.7, reason=Reason.SLOTS_FULL, limit=4, needed=5),
        priced("p40", 9.0),
        verdict=Verdict.WAIT,
        reason=Reason.WORTH_WAITING,
        backend=None,
        now=101.5,
    )
    return entry_record(AT, make_request(), [decision], None)
