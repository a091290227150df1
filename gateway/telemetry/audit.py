"""Who left the premises, and who was kept from leaving: a line each, for people who must be able to say so.

No prompt text: who asked, for what, under which label, and where the request went or might have gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import msgspec

from gateway import clock
from gateway.core.decision import Decision, Verdict
from gateway.core.reasons import Reason
from gateway.core.request import Request
from gateway.telemetry.line_writer import LineSink, LineWriter

__all__ = ["Audit"]


@dataclass(frozen=True, slots=True)
class _Line:
    at: float
    event: str
    request: Request
    backends: Sequence[str]


class Audit:
    """One JSON line for each request that was sent to a backend off premises (`left`, whole, or to have its tokens
    counted: `counted`), and for each that was decided upon without those, since they are not cleared for its label
    (`kept`).

    `away`: names of the backends off premises now.
    """

    def __init__(self, sink: LineSink, away: Callable[[], Collection[str]]) -> None:
        self._away = away
        self._writer = LineWriter(sink, _line, name="audit")

    @property
    def dropped(self) -> int:
        """Lines that the file did not get: its queue was full or the disk refused."""
        return self._writer.dropped

    def decided(self, request: Request, decision: Decision) -> None:
        """Note a decision that ends a wait; a retry, and the rest of an answer, has one of its own."""
        away = self._away()
        if not away:
            return
        backend = decision.backend
        if decision.verdict is Verdict.ADMIT and backend is not None and backend in away:
            self._note("left", request, (backend,))
        kept = [name for name, reason in decision.trace.reasons if reason is Reason.OUTSIDE_BOUNDARY and name in away]
        if kept:
            self._note("kept", request, kept)

    def counted(self, request: Request, backend: str) -> None:
        """Note that a backend was shown a prompt to count its tokens."""
        if backend in self._away():
            self._note("counted", request, (backend,))

    def close(self) -> None:
        """Write what is queued; waits for the disk."""
        self._writer.close()

    def _note(self, event: str, request: Request, backends: Sequence[str]) -> None:
        self._writer.put(_Line(clock.wall(), event, request, backends))


def _line(line: _Line) -> bytes:
    request = line.request
    return msgspec.json.encode(
        {
            "at": round(line.at, 3),
            "event": line.event,
            "request": request.id,
            "client": request.client,
            "model": request.model,
            "class": request.klass,
            "label": request.label.name.lower(),
            "attempt": request.attempt,
            "backends": list(line.backends),
        }
    )
