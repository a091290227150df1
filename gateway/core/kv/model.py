"""A model as the gateway needs it: attention layers for the KV cache, parameter counts for the speed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.core.confidence import Confidence
from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.grouped import FullGqa
from gateway.core.kv.latent import Mla
from gateway.core.kv.layers import AttentionLayers
from gateway.core.kv.shape import KvShape

__all__ = ["ModelShape"]


@dataclass(frozen=True, slots=True)
class ModelShape:
    """One entry of the model catalogue. Parameter counts are numbers of weights, 0.0 where not known.

    `read_params`: weights read to decode one token, input embedding excluded. `expert_params`: weights of all routed
    experts together (0.0 for a dense model). `draft_layers`: layers of a built-in drafting head (MTP). `query_heads`:
    of a layer, 0 where not known.
    `kv_known` is false where the attention layout is not published; `kv` then refuses to guess. `source`: where the
    figures come from, in words; `confidence`: how far to trust them.
    """

    id: str
    layers: tuple[AttentionLayers, ...]
    aliases: tuple[str, ...] = ()
    family: str = ""
    params_total: float = 0.0
    params_active: float = 0.0
    read_params: float = 0.0
    expert_params: float = 0.0
    experts: int = 0
    experts_per_token: int = 0
    max_context: int = 0
    hidden: int = 0
    depth: int = 0
    vocab: int = 0
    draft_layers: int = 0
    query_heads: int = 0
    kv_known: bool = True
    source: str = ""
    confidence: Confidence = Confidence.HIGH

    @property
    def is_moe(self) -> bool:
        """Whether tokens are routed to a part of the experts."""
        return self.experts > self.experts_per_token > 0

    @property
    def keeps_kv(self) -> bool:
        """False for encoder-only models, which hold no cache at all."""
        return self.kv(KvDtype.F16).bytes(1) > 0

    def kv(self, dtype: KvDtype = KvDtype.F16, tp: int = 1, *, drafting: bool = False) -> KvShape:
        """KV cache of one sequence, summed over all `tp` ranks with the copies that tensor parallelism makes.

        `drafting` adds the cache of the built-in drafting head: its layers cache like the growing ones.
        Raises ValueError if the layout of this model is not known.
        """
        if not self.kv_known:
            raise ValueError(f"the KV layout of {self.id} is not known: give its bytes per token")
        total = KvShape()
        for layers in self.layers:
            total = total + layers.shape(dtype, tp)
        if drafting and self.draft_layers:
            for layers in self.layers:
                if isinstance(layers, FullGqa | Mla):
                    total = total + replace(layers, layers=self.draft_layers).shape(dtype, tp)
                    break
        return total
