"""How vLLM sizes the blocks of models that mix attention with recurrent layers: grown to the state's page.

Prefix hits come in whole blocks, so these sizes (784 to 2096 tokens, not 16) decide whether a shared prompt start
saves anything. Read from vLLM 0.33 and checked against published logs.
"""

from __future__ import annotations

__all__ = ["hybrid_block"]


def hybrid_block(state_page: int, attention_bytes_per_token: int, granule: int = 16) -> int:
    """Tokens per block such that an attention page holds at least a state page, in steps of `granule` tokens.

    `state_page` bytes of one recurrent layer's state, `attention_bytes_per_token` bytes of one token in one attention
    layer; both on one rank. The granule is what the attention kernel needs: 16, or 128 for latent attention.
    """
    return -(-state_page // (attention_bytes_per_token * granule)) * granule
