"""Two records of one decision, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from gateway.core.decision import Candidate, Decision
from gateway.core.footprint import Footprint
from gateway.telemetry.turns import decision_row

__all__ = ["Difference", "differences", "record"]


class Difference(NamedTuple):
    """A field that is not the same; None where it is not there."""

    field: str
    recorded: Any
    replayed: Any


def record(decision: Decision) -> dict[str, Any]:
    """A decision as a recording would give it back."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(decision_row(decision)))
    return found


def differences(recorded: Mapping[str, Any], replayed: Mapping[str, Any] | None) -> list[Difference]:
    """Fields that differ, what was decided first and then the candidates; none if they are equal bit for bit.

    `replayed` None: it was not decided upon this time.
    """
    if replayed is None:
        return [Difference("verdict", recorded.get("verdict"), None)]
    if recorded == replayed:
        return []
    # The candidates of those that wait on are not recorded.
    traced = "candidates" in recorded and "candidates" in replayed
    one, other = _flat(recorded, traced), _flat(replayed, traced)
    names = dict.fromkeys([*one, *other])
    return [Difference(name, one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name)]


def _flat(row: Mapping[str, Any], traced: bool) -> dict[str, Any]:
    """Its values by dotted names: footprint.kv, candidates.spark.terms.completion_time."""
    flat = {name: value for name, value in row.items() if name not in ("candidates", "footprint")}
    flat.update(_footprint("footprint", row.get("footprint")))
    for each in row["candidates"] if traced else ():
        candidate = dict(zip(Candidate._fields, each, strict=False))
        name = f"candidates.{candidate.pop('backend')}"
        if candidate["tier"]:
            name += f".tier{candidate['tier']}"
        flat.update((f"{name}.terms.{term}", seconds) for term, seconds in candidate.pop("terms"))
        flat.update(_footprint(f"{name}.footprint", candidate.pop("footprint")))
        flat.update((f"{name}.{field}", value) for field, value in candidate.items())
    return flat


def _footprint(name: str, values: Any) -> dict[str, Any]:
    if values is None:
        return {}
    return {f"{name}.{field}": value for field, value in zip(Footprint._fields, values, strict=False)}
