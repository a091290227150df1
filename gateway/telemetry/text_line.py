"""A log line for people: time, level, what happened, then `name=value` for the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping

from gateway.telemetry.figures import seconds

__all__ = ["text_line"]

_SAID = frozenset(("at", "level", "message", "trace", "event", "status", "method", "route", "seconds"))
_SHORT = {
    "queue_s": "queue",
    "ttft_s": "ttft",
    "prompt_tokens": "prompt",
    "cached_tokens": "cached",
    "completion_tokens": "output",
}
_ORDER = ("backend", "model", "client", "outcome", "reason", *_SHORT)
_INDENT = "\n    "


def text_line(stamp: str, fields: Mapping[str, object]) -> str:
    """The line of one record, without its newline; a trace or a second line of a message is indented below it."""
    access = fields.get("event") == "request"
    said = _request(fields) if access else str(fields.get("message", ""))
    parts = [f"{stamp} {fields.get('level', '')!s:<7}", said.replace("\n", _INDENT)]
    names = [name for name in _ORDER if name in fields]
    names += [name for name in fields if name not in _ORDER and (name not in _SAID or (not access and name == "event"))]
    for name in names:
        value = fields[name]
        if (name == "logger" and str(value).partition(".")[0] == "kvgate") or (name, value) == ("outcome", "completed"):
            continue
        parts.append(f"{_SHORT.get(name, name)}={_value(name, value)}")
    trace = fields.get("trace")
    lines = [" ".join(part for part in parts if part), *(map(str, trace) if isinstance(trace, list) else ())]
    return _INDENT.join(lines)


def _request(fields: Mapping[str, object]) -> str:
    return f"{fields.get('status')} {fields.get('method')} {fields.get('route')} {seconds(fields.get('seconds'))}"


def _value(name: str, value: object) -> str:
    """Seconds with their unit; what could be mistaken for more than one value in quotes."""
    if name.endswith("_s"):
        return seconds(value).replace(" ", "")
    text = str(value)
    return text if text.isprintable() and not any(sign in text for sign in ' "=') else json.dumps(text)
