"""Where the prompts of a conversation part ways, in data and in words; never with a word of the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.core.sessions import Divergence

__all__ = ["parting_record", "parting_words"]


def parting_record(found: Divergence | None) -> dict[str, Any] | None:
    """As data. Bytes of the prompt as it is rendered: tools first, then the messages."""
    if found is None:
        return None
    return {
        "from_byte": found.start,
        "to_byte": found.end,
        "message": found.message,
        "turns": found.turns,
        "lost_bytes": found.lost,
    }


def parting_words(record: Mapping[str, Any]) -> str:
    """In a sentence for whoever can mend it."""
    message, turns = record.get("message"), int(record.get("turns") or 1)
    where = "its tools or a later message" if message is None else f"message {message}"
    often = "from the last turn" if turns == 1 else f"{turns} turns in a row"
    first, last, lost = (int(record.get(name) or 0) for name in ("from_byte", "to_byte", "lost_bytes"))
    return (
        f"the prompt differs in {where}, between bytes {first:,} and {last:,}, {often}: "
        f"{lost:,} bytes after that can't come from a cache"
    )
