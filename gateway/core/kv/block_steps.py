"""vLLM's arithmetic line by line: layers, block, groups, pool block, one request of full length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.core.kv.deployment import Deployment
from gateway.core.kv.layer_spec import Kind, LayerSpec
from gateway.core.kv.page_group import PageGroup
from gateway.core.kv.steps import Step, layer_steps

__all__ = ["block_steps"]


def block_steps(
    specs: Sequence[LayerSpec], groups: Sequence[PageGroup], deployment: Deployment, context: int
) -> tuple[Step, ...]:
    """What a person would write down, from a layer to a request of `context` tokens."""
    if not groups:
        return (Step("KV cache", "no layer keeps anything", 0, "bytes"),)
    return (*layer_steps(specs), *_paging(specs, groups), *_request(groups, deployment, context))


def _paging(specs: Sequence[LayerSpec], groups: Sequence[PageGroup]) -> Iterator[Step]:
    state = max((spec.state_bytes for spec in specs), default=0)
    row = max((spec.row_bytes for spec in specs if spec.kind is Kind.GROWING), default=0.0)
    if state and row:
        block = next(group.block for group in groups if group.kind is Kind.GROWING)
        yield Step("block", f"{state} / {row:.0f}, rounded up to whole kernel blocks", block, "tokens")
    for group in groups:
        holds = "a state" if group.kind is Kind.STATE else f"{group.block} tokens"
        alike = f", {group.count} groups alike" if group.count > 1 else ""
        padded = f" with {group.padding} layers of padding" if group.padding else ""
        yield Step(f"block of {group.name}", f"{group.formula} for {holds}{alike}{padded}", group.page_bytes, "bytes")
    if len({group.page_bytes for group in groups}) > 1:
        yield Step("pool block", "the widest group's", max(group.page_bytes for group in groups), "bytes")


def _request(groups: Sequence[PageGroup], deployment: Deployment, context: int) -> Iterator[Step]:
    in_flight = deployment.in_flight
    for group in groups:
        yield Step(
            f"blocks of {group.name}",
            _needed(group, context, in_flight),
            group.admitted(context, in_flight),
            "blocks",
        )
    need = sum(group.admitted(context, in_flight) for group in groups)
    held = sum(group.held(context) for group in groups)
    widest = max(group.page_bytes for group in groups)
    yield Step(f"a request of {context} tokens on one rank", f"{need} x {widest}", need * widest, "bytes")
    if held != need:
        yield Step("the same after its prefill", f"{held} x {widest}", held * widest, "bytes")


def _needed(group: PageGroup, tokens: int, in_flight: int) -> str:
    times = f"{group.count} x " if group.count > 1 else ""
    match group.kind:
        case Kind.STATE:
            return f"{times}{group.state_pages} states"
        case Kind.SLIDING:
            return f"{times}(ceil(min({group.window} - 1 + {in_flight}, {tokens}) / {group.block}) + 1)"
        case Kind.CHUNKED:
            return f"{times}ceil(min({group.window} + {in_flight}, {tokens}) / {group.block})"
        case Kind.GROWING:
            return f"{times}ceil({tokens} / {group.block})"
