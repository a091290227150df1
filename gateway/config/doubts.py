"""Figures that admission must not rest on without saying so: entries of low confidence, layouts that nobody knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.config.offers import Serving
from gateway.core.backend import Backend

__all__ = ["doubts", "in_doubt"]


def in_doubt(one: Serving) -> bool:
    """Whether the KV cache of this model is worked out from an entry of low confidence, or assumed."""
    source = dict(one.offer.sources).get("kv")
    if source == "assumed":
        return True
    return source == "catalogue" and one.shape is not None and one.shape.confidence.is_low


def doubts(backend: Backend, served: Sequence[Serving], pool_source: str) -> Iterator[tuple[str, str]]:
    """What is in doubt, in a sentence, and what to do about it; `pool_source` is where the pool's size comes from."""
    if backend.off_premises:
        return  # its memory is not ours to fill
    device = backend.device
    counted = pool_source not in ("engine", "declared")
    if device.confidence.is_low:
        yield (
            f"the figures of {device.id} are of {device.confidence} confidence ({device.source})",
            "write its numbers under `device:`, or an entry of your own in `catalogue: devices`",
        )
    for one in served:
        if not in_doubt(one):
            continue
        shape, name = one.shape, one.offer.model
        if shape is None or not shape.kv_known:
            what = f"how {name} lays out its KV cache is not known"
            if shape is not None and shape.source:
                what += f" (the catalogue's entry is {shape.confidence}: {shape.source})"
        else:
            trust = f"{shape.confidence} confidence ({shape.source})"
            what = f"the KV cache of {name} is worked out from an entry of {trust}"
        if not counted:
            what += f"; room is counted in the tokens of {'its engine' if pool_source == 'engine' else 'this file'}"
        yield what, "give `kv_bytes`, or `kv_pool` in tokens" if counted else "give `kv_bytes` for right sizes in bytes"
