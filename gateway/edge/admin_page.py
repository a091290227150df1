"""The admin port's front page: the fleet at a glance, in plain HTML without scripts, read again every few seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from gateway.telemetry.figures import seconds

__all__ = ["CSP", "page"]

CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Content-Security-Policy of the page: it loads nothing and can't be framed."""

_Row = Mapping[str, Any]

_REFRESH_S = 3

_MOODS = {
    "up": "good",
    "trial": "fair",
    "loading": "fair",
    "draining": "fair",
    "resting": "fair",
    "open": "bad",
    "down": "bad",
}
"""Colour of a health; the word stands beside it."""

_STYLE = """\
:root{color-scheme:light dark;--ink:#1c2024;--soft:#60656c;--line:#e2e4e9;--page:#f8f9fb;--card:#fff;
--good:#18794e;--fair:#8f5b00;--bad:#c62a2f;--bar:#0b68cb;--bar2:#8ec8f6;--track:#e8eaee}
@media(prefers-color-scheme:dark){:root{--ink:#edeef0;--soft:#a0a5ad;--line:#2e3135;--page:#111214;--card:#191a1d;
--good:#3dd68c;--fair:#ffca16;--bad:#ff9592;--bar:#3b9eff;--bar2:#205d9e;--track:#2b2d31}}
*{box-sizing:border-box}
body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--page);
margin:0 auto;padding:1.5rem;max-width:76rem}
header{display:flex;flex-wrap:wrap;align-items:baseline;gap:.2rem 1.5rem;margin-bottom:1rem}
h1{font-size:1.4rem;margin:0}h2{font-size:1rem;margin:1.6rem 0 .6rem}
header span,small,th{color:var(--soft)}header b{font-variant-numeric:tabular-nums}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;overflow-x:auto}
table{border-collapse:collapse;width:100%}
td,th{padding:.6rem .9rem;text-align:left;vertical-align:top;border-top:1px solid var(--line)}
tr:first-child>*{border-top:0}th{font-weight:500;font-size:.85rem;white-space:nowrap}
small{display:block;font-size:.82rem}
.n{font-variant-numeric:tabular-nums;white-space:nowrap}
.good{color:var(--good)}.fair{color:var(--fair)}.bad{color:var(--bad)}
.bar{display:flex;width:9rem;height:.5rem;margin:.45rem 0 .3rem;
border-radius:4px;background:var(--track);overflow:hidden}
.bar i{background:var(--bar)}.bar i+i{background:var(--bar2)}
.note td{border-top:0;padding-top:0}
nav{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;margin-top:1.6rem}a{color:var(--bar)}
code{font:.9em ui-monospace,monospace}p{padding:.7rem .9rem;margin:0}"""


def page(backends: Sequence[_Row], queue: _Row, paths: Sequence[str]) -> bytes:
    """The page, as UTF-8. `backends` and `queue` as `Admin` gives them; `paths` that can be looked at become links."""
    waiting, models = queue.get("waiting", 0), queue.get("models") or {}
    running = sum(row.get("running") or 0 for row in backends)
    working = sum(row.get("state") in ("up", "trial") for row in backends)
    links = "".join(f'<a href="{escape(path)}">{escape(path)}</a>' for path in paths)
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>kvgate</title>"
        '<meta name=viewport content="width=device-width,initial-scale=1">'
        f"<meta http-equiv=refresh content={_REFRESH_S}>"
        f"<style>{_STYLE}</style></head><body><header><h1>kvgate</h1><span><b>{working}</b> of <b>{len(backends)}</b> "
        f"backends work</span><span><b>{_count(running)}</b> requests running</span>"
        f"<span><b>{_count(waiting)}</b> waiting in the queue</span></header>"
        f"<section>{_backends(backends)}</section>"
        f"<h2>Queue</h2><section>{_queue(models)}</section>"
        "<h2>One request</h2><section><p><code>kvgate explain ID</code> says why it went where it went; the ID is in "
        f"the answer's header <code>x-kvgate-decision</code>.</p></section><nav>{links}</nav></body></html>\n"
    ).encode("utf-8", "replace")


def _backends(backends: Sequence[_Row]) -> str:
    if not backends:
        return "<p>No backends are configured.</p>"
    heads = ("backend", "health", "running", "KV cache reserved", "prefill queued", "learned, × catalogue", "models")
    head = "".join(f"<th>{name}</th>" for name in heads)
    return f"<table><tr>{head}</tr>{''.join(map(_backend, backends))}</table>"


def _backend(row: _Row) -> str:
    state = str(row.get("state", "?"))
    place = "off premises, " if row.get("off_premises") else ""
    about = " on ".join(str(row[key]) for key in ("engine", "device") if row.get(key) not in (None, "", "unknown"))
    cells = (
        f"<b>{escape(str(row.get('name', '?')))}</b><small>{place}{escape(about)}</small>",
        f'<span class="{_MOODS.get(state, "fair")}">● {escape(state)}</span>',
        f"{_count(row.get('running'))} of {_count(row.get('slots')) or '?'}",
        _pool(row),
        f"{row.get('prefill_backlog_seconds') or 0:.1f} s",
        f"prefill ×{row.get('prefill_factor') or 1:.2f}<small>decode ×{row.get('decode_factor') or 1:.2f}</small>",
    )
    models = "".join(f"<div>{_model(model)}</div>" for model in row.get("models") or ()) or "<small>none known</small>"
    shown = "".join(f'<td class="n">{cell}</td>' for cell in cells)
    remarks = [f'<span class="bad">{escape(str(row["error"]))}</span>'] if row.get("error") else []
    note = "<br>".join([*remarks, *(escape(str(text)) for text in row.get("notes") or ())])
    below = f'<tr class="note"><td colspan=7><small>{note}</small></td></tr>' if note else ""
    return f'<tr>{shown}<td class="n">{models}</td></tr>{below}'


def _pool(row: _Row) -> str:
    """How much of the KV pool is reserved by this gateway, and taken by others."""
    pool, reserved, foreign = (row.get(f"kv_{name}_tokens") or 0 for name in ("pool", "reserved", "foreign"))
    if pool <= 0:
        return f"{_count(reserved)} tokens<small>pool not known</small>"
    ours = min(100.0, 100.0 * reserved / pool)
    shares = (ours, min(100.0 - ours, 100.0 * foreign / pool))
    parts = "".join(f'<i style="width:{share:.1f}%"></i>' for share in shares)
    others = f", {_count(foreign)} by others" if foreign else ""
    return f'<div class="bar">{parts}</div><small>{_count(reserved)} of {_count(pool)} tokens{others}</small>'


def _model(model: object) -> str:
    if not isinstance(model, Mapping):
        return escape(str(model))
    name, served = str(model.get("id", "?")), model.get("served_as")
    alias = f" as {escape(str(served))}" if served and served != name else ""
    return f"{escape(name)}{alias} <small>window {_count(model.get('window')) or '?'} tokens</small>"


def _queue(models: Mapping[str, Any]) -> str:
    heads = ("model", "waiting", "tokens", "served in", "longest wait")
    head = "".join(f"<th>{name}</th>" for name in heads)
    rows = "".join(_line(name, line) for name, line in models.items())
    return f"<table><tr>{head}</tr>{rows}</table>" if rows else "<p>Nothing waits.</p>"


def _line(name: str, line: Mapping[str, Any]) -> str:
    drain, oldest = line.get("seconds_to_drain"), line.get("oldest_seconds")
    cells = (
        escape(str(name)),
        _count(line.get("requests")),
        _count(line.get("tokens")),
        seconds(drain) or "not known",
        seconds(oldest),
    )
    shown = "".join(f'<td class="n">{cell}</td>' for cell in cells)
    return f"<tr>{shown}</tr>"


def _count(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else escape(str(value or ""))
