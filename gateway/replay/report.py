"""What a replay found: how much is the same, where it parts first, and what another policy would have changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.core.plan import Plan
from gateway.replay.comparing import Difference, differences, record
from gateway.replay.reading import Recorded
from gateway.replay.replaying import again, under

__all__ = ["Divergence", "Report", "replay"]

_CHOICE = ("verdict", "reason", "backend", "model", "tier")
"""What was decided, apart from the figures on which it rests."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """A decision that is not the same. `chosen`: whether what was decided differs, and not only a figure."""

    look: int
    where: str
    now: float
    request: str
    fields: list[Difference]
    recorded: Mapping[str, Any]
    replayed: Mapping[str, Any] | None

    @property
    def chosen(self) -> bool:
        """Whether another verdict, backend or model came out."""
        replayed = self.replayed or {}
        return any(self.recorded.get(name) != replayed.get(name) for name in _CHOICE)


@dataclass(slots=True)
class Report:
    """Counts over a recording. Seconds on its own clock."""

    looks: int = 0
    decisions: int = 0
    """Compared."""
    final: int = 0
    """Of those, the ones that ended a wait; the others are of requests that had to wait on."""
    own: int = 0
    """Noes of the queue itself, which rest on no backend and are not made again."""
    unused: int = 0
    """Lines that rest on others which are missing."""
    began: float | None = None
    ended: float = 0.0
    diverging: int = 0
    chosen: int = 0
    """Decisions that came out differently, and not only with another figure."""
    fields: Counter[str] = field(default_factory=Counter)
    """How many decisions differ in each field, a backend's name left out."""
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    """What was decided and what comes out instead, of those that differ in that."""
    first: list[Divergence] = field(default_factory=list)
    unknown: frozenset[str] = frozenset()
    """Backends that only one of the two policies has."""

    @property
    def seconds(self) -> float:
        """Between the first look and the last."""
        return self.ended - (self.began or 0.0) if self.looks else 0.0


def replay(looks: Iterable[Recorded | int], plan: Plan | None = None, *, most: int = 10) -> Report:
    """Decide all of it again, under `plan` or as it was; the first `most` divergences are kept whole."""
    report = Report()
    for look in looks:
        if isinstance(look, int):
            report.unused += look
            continue
        report.looks += 1
        report.began = look.snapshot.now if report.began is None else report.began
        report.ended = look.snapshot.now
        if plan is not None:
            report.unknown |= {b.name for b in plan.backends} ^ {v.name for v in look.snapshot.views}
            look = under(look, plan)
        for found in _compared(look, report):
            _count(found, report, most)
    return report


def _compared(look: Recorded, report: Report) -> Iterator[Divergence]:
    made = again(look)
    if made is None:
        report.own += len(look.decisions)
        return
    replayed = {decision.request: record(decision) for decision in made}
    for row in look.decisions:
        report.decisions += 1
        report.final += row["verdict"] != "wait"
        found = differences(row, replayed.get(row["request"]))
        if found:
            yield Divergence(
                look.number, look.where, look.snapshot.now, row["request"], found, row, replayed.get(row["request"])
            )


def _count(found: Divergence, report: Report, most: int) -> None:
    report.diverging += 1
    report.fields.update({_general(each.field) for each in found.fields})
    if found.chosen:
        report.chosen += 1
        report.moves[_outcome(found.recorded), _outcome(found.replayed)] += 1
    if len(report.first) < most:
        report.first.append(found)


def _general(name: str) -> str:
    head, *rest = name.split(".")
    return ".".join([head, *rest[1:]]) if head == "candidates" else name


def _outcome(row: Mapping[str, Any] | None) -> str:
    """Where it went, or how it didn't, in a few words."""
    if row is None:
        return "not looked at"
    if row["verdict"] == "admit":
        model = f" as {row['model']}" if row.get("tier") else ""
        return f"{row['backend']}{model}"
    return f"{row['verdict']} ({row['reason']})"
