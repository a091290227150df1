"""`kvgate check` for a person: warnings, then what the file means, in tables."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gateway.cli.check_problems import counted, indented, list_problems
from gateway.cli.check_report import LENGTHS, BackendReport, ModelReport, Report, RouteReport, Step
from gateway.cli.device_words import device_is_odd, device_words
from gateway.cli.fitted_table import empty_table, fitted
from gateway.config.load import Loaded
from gateway.config.memory import weight_copies

__all__ = ["show_report", "size_text"]


def size_text(size: float) -> str:
    """Bytes in the largest binary unit that leaves at least 1."""
    for unit, scale in (("TiB", 1024**4), ("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if size >= scale:
            number = size / scale
            return f"{number:.0f} {unit}" if number >= 100 or number == int(number) else f"{number:.1f} {unit}"
    return f"{size:.0f} B"


def show_report(console: Console, found: Report, loaded: Loaded, file: Path) -> None:
    """What the file means, warnings first."""
    console.print(f"[bold green]✓ {escape(str(file))} can be used[/]  {_summary(found, loaded)}\n")
    if loaded.warnings:
        console.print(f"[bold yellow]! {counted(len(loaded.warnings), 'warning')}[/]\n")
        list_problems(console, loaded.warnings, "yellow")
    _heading(console, "Backends", "what each may fill")
    console.print(indented(fitted(console, lambda narrow: _backends(found.backends, narrow=narrow)), 2))
    for backend in found.backends:
        _backend_lines(console, backend)
    if any(backend.models for backend in found.backends):
        console.print()
        _heading(console, "Models on them", "bytes of KV cache, and sequences of each length that one pool holds")
        console.print(indented(fitted(console, lambda narrow: _models(found.backends, narrow=narrow)), 2))
        _legend(console, found.backends)
    console.print()
    _heading(console, "Names that clients use", "and what answers, in the order it is tried")
    _routes(console, found)
    console.print()
    _heading(console, "Data", "which backends a request of each label may reach")
    console.print(_reach(found))


def _summary(found: Report, loaded: Loaded) -> str:
    parts = [counted(len(found.backends), "backend")]
    if found.routes:
        parts.append(counted(len(found.routes), "model name"))
    auth = loaded.policy.auth
    if auth is not None and auth != "none":
        parts.append(counted(len(auth.keys), "key"))
    return f"[dim]{', '.join(parts)}; listens on {loaded.settings.server.listen}[/]"


def _heading(console: Console, title: str, about: str) -> None:
    console.print(f"[bold]{title}[/]  [dim]{about}[/]")


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), header_style="dim")
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "right" else "left", overflow="fold")
    return table


def _backends(backends: Iterable[BackendReport], *, narrow: bool) -> Table:
    table = empty_table(
        ("backend", ""), ("engine", ""), ("device", ""), ("weights", "right"), ("KV pool", "right"),
        ("tokens", "right"), ("at\nonce" if narrow else "at once", "right"),
    )  # fmt: skip
    for one in backends:
        held = one.capacity
        table.add_row(
            Text(one.backend.name, style="bold"),
            one.backend.engine,
            _device(one).replace(", ", ",\n") if narrow else _device(one),
            size_text(held.weights_bytes) if held.weights_bytes and one.backend.device.memory else "?",
            size_text(held.pool_bytes) if held.pool_bytes else "?",
            f"{held.pool_tokens:,}" if held.pool_tokens else "?",
            str(held.slots),
        )
    return table


def _device(one: BackendReport) -> str:
    device = one.backend.device
    if one.backend.off_premises and not device.known:
        return "hosted"
    name = device.id if device.known or device.id != "unknown" else "not named"
    if device.count == 1:
        return name
    shared = f", tp {device.tensor_parallel}" if device.tensor_parallel > 1 else ""
    copies = weight_copies(one.backend)
    return f"{device.count} x {name}{shared}" + (f", {copies} copies" if copies > 1 else "")


def _backend_lines(console: Console, one: BackendReport) -> None:
    """Where the figures come from, and what the engine said."""
    sources = dict(one.capacity.sources)
    line = Text.assemble("  ", (one.backend.name, "bold dim"))
    if not one.models:
        line.append(" serves whatever its engine lists", "dim")
    else:
        block = "" if one.capacity.block == 1 else f", in blocks of {one.capacity.block} tokens"
        line.append(f" pool: {sources['pool']}{block}{_charge(one)}; at once: {sources['slots']}", "dim")
    if one.asked == "":
        line.append("; its engine answers", "green")
    console.print(line)
    if one.asked:
        console.print(indented(Text(f"its engine: {one.asked}; the figures are from this file alone", "yellow"), 4))
    if one.device_reports is not None:
        style = "yellow" if device_is_odd(one.device_reports) else "dim"
        console.print(indented(Text(f"its device: {device_words(one.device_reports)}", style), 4))
    for what, hint in one.doubts:
        console.print(indented(Text.assemble((f"! {what}", "yellow"), f" → {hint}"), 4))
    for odd in one.mismatches:
        console.print(indented(Text(f"! {odd}", "yellow"), 4))
    for note in one.notes:
        console.print(indented(Text(note, "dim"), 4))


def _charge(one: BackendReport) -> str:
    most = one.capacity.charge.most
    return f", {most:,} tokens more a sequence for states and windows" if most else ""


def _models(backends: Iterable[BackendReport], *, narrow: bool) -> Table:
    """A row for each; where it is narrow, a model's name stands below its backend's."""
    rows = [
        (Text(backend.backend.name, style="bold"), _model(model, hosted=backend.backend.off_premises))
        for backend in backends
        for model in backend.models
    ]
    constant = any(cells[4] for _, cells in rows)
    table = empty_table(
        *((("backend\n model", ""),) if narrow else (("backend", ""), ("model", ""))), ("weights", ""), ("KV", ""),
        ("a token", "right"), *((("a se-\nquence" if narrow else "a sequence", "right"),) if constant else ()),
        ("window", "right"), *((f"{tokens // 1024}k", "right") for tokens in LENGTHS),
    )  # fmt: skip
    for name, (model, *facts) in rows:
        if not constant:
            del facts[3]
        head = [Text.assemble(name, f"\n {model}")] if narrow else [name, Text(model)]
        table.add_row(*head, *facts)
    return table


def _model(one: ModelReport, *, hosted: bool) -> list[str]:
    """One row; what a hosted service does inside is not ours to tell."""
    offer = one.serving.offer
    sources = dict(offer.sources)
    fixed = offer.kv.state_bytes + offer.kv.window_bytes_per_token * offer.kv.window

    def mark(fact: str) -> str:
        return "*" if sources.get(fact) == "assumed" else ""

    window = f"{offer.window:,}{mark('window')}{'†' if sources['window'] == 'catalogue' else ''}"
    if hosted and "assumed" in (sources.get("kv"), sources.get("weights")):
        return [offer.model, "–", "–", "–", "", window, *("–" for _ in LENGTHS)]
    return [
        offer.model,
        f"{one.serving.weights_format}{mark('weights')}",
        "16 bit" if one.serving.kv_format == "auto" else one.serving.kv_format,
        size_text(offer.kv.bytes_per_token) + mark("kv"),
        f"+{size_text(fixed)}" if fixed else "",
        window,
        *("–" if count is None else f"{count:,}" for count in one.fits),
    ]


def _legend(console: Console, backends: Iterable[BackendReport]) -> None:
    sources = [dict(m.serving.offer.sources) for backend in backends for m in backend.models]
    if any("assumed" in (s.get("weights"), s.get("kv"), s.get("window")) for s in sources):
        console.print(Text("  * assumed: neither file, engine nor catalogue tells", "dim"))
    if any(s["window"] == "catalogue" for s in sources):
        console.print(Text("  † the catalogue's, kept cautious: say `context`, or let the engine tell", "dim"))


def _routes(console: Console, found: Report) -> None:
    if not found.routes:
        console.print(Text("  every model that an engine lists, under its own id", "dim"))
    for one in found.routes:
        _route(console, one)


def _route(console: Console, one: RouteReport) -> None:
    facts = [f"data {one.route.label.name.lower()}", f"class {one.route.klass}"]
    if one.cap:
        facts.append(f"up to {one.cap:,} tokens")
    if one.route.fallback:
        facts.append(f"consent {one.route.consent.name.lower()}")
    console.print(Text.assemble("  ", (one.route.name, "bold"), ("  " + ", ".join(facts), "dim")))
    for number, step in enumerate(one.steps, 1):
        console.print(indented(_step(number, step), 4))


def _step(number: int, step: Step) -> Text:
    line = Text.assemble((f"{number} ", "dim"), (step.model, "cyan"), " → ")
    line.append(", ".join(step.open) if step.open else "nobody", "" if step.open else "yellow")
    if not step.open and not step.closed:
        line.append(" by this file; an engine may list it", "dim")
    for name, why in step.closed:
        line.append(f"; not {name}: {why}", "dim")
    return line


def _reach(found: Report) -> Padding:
    names = [backend.backend.name for backend in found.backends]
    table = _table(("label", ""), *((name, "") for name in names))
    for label, reached in found.reach:
        table.add_row(label.name.lower(), *(Text("yes", "green") if n in reached else Text("no", "dim") for n in names))
    return indented(table, 2)
