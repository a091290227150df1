"""How vLLM pages models that mix attention with recurrent layers: attention blocks grown to the state's page.

Prefix hits come in whole blocks, so these sizes (784 to 2096 tokens, not 16) decide whether a shared prompt start
saves anything. Read from vLLM 0.33 and checked against published logs.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HybridPaging", "hybrid_block"]

_GRANULE = 16


def hybrid_block(state_page: int, attention_bytes_per_token: int) -> int:
    """Tokens per block such that an attention page holds at least a state page, in steps of 16 tokens.

    `state_page` bytes of one recurrent layer's state, `attention_bytes_per_token` bytes of one token in one attention
    layer; both on one rank.
    """
    return -(-state_page // (attention_bytes_per_token * _GRANULE)) * _GRANULE


@dataclass(frozen=True, slots=True)
class HybridPaging:
    """The block pool of one hybrid model on one rank.

    Layers of unlike kinds form groups of `group_layers` layers each that share one pool; a block has the same bytes in
    every group. `state_groups` of them are recurrent; with prefix caching each holds 2 pages a request, else 1.
    """

    state_page: int
    attention_bytes_per_token: int
    group_layers: int
    state_groups: int
    prefix_caching: bool = True

    @property
    def block(self) -> int:
        """Tokens per attention block, which is also the unit of prefix hits."""
        return hybrid_block(self.state_page, self.attention_bytes_per_token)

    @property
    def block_bytes(self) -> int:
        """Bytes of one pool block over the layers of its group; state pages are padded up to it."""
        return self.group_layers * self.block * self.attention_bytes_per_token

    def pool_blocks(self, pool_bytes: int) -> int:
        """Blocks in a pool of `pool_bytes` bytes on this rank."""
        return pool_bytes // self.block_bytes

    def request_blocks(self, tokens: int) -> int:
        """Blocks that one request of `tokens` tokens holds."""
        pages = 2 if self.prefix_caching else 1
        return -(-tokens // self.block) + self.state_groups * pages

    def capacity_tokens(self, pool_bytes: int, max_model_len: int) -> int:
        """The figure vLLM logs as "GPU KV cache size": requests of full length that fit, times their length.

        It changes with `max_model_len`, so pool bytes over this figure is not a price per token.
        """
        return int(self.pool_blocks(pool_bytes) / self.request_blocks(max_model_len) * max_model_len)
