"""How vLLM sorts a model's layers into groups that share one block pool (read from 0.33, checked on its logs)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gateway.core.kv.deployment import Deployment
from gateway.core.kv.hybrid_paging import hybrid_block
from gateway.core.kv.layer_spec import Kind, LayerSpec
from gateway.core.kv.packed_paging import packed_groups
from gateway.core.kv.page_group import PageGroup

__all__ = ["BLOCK", "LATENT_BLOCK", "vllm_groups"]

BLOCK = 16
"""Tokens per block where no attention kernel asks for more."""
LATENT_BLOCK = 64
"""Tokens per block of latent attention: what FlashMLA's kernels need."""
_CLOSE = 1.5
"""If the largest class of layers is under this many times the smallest, it sets the group size, not the smallest."""


def vllm_groups(specs: Sequence[LayerSpec], deployment: Deployment) -> tuple[PageGroup, ...]:
    """Groups of equal page bytes, save for packed models, whose groups have pages of their own."""
    if any(spec.compressed for spec in specs):
        return packed_groups(specs, deployment)
    block = base_block(specs, deployment)
    if len({(spec.kind, spec.window) for spec in specs}) == 1 and specs[0].kind is not Kind.STATE:
        return (_one_group(specs, block, deployment),)
    return _equal_groups(specs, block, deployment)


def base_block(specs: Sequence[LayerSpec], deployment: Deployment) -> int:
    """Tokens per block before any growth; a state's page makes the blocks of hybrids grow to it."""
    block = deployment.block or (LATENT_BLOCK if any(spec.latent for spec in specs) else BLOCK)
    state = max((spec.state_bytes for spec in specs), default=0)
    attention = max((spec.row_bytes for spec in specs if spec.kind is Kind.GROWING), default=0.0)
    return max(block, hybrid_block(state, math.ceil(attention))) if state and attention else block


def state_pages(deployment: Deployment) -> int:
    """Pages a request holds in each group of recurrent layers: the last state, one for the next with prefix caching."""
    return (2 if deployment.prefix_caching else 1) + deployment.draft_tokens


def _one_group(specs: Sequence[LayerSpec], block: int, deployment: Deployment) -> PageGroup:
    # Layers that need the same number of blocks share a table even where their rows differ in size.
    parts = [(-(-spec.layers // deployment.pipeline_parallel), spec.page_bytes(block)) for spec in specs]
    return PageGroup(
        specs[0].kind,
        " + ".join(spec.name for spec in specs),
        max(layers for layers, _ in parts),
        block,
        sum(layers * page for layers, page in parts),
        specs[0].window,
    )


def _equal_groups(specs: Sequence[LayerSpec], block: int, deployment: Deployment) -> tuple[PageGroup, ...]:
    pages = [spec.state_bytes or spec.page_bytes(block) for spec in specs]
    page = max(pages)
    counts = [spec.layers for spec in specs]
    size = max(counts) if max(counts) < _CLOSE * min(counts) else min(counts)
    on_rank = -(-size // deployment.pipeline_parallel)
    groups = []
    for spec, own in zip(specs, pages, strict=True):
        # Smaller pages take more tokens a block where that comes out even; else they are padded.
        wider = block * (page // own) if spec.kind is not Kind.STATE and page % own == 0 else block
        groups.append(
            PageGroup(
                spec.kind,
                spec.name,
                on_rank,
                wider,
                on_rank * page,
                spec.window,
                state_pages(deployment) if spec.kind is Kind.STATE else 0,
                -(-spec.layers // size),
            )
        )
    return tuple(groups)
