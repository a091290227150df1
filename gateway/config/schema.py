"""The JSON Schema of the file, from the same classes that read it: for completion and red lines in editors."""

from __future__ import annotations

import json
from typing import Any

from gateway.config.document import Config

__all__ = ["json_schema", "schema_text", "spelt"]


def json_schema() -> dict[str, Any]:
    """The schema; draft 7, which YAML editors know best."""
    made = Config.model_json_schema()
    tidy = {key: value for key, value in _tidy(made).items() if key != "description"}
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "kvgate", "description": Config.__doc__}
    return {**head, **tidy}


def schema_text() -> str:
    """The schema as the text of `config/kvgate.schema.json`."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _tidy(node: Any) -> Any:
    """Without generated titles and null (an empty value is an error or the default); defaults as people write them."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    done: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "$defs"):  # names of keys and classes, which may be called `default` or `title`
            done[key] = {name: _tidy(inner) for name, inner in value.items()}
        elif key != "title":
            done[key] = _tidy(value)
    branches = [branch for branch in done.pop("anyOf", ()) if branch != {"type": "null"}]
    if len(branches) == 1:
        done = {**branches[0], **done}
    elif branches:
        done["anyOf"] = branches
    unit = done.pop("x-unit", None)
    if "default" in done:
        default = spelt(done.pop("default"), unit)
        if default is not None:
            done["default"] = default
    return done


def spelt(value: Any, unit: str | None) -> Any:
    """A value as it would stand in the file; None for those that say nothing (empty lists, mappings)."""
    if unit == "pool":
        return "auto"
    if value is None or isinstance(value, dict | list):
        return None
    if unit == "duration":
        return f"{value * 1000:g}ms" if 0 < value < 1 else f"{value:g}s"
    if unit == "share":
        return f"{value * 100:g}%"
    if unit == "bytes":
        for name, scale in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
            if value and value % scale == 0:
                return f"{value // scale}{name}"
    return value
