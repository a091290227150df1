"""How vLLM packs layers whose cache rows differ in size into one page (DeepSeek V4)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from gateway.core.kv.deployment import Deployment
from gateway.core.kv.layer_spec import Kind, LayerSpec
from gateway.core.kv.page_group import PageGroup

__all__ = ["packed_groups", "packed_page"]

_GRANULE = 576
_GROWING_BLOCK = 256
"""Tokens per block of the compressed layers where `--block-size` isn't given."""
_WINDOW_BLOCK = 64
_COMPRESSOR_BLOCK = {8: 4, 128: 8}
"""Tokens per block of the inputs that a compressor still has to fold, by how many it keeps."""


def packed_page(rows: int, row_bytes: int) -> int:
    """Bytes of one layer's part of a page: `rows` rows, rounded up to 576 bytes. A page is the sum over its layers."""
    return -(-rows * row_bytes // _GRANULE) * _GRANULE


def packed_groups(specs: Sequence[LayerSpec], deployment: Deployment) -> tuple[PageGroup, ...]:
    """One group for each kind of block table, with page bytes of its own; a pool block takes those of the widest.

    Every window's layers are split into groups of about the same depth, chosen so that least is padded.
    """
    buckets: dict[tuple[Kind, int, int], list[LayerSpec]] = defaultdict(list)
    growing = deployment.block or _GROWING_BLOCK
    for spec in specs:
        buckets[spec.kind, spec.window, growing if spec.kind is Kind.GROWING else _window_block(spec)].append(spec)
    repeats = _repeats(buckets.values())
    stages = deployment.pipeline_parallel
    return tuple(
        _group(kind, window, block, bucket, repeats, stages) for (kind, window, block), bucket in buckets.items()
    )


def _group(kind: Kind, window: int, block: int, bucket: list[LayerSpec], repeats: int, stages: int) -> PageGroup:
    depth = max(spec.layers for spec in bucket)
    count = -(-depth // repeats) if repeats and _even(bucket) else 1
    parts = count * stages
    pages = [
        (spec.on_stage(parts), packed_page(-(-block // spec.tokens_per_row), math.ceil(spec.row_bytes)))
        for spec in bucket
    ]
    return PageGroup(
        kind,
        " + ".join(dict.fromkeys(spec.name for spec in bucket)),
        -(-depth // parts),
        block,
        sum(layers * page for layers, page in pages),
        window,
        count=count,
        formula=" + ".join(f"{layers} layers x {page} B" for layers, page in pages),
    )


def _window_block(spec: LayerSpec) -> int:
    if spec.name.startswith("compressor"):
        return _COMPRESSOR_BLOCK.get(spec.window, _WINDOW_BLOCK)
    return _WINDOW_BLOCK


def _even(bucket: Sequence[LayerSpec]) -> bool:
    return len({spec.layers for spec in bucket}) == 1


def _repeats(buckets: Iterable[Sequence[LayerSpec]]) -> int:
    """Layers a group such that rounding every even bucket up to whole groups pads least; the larger of equals.

    0 if no bucket mixes sizes: then nothing need be split.
    """
    even = [bucket for bucket in buckets if _even(bucket)]
    least = max((bucket[0].layers for bucket in even if len(bucket) > 1), default=0)
    if not least:
        return 0
    depths = [bucket[0].layers for bucket in even]
    return min(range(least, max(depths) + 1), key=lambda size: (sum(-depth % size for depth in depths), -size))
