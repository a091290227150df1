"""The decision journal: the last requests in memory by id, all of them in a file if there is one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from gateway import clock
from gateway.core.decision import Decision, Verdict
from gateway.core.failure import FailureKind
from gateway.core.request import Request
from gateway.telemetry.line_writer import LineSink, LineWriter
from gateway.telemetry.record import Record, Settled, entry_record

__all__ = ["Journal"]

_DECISIONS = 8
"""Decisions kept for one request: the first, and the last of them; a long wait is decided on many times."""


NOTHING_WRONG: Mapping[str, str] = {}


@dataclass(slots=True)
class _Entry:
    at: float
    request: Request
    decisions: list[Decision] = field(default_factory=list)
    settled: Settled | None = None
    failures: dict[int, FailureKind] = field(default_factory=dict)
    """How the attempt under a decision failed, by the decision's identity."""
    causes: Mapping[str, str] = field(default_factory=dict)
    """What was wrong with backends when it was last decided upon, by name."""

    def record(self) -> Record:
        failures = [self.failures.get(id(decision)) for decision in self.decisions]
        record = entry_record(self.at, self.request, self.decisions, self.settled, failures)
        return (
            {**record, "causes": {name: str(cause) for name, cause in self.causes.items()}} if self.causes else record
        )


class Journal:
    """Remembers the frozen values themselves; they become data when somebody asks, or in the file's thread.

    `capacity` requests in memory, oldest out first. `sink` gets one JSON line a request when it is settled.
    """

    def __init__(self, *, capacity: int = 4096, sink: LineSink | None = None, queued: int = 10_000) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._writer: LineWriter[_Entry] | None = (
            LineWriter(sink, _line, capacity=queued, name="journal") if sink is not None else None
        )

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def dropped(self) -> int:
        """Lines that the file did not get: its queue was full or the disk refused."""
        return self._writer.dropped if self._writer is not None else 0

    def decided(self, request: Request, decision: Decision, causes: Mapping[str, str] = NOTHING_WRONG) -> None:
        """Keep a decision; a retry's or a waiting request's next one joins the earlier ones of the same id.

        `causes`: what is wrong with backends now, by name.
        """
        entry = self._entries.get(request.id)
        if entry is None:
            entry = self._entries[request.id] = _Entry(clock.wall(), request)
            if len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
        entry.request, entry.causes = request, causes
        if len(entry.decisions) >= _DECISIONS:
            entry.failures.pop(id(entry.decisions.pop(1)), None)
        entry.decisions.append(decision)

    def failed(self, request_id: str, backend: str, kind: FailureKind) -> None:
        """Note how the last attempt at that backend failed. Nothing happens for an id that has left the memory."""
        entry = self._entries.get(request_id)
        if entry is None or entry.settled is not None:
            return
        for decision in reversed(entry.decisions):
            if decision.verdict is Verdict.ADMIT and decision.backend == backend:
                entry.failures[id(decision)] = kind
                return

    def settled(self, request_id: str, settled: Settled) -> None:
        """Note how a request ended, and write its line. Nothing happens for an id that has already left the memory."""
        entry = self._entries.get(request_id)
        if entry is None or entry.settled is not None:
            return
        entry.settled = settled
        if self._writer is not None:
            self._writer.put(entry)

    def record(self, request_id: str) -> Record | None:
        """What is known about a request, as plain data; None when its id is not (or no longer) in memory."""
        entry = self._entries.get(request_id)
        return entry.record() if entry is not None else None

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait for the file to have everything settled so far; for at most `timeout` seconds."""
        return self._writer is None or self._writer.flush(timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Write what is queued, within `timeout` seconds."""
        if self._writer is not None:
            self._writer.close(timeout)


def _line(entry: _Entry) -> bytes:
    return msgspec.json.encode(entry.record())
