"""A plan for a person, in tables, and for a machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli.check_problems import counted, indented
from gateway.cli.check_report import LENGTHS
from gateway.cli.check_view import size_text
from gateway.cli.fitted_table import empty_table, fitted
from gateway.cli.plan_report import Instance, best, order
from gateway.cli.plan_traffic import Workload
from gateway.core.forecast import Bottleneck, Forecast, Goals

__all__ = ["as_json", "show_plan"]

_SHOWN = 12
"""Instances that are shown of a whole catalogue."""
_GIVES_OUT = {
    Bottleneck.PREFILL: "prefill",
    Bottleneck.DECODE: "decode",
    Bottleneck.KV: "KV cache",
    Bottleneck.SLOTS: "places",
    Bottleneck.TTFT: "TTFT",
    Bottleneck.TPOT: "TPOT",
}


def show_plan(
    console: Console, found: Sequence[Instance], workload: Workload, goals: Goals, *, everything: bool = False
) -> None:
    """The traffic, what holds the models, how fast they are, and what to take."""
    console.print(_heading("Traffic", ""))
    console.print(indented(Text(_traffic(workload, goals)), 2))
    shown = list(found) if everything else sorted((each for each in found if each.serves), key=order)[:_SHOWN]
    if shown:
        console.print()
        console.print(_heading("What fits", f"{_about(shown)}memory of all devices, sequences at once"))
        console.print(indented(fitted(console, lambda narrow: _fits(shown, narrow=narrow)), 2))
    if any(each.most is not None for each in shown):
        console.print()
        console.print(_heading("How fast", "by arithmetic from paper figures, until the gateway has measured"))
        console.print(
            indented(fitted(console, lambda narrow: _speeds(shown, rated=bool(workload.rate), narrow=narrow)), 2)
        )
    if len(shown) < len(found):
        console.print(Text(f"  {counted(len(found) - len(shown), 'other')} not shown; --all shows them", "dim"))
    for refused in dict.fromkeys(f"{_model(each)}: {each.refused}" for each in shown if each.refused):
        console.print(indented(Text(f"! {refused}", "yellow"), 2))
    for copies in dict.fromkeys(filter(None, map(_in_copies, shown))):
        console.print(indented(Text(f"! {copies}", "yellow"), 2))
    for what, hint in dict.fromkeys(doubt for each in shown for doubt in each.backend.doubts):
        console.print(indented(Text.assemble((f"! {what}", "yellow"), (f": {hint}", "dim")), 2))
    console.print()
    console.print(_verdict(found, workload))


def _heading(title: str, about: str) -> Text:
    return Text.assemble((title, "bold"), ("  " + about if about else "", "dim"))


def _traffic(workload: Workload, goals: Goals) -> str:
    parts = [workload.origin, _rate(workload.rate) if workload.rate else "no rate given: what each bears at most"]
    if goals.ttft is not None:
        parts.append(f"first token within {_seconds(goals.ttft)} for 95 in 100")
    if goals.tpot is not None:
        parts.append(f"a token every {_seconds(goals.tpot)} or sooner")
    return "; ".join(parts)


def _named(several: bool, narrow: bool) -> list[tuple[str, str]]:
    """Columns of what a row is about; where it is narrow, a model's name stands below its device's."""
    if not several:
        return [("on", "")]
    return [("on\n model", "")] if narrow else [("on", ""), ("model", "")]


def _head(each: Instance, several: bool, narrow: bool) -> list[Text]:
    name = Text(_name(each), "bold" if each.serves else "dim")
    if not several:
        return [name]
    return [Text.assemble(name, f"\n {_model(each)}")] if narrow else [name, Text(_model(each))]


def _name(each: Instance) -> str:
    device = each.backend.backend.device
    return device.id if device.count == 1 else f"{device.count} x {device.id}"


def _in_copies(each: Instance) -> str:
    """What is said of an instance whose devices can't all share each layer."""
    device, copies = each.backend.backend.device, each.backend.capacity.copies
    if copies < 2:
        return ""
    model, on = each.model.serving.offer.model, device.count // copies
    return f"{_name(each)}: counted as {copies} copies of {model}, each on {on} of them"


def _model(each: Instance) -> str:
    serving = each.model.serving
    kv = "" if serving.kv_format == "auto" else f", KV {serving.kv_format}"
    return f"{serving.offer.model} {serving.weights_format}{kv}"


def _about(shown: Sequence[Instance]) -> str:
    """The model, where it is the same in all rows."""
    return "" if _several(shown) else f"{_model(shown[0])}: "


def _several(shown: Sequence[Instance]) -> bool:
    return len({_model(each) for each in shown}) > 1


def _fits(shown: Sequence[Instance], *, narrow: bool) -> Table:
    several = _several(shown)
    table = empty_table(
        *_named(several, narrow), ("memory", "right"), ("weights", "right"),
        ("KV pool", "right"), *((f"{tokens // 1024}k", "right") for tokens in LENGTHS),
    )  # fmt: skip
    for each in shown:
        short = each.pool_bytes <= 0 or bool(each.refused)
        pool = _pool(each)
        table.add_row(
            *_head(each, several, narrow),
            size_text(each.backend.backend.device.memory),
            size_text(each.backend.capacity.weights_bytes),
            pool,
            *(Text("–", "dim") if short or count is None else Text(f"{count:,}") for count in each.fits),
        )
    return table


def _pool(each: Instance) -> Text:
    if each.refused:
        return Text("can't be split", "red")
    if each.pool_bytes <= 0:
        return Text(f"{size_text(-each.pool_bytes)} short", "red")
    return Text(size_text(each.pool_bytes))


def _speeds(shown: Sequence[Instance], *, rated: bool, narrow: bool) -> Table:
    priced = any(each.price is not None for each in shown)
    several = _several(shown)
    columns = [
        *_named(several, narrow),
        ("TTFT", "right"),
        ("95 %", "right"),
        ("TPOT", "right"),
        ("at\nonce" if narrow else "at once", "right"),
    ]
    columns += [("bears", "right"), ("limit", "")]
    columns += [("needed", "right")] if rated else []
    columns += [("1,000\ncost" if narrow else "1,000 cost", "right")] if priced else []
    table = empty_table(*columns)
    for each in shown:
        if each.most is None:
            continue
        row: list[str | Text] = [*_head(each, several, narrow)]
        told = _told(each)
        if told is None:
            row += ["", "", "", ""]
        else:
            row += [_seconds(told.ttft), _seconds(told.ttft_p95), _seconds(told.tpot), f"{max(told.batch, 0.1):.1f}"]
        row.append(_rate(each.most.rate) if each.serves else Text("nothing", "red"))
        row.append(_GIVES_OUT[each.most.full] if each.most.full is not None else "")
        if rated:
            row.append(str(each.copies) if each.copies else "")
        if priced:
            row.append(f"{each.cost:.3g}" if each.cost is not None else "")
        table.add_row(*row)
    return table


def _told(each: Instance) -> Forecast | None:
    """The forecast to show: at the rate wanted if one instance bears that, else at the most that it bears."""
    if each.now is not None and each.now.full is None:
        return each.now
    return each.most if each.serves else None


def _verdict(found: Sequence[Instance], workload: Workload) -> Text:
    choice = best(found)
    if choice is None or choice.most is None:
        return Text("✗ nothing here serves that: less context, smaller weights, or more memory", "bold red")
    copies = choice.copies or 1
    many = "" if copies == 1 else f"{copies} instances of "
    line = Text.assemble(("✓ smallest that serves it: ", "green"), (f"{many}{_name(choice)}", "bold green"))
    line.append(f" with {_model(choice)}")
    each = " each" if copies > 1 else ""
    line.append(f"; bears {_rate(choice.most.rate)}{each}")
    if choice.most.full is not None:
        line.append(f", and {_GIVES_OUT[choice.most.full]} is the limit")
    if choice.cost is not None:
        at = "" if workload.rate else " when full"
        line.append(f"; 1,000 requests cost {choice.cost:.3g}{at}")
    return line


def _rate(rate: float) -> str:
    if rate >= 1.0:
        return f"{rate:.3g}/s"
    return f"{rate * 60.0:.3g}/min" if rate >= 1.0 / 60.0 else f"{rate * 3600.0:.3g}/h"


def _seconds(value: float) -> str:
    if math.isinf(value):
        return "never"
    return (
        f"{value * 1000.0:.0f} ms" if value < 1.0 else f"{value:.1f} s" if value < 100.0 else f"{value / 60.0:.0f} min"
    )


def as_json(found: Sequence[Instance], workload: Workload, goals: Goals) -> dict[str, Any]:
    """The same as one object. Bytes, tokens, seconds, requests a second; null where not known."""
    choice = best(found)
    traffic = workload.traffic
    return {
        "traffic": {
            "origin": workload.origin,
            "rate": workload.rate or None,
            "prompt_tokens": round(traffic.prompt, 1),
            "cached_tokens": round(traffic.cached, 1),
            "output_tokens": round(traffic.output, 1),
            "ttft_goal": goals.ttft,
            "tpot_goal": goals.tpot,
        },
        "instances": [_as_json(each) for each in found],
        "smallest": found.index(choice) if choice is not None else None,
    }


def _as_json(each: Instance) -> dict[str, Any]:
    backend, offer, device = each.backend, each.model.serving.offer, each.backend.backend.device
    return {
        "backend": backend.backend.name,
        "model": offer.model,
        "device": device.id,
        "count": device.count,
        "memory_bytes": device.memory,
        "weights_bytes": backend.capacity.weights_bytes,
        "weights": each.model.serving.weights_format,
        "kv": each.model.serving.kv_format,
        "pool_bytes": each.pool_bytes,
        "pool_tokens": backend.capacity.pool_tokens,
        "window": offer.window,
        "refused": each.refused or None,
        "copies": backend.capacity.copies,
        "doubts": [{"message": what, "hint": hint} for what, hint in backend.doubts],
        "fits": {str(length): count for length, count in zip(LENGTHS, each.fits, strict=True)},
        "holds": each.holds,
        "serves": each.serves,
        "at_rate": _forecast_json(each.now),
        "at_most": _forecast_json(each.most),
        "needed": each.copies,
        "price_per_hour": each.price,
        "cost_per_1000": each.cost,
    }


def _forecast_json(told: Forecast | None) -> dict[str, Any] | None:
    if told is None:
        return None
    numbers = {name: getattr(told, name) for name in ("rate", "busy", "batch", "ttft", "ttft_p95", "tpot")}
    finite = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    return {**finite, "gives_out": str(told.full) if told.full is not None else None}
