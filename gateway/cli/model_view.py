"""`kvgate model` for a person: what the model is, the arithmetic, and what fits."""

from __future__ import annotations

from collections.abc import Callable

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli.check_problems import counted, indented
from gateway.cli.check_view import size_text
from gateway.cli.model_arithmetic import POOL, arithmetic
from gateway.cli.model_report import Length, ModelReport
from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.steps import Step

__all__ = ["show_model"]

_KV_NAMES = {KvDtype.F32: "32 bit", KvDtype.F16: "16 bit", KvDtype.FP8: "fp8"}


def show_model(console: Console, made: ModelReport) -> None:
    """Everything about one model, on any width of terminal."""
    _identity(console, made)
    if made.plan is None:
        return
    console.print()
    if not made.found.described.shape.keeps_kv:
        console.print(Text("It keeps no KV cache: an encoder holds activations only while a request runs."))
        return
    _heading(console, "KV cache", _served(made))
    console.print(indented(_sequence(made), 2))
    console.print(indented(arithmetic(made.plan.steps), 2))
    if made.memory.pool is not None:
        console.print()
        _heading(console, "Room", _room_about(made))
        console.print(indented(arithmetic(_room(made), counts=True), 2))
        _warn_of_room(console, made)
    console.print()
    _heading(console, "Requests", _requests_about(made))
    console.print(indented(_lengths(made), 2))
    _after(console, made)


def _identity(console: Console, made: ModelReport) -> None:
    described, shape = made.found.described, made.found.described.shape
    line = Text.assemble((shape.id, "bold"), ("  " + described.architecture, "cyan") if described.architecture else "")
    console.print(line)
    facts = []
    if shape.params_total:
        facts.append(f"{_many(shape.params_total)} weights")
        if shape.is_moe:
            facts.append(
                f"{_many(shape.read_params)} read a token ({shape.experts_per_token} of {shape.experts} experts)"
            )
    facts.append(counted(shape.depth, "layer"))
    if shape.max_context:
        facts.append(f"window {shape.max_context:,}")
    if shape.draft_layers:
        facts.append(f"drafting head of {shape.draft_layers} layer{'s' if shape.draft_layers > 1 else ''}")
    console.print(indented(Text(", ".join(facts)), 2))
    if made.weights_bytes:
        exact = described.weights_exact and made.weights_format == described.weights_format
        about = "" if exact else ", estimated from their number"
        if not described.weights_format:
            about += "; --weights names another format"
        console.print(indented(Text(f"weights: {size_text(made.weights_bytes)} in {made.weights_format}{about}"), 2))
    if described.chat_template is not None or described.tokenizer:
        template = {True: "chat template: yes", False: "chat template: none", None: ""}[described.chat_template]
        tokenizer = f"tokenizer: {described.tokenizer}" if described.tokenizer else ""
        console.print(indented(Text(", ".join(part for part in (template, tokenizer) if part)), 2))
    console.print(indented(Text(_source(made), "dim"), 2))
    for caveat in described.caveats:
        console.print(indented(Text(f"! {caveat}", "yellow"), 2))
    if shape.confidence.is_low:
        console.print(indented(Text("! a guess: don't admit requests on it without the engine's figures", "yellow"), 2))


def _source(made: ModelReport) -> str:
    shape, found = made.found.described.shape, made.found
    if found.path is not None:
        return f"from {found.origin}: {found.path}"
    source = f": {shape.source}" if shape.source else ""
    return f"from {found.origin}, confidence {shape.confidence.value}{source}"


def _many(count: float) -> str:
    """A number of weights in billions or millions."""
    if count >= 1e12:
        return f"{count / 1e12:.2f} T"
    return f"{count / 1e9:.1f} B" if count >= 1e9 else f"{count / 1e6:.0f} M"


def _heading(console: Console, title: str, about: str) -> None:
    console.print(Text.assemble((title, "bold"), ("  " + about, "dim")))


def _served(made: ModelReport) -> str:
    deployment = made.deployment
    parts = [f"as {deployment.engine} keeps it", _KV_NAMES.get(deployment.kv_dtype, deployment.kv_dtype.name.lower())]
    if made.context:
        parts.append(f"context {made.context:,}")
    if deployment.tensor_parallel > 1:
        parts.append(f"tp {deployment.tensor_parallel}")
    if deployment.pipeline_parallel > 1:
        parts.append(f"pp {deployment.pipeline_parallel}")
    if deployment.engine in ("llama.cpp", "ollama"):
        parts.append(f"{deployment.slots} slot{'s' if deployment.slots > 1 else ''}")
    if deployment.draft_tokens:
        parts.append(f"{deployment.draft_tokens} drafted")
    return ", ".join(parts)


def _sequence(made: ModelReport) -> Text:
    """Bytes of one sequence over all devices, before an engine rounds it to blocks."""
    kv = made.found.described.shape.kv(made.deployment.kv_dtype, made.deployment.tensor_parallel)
    parts = []
    if kv.bytes_per_token:
        size = f"{kv.bytes_per_token:,.0f} B" if kv.bytes_per_token == int(kv.bytes_per_token) else ""
        size = size or f"{kv.bytes_per_token:,.2f} B"
        parts.append(f"{size} a token" + (f" ({size_text(kv.bytes_per_token)})" if kv.bytes_per_token >= 1024 else ""))
    if kv.window_bytes_per_token:
        window = f"{kv.window_bytes_per_token:,.0f} B for each of the last {kv.window:,} tokens"
        parts.append(f"{window} ({size_text(kv.window_bytes_per_token * kv.window)})")
    if kv.state_bytes:
        parts.append(f"{size_text(kv.state_bytes)} of state")
    where = ", on all devices together" if made.deployment.tensor_parallel > 1 else ""
    return Text.assemble("one sequence: ", (" + ".join(parts) or "nothing that grows", "bold"), where)


def _room_about(made: ModelReport) -> str:
    memory, deployment = made.memory, made.deployment
    if not memory.total:
        return "as given, on one device" if deployment.ranks > 1 else "as given"
    count = max(1, deployment.ranks)
    name = memory.device.id if memory.device and memory.device.known and memory.device.id != "memory" else "device"
    copies = f", {memory.copies} copies" if memory.copies > 1 else ""
    return f"on {count} x {name}{copies}" if count > 1 or copies else f"on one {name}"


def _room(made: ModelReport) -> list[Step]:
    memory, plan = made.memory, made.plan
    steps = []
    if memory.total:
        usable = int(memory.total * memory.budget)
        steps.append(Step("memory", f"{memory.budget:.0%} of {size_text(memory.total)}", usable, "bytes"))
        steps.append(Step("weights", made.weights_format, -memory.weights, "bytes"))
        steps.append(Step("working space", "activations, graphs, libraries", -memory.working, "bytes"))
    pool = memory.pool or 0
    steps.append(Step(POOL, "what is left, on each device" if made.deployment.ranks > 1 else "", pool, "bytes"))
    if plan is not None and pool:
        steps += plan.steps_in(pool)
    return steps


def _warn_of_room(console: Console, made: ModelReport) -> None:
    memory, plan = made.memory, made.plan
    if memory.total and not made.weights_bytes:
        console.print(indented(Text("! the size of the weights is not known: say --weights", "yellow"), 2))
    elif not memory.pool:
        console.print(indented(Text("! the weights leave nothing for a KV cache", "yellow"), 2))
    elif plan is not None and plan.allocated_bytes > memory.pool:
        most = plan.capacity_tokens(memory.pool)
        hint = f"; it starts with --context {most // 256 * 256}" if most >= 256 else ""
        needs = f"! it takes {size_text(plan.allocated_bytes)} at start, more than there is{hint}"
        console.print(indented(Text(needs, "yellow"), 2))


def _requests_about(made: ModelReport) -> str:
    where = " on one device" if made.deployment.ranks > 1 else ""
    return f"what each takes of the pool{where}" + ("" if made.memory.pool is None else ", how many fit")


def _lengths(made: ModelReport) -> Table:
    columns: list[tuple[str, Callable[[Length], str]]] = [("tokens", lambda one: f"{one.tokens:,}")]
    if any(one.stores != one.takes for one in made.lengths):
        columns.append(("fills", lambda one: size_text(one.stores)))
    columns.append(("takes", lambda one: size_text(one.takes)))
    if any(one.admitted != one.takes for one in made.lengths):
        columns.append(("to be admitted", lambda one: size_text(one.admitted)))
    if any(one.everywhere != one.takes for one in made.lengths):
        columns.append(("all devices", lambda one: size_text(one.everywhere)))
    if made.memory.pool is not None:
        columns.append(("fit", lambda one: f"{one.fit:,}"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), header_style="dim")
    for name, _ in columns:
        table.add_column(name, justify="right")
    for one in made.lengths:
        table.add_row(*(cell(one) for _, cell in columns))
    return table


def _after(console: Console, made: ModelReport) -> None:
    plan = made.plan
    if plan is not None and plan.block > 1:
        line = f"prefixes are shared in whole blocks of {plan.block:,} tokens"
        console.print(indented(Text(line, "dim"), 2))
    if any(one.admitted != one.takes for one in made.lengths):
        line = "windows also hold the tokens of a prefill under way, until it settles"
        console.print(indented(Text(line, "dim"), 2))
    if made.memory.pool is None:
        console.print(indented(Text("say --pool, --memory or --device to see how many fit", "dim"), 2))
