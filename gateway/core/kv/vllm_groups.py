"""How vLLM sorts a model's layers into groups that share one block pool (read from 0.33, checked on its logs)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gateway.core.kv.deployment import Deployment
from gateway.core.kv.hybrid_paging import hybrid_block
from gateway.core.kv.layer_spec import Kind, LayerSpec
from gateway.core.kv.packed_paging import packed_groups
from gateway.core.kv.page_group import PageGroup

__all__ = ["base_block", "vllm_groups"]

_BLOCK = 16
"""Tokens per block where no attention kernel asks for more."""
_LATENT_BLOCK = 64
"""Tokens per block of latent attention: what FlashMLA's kernels need."""
_LATENT_GRANULE = 128
"""Steps in which the blocks of a hybrid with latent attention grow."""
_CLOSE = 1.5
"""If the largest class of layers is under this many times the smallest, it sets the group size, not the smallest."""


def vllm_groups(specs: Sequence[LayerSpec], deployment: Deployment) -> tuple[PageGroup, ...]:
    """Groups of equal page bytes, save for packed models, whose groups have pages of their own."""
    if not specs:
        return ()
    if any(spec.compressed for spec in specs):
        return packed_groups(specs, deployment)
    block = base_block(specs, deployment)
    if len({(spec.kind, spec.window) for spec in specs}) == 1 and specs[0].kind is not Kind.STATE:
        return (_one_group(specs, block, deployment),)
    return _equal_groups(specs, block, deployment)


def base_block(specs: Sequence[LayerSpec], deployment: Deployment) -> int:
    """Tokens per block: the kernel's or the configured one, in hybrids grown until it holds a state's page."""
    latent = any(spec.latent for spec in specs)
    block = deployment.block or (_LATENT_BLOCK if latent else _BLOCK)
    state = max((spec.state_bytes for spec in specs), default=0)
    row = max((spec.row_bytes for spec in specs if spec.kind is Kind.GROWING), default=0.0)
    if not state or not row:
        return block
    granule = _LATENT_GRANULE if latent else _BLOCK
    return max(block, hybrid_block(state, math.ceil(row), granule))


def state_pages(deployment: Deployment) -> int:
    """Pages a request holds in each group of recurrent layers: its state, the one to be kept, one a proposed token."""
    return (2 if deployment.prefix_caching else 1) + deployment.draft_tokens


def _one_group(specs: Sequence[LayerSpec], block: int, deployment: Deployment) -> PageGroup:
    # Layers that need the same number of blocks share a table even where their rows differ in size.
    parts = [(spec.on_stage(deployment.pipeline_parallel), spec.page_bytes(block)) for spec in specs]
    return PageGroup(
        specs[0].kind,
        " + ".join(spec.name for spec in specs),
        max(layers for layers, _ in parts),
        block,
        sum(layers * page for layers, page in parts),
        specs[0].window,
        formula=" + ".join(f"{layers} layers x {page} B" for layers, page in parts),
    )


def _equal_groups(specs: Sequence[LayerSpec], block: int, deployment: Deployment) -> tuple[PageGroup, ...]:
    pages = [spec.state_bytes or spec.page_bytes(block) for spec in specs]
    page = max(pages)
    counts = [spec.layers for spec in specs]
    size = max(counts) if max(counts) < _CLOSE * min(counts) else min(counts)
    on_stage = -(-size // deployment.pipeline_parallel)
    groups = []
    for spec, own in zip(specs, pages, strict=True):
        # Smaller pages take more tokens a block where that comes out even; else they are padded.
        wider = block * (page // own) if spec.kind is not Kind.STATE and page % own == 0 else block
        count = -(-spec.layers // size)
        held = state_pages(deployment) if spec.kind is Kind.STATE else 0
        groups.append(
            PageGroup(
                spec.kind,
                spec.name,
                on_stage,
                wider,
                on_stage * page,
                spec.window,
                held,
                count,
                padding=count * size - spec.layers,
                formula=f"{on_stage} layers x {page} B",
            )
        )
    return tuple(groups)
