"""The admin port's front page: links and the backends as they stand, in plain HTML without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["CSP", "page"]

CSP = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
"""Content-Security-Policy of the page: it loads nothing and can't be framed."""

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem;max-width:70rem}"
    "table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:left;border-bottom:1px solid #8884}"
    ".up{color:#187a2f}.open,.down{color:#b3261e}"
)


def page(backends: Sequence[Mapping[str, Any]], paths: Sequence[str]) -> bytes:
    """The page, as UTF-8. `backends` as `Admin.backends` gives them; `paths` without a placeholder become links."""
    links = "".join(f'<li><a href="{escape(path)}">{escape(path)}</a></li>' for path in paths if "{" not in path)
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>kvgate</title>"
        f"<style>{_STYLE}</style></head><body><h1>kvgate</h1><h2>Backends</h2>{_table(backends)}"
        f"<h2>Pages</h2><ul>{links}</ul></body></html>\n"
    ).encode("utf-8", "replace")


def _table(backends: Sequence[Mapping[str, Any]]) -> str:
    if not backends:
        return "<p>No backends are configured.</p>"
    columns: list[str] = []
    for backend in backends:
        columns.extend(str(key) for key in backend if key not in columns)
    head = "".join(f"<th>{escape(column.replace('_', ' '))}</th>" for column in columns)
    rows = "".join(
        f'<tr class="{escape(str(backend.get("state", "")), quote=True)}">'
        + "".join(f"<td>{escape(_cell(backend.get(column)))}</td>" for column in columns)
        + "</tr>"
        for backend in backends
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.3g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(str(item) for item in value)
    return str(value)
