"""The header fields that tell a client where its answer came from and what it waited for."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.core.decision import Decision
from gateway.core.lease import Ahead

__all__ = ["answer_headers"]

_NOTHING: Mapping[str, str] = {}


def answer_headers(
    decision: Decision,
    backend: str,
    decision_id: str,
    queued: float,
    ttft: float | None,
    dropped: tuple[str, ...] = (),
    ahead: Ahead | None = None,
    causes: Mapping[str, str] = _NOTHING,
) -> tuple[tuple[str, str], ...]:
    """Return `x-kvgate-*` and `server-timing` (milliseconds, as the field's standard has it).

    `queued` seconds in the gateway; `ttft` seconds from sending to the first token, None while it is not known.
    `dropped`: members of the request's body that the engine did not get. `ahead`: who stood before it in the queue.
    `causes`: what is wrong with backends, by name; told of those of the model asked for when another one answers.
    """
    timing = [f"queue;dur={queued * 1000:.1f}"]
    if decision.predicted_prefill:
        timing.append(f'prefill;dur={decision.predicted_prefill * 1000:.1f};desc="predicted"')
    if ttft is not None:
        timing.append(f"first-token;dur={ttft * 1000:.1f}")
    fields = [
        ("x-kvgate-backend", backend),
        ("x-kvgate-decision", decision_id),
        ("server-timing", ", ".join(timing)),
    ]
    if ahead is not None:
        # Requests before it, and seconds to its start: as predicted when it came, and as it was.
        fields.append(
            ("x-kvgate-queue", f"ahead={ahead.requests}, predicted={_within(ahead.seconds)}, waited={queued:.1f}")
        )
    if decision.tier > 0:
        first = [candidate.backend for candidate in decision.trace.candidates if candidate.tier == 0]
        because = "".join(f"; {name}={causes[name]}" for name in dict.fromkeys(first) if name in causes)
        fields.append(("x-kvgate-fallback", (decision.model or "") + because))
    if decision.footprint is not None and decision.footprint.max_tokens is not None:
        fields.append(("x-kvgate-max-tokens", str(decision.footprint.max_tokens)))
    if dropped:
        fields.append(("x-kvgate-dropped", ", ".join(dropped)))
    return tuple(fields)


def _within(seconds: float) -> str:
    return f"{min(seconds, 9999.9):.1f}"
