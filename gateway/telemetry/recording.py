"""A recording of decisions, for `kvgate replay`: every look at the queue, to a file from a thread of its own."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.core.decision import Decision
from gateway.core.plan import Plan
from gateway.core.request import Request
from gateway.core.snapshot import Snapshot
from gateway.telemetry.line_writer import LineSink, LineWriter
from gateway.telemetry.turns import How, Look, TurnWriter

__all__ = ["Recording"]


class Recording:
    """Keeps the frozen values themselves; they become a line in the file's thread. A Recorder of the dispatcher's.

    What does not fit the queue is lost, and the line after it says everything anew.
    """

    def __init__(self, sink: LineSink, *, queued: int = 4096) -> None:
        self._number = 0
        self._writer = LineWriter(sink, TurnWriter().line, capacity=queued, name="recording")

    @property
    def dropped(self) -> int:
        """Looks that the file did not get: its queue was full or the disk refused."""
        return self._writer.dropped

    def looked(
        self, how: How, plan: Plan, snapshot: Snapshot, requests: Sequence[Request], decisions: Sequence[Decision]
    ) -> None:
        """These requests were decided upon, in this order; nothing is waited for."""
        if decisions:
            self._writer.put(Look(self._number, how, plan, snapshot, requests, decisions))
            self._number += 1

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until the file has everything so far; for at most `timeout` seconds."""
        return self._writer.flush(timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Write what is queued, within `timeout` seconds."""
        self._writer.close(timeout)
