"""How long a silent engine is waited for where the file does not say."""

from __future__ import annotations

__all__ = ["PATIENCE", "PATIENCE_FLOOR", "first_token_limit", "whole_answer_limit"]

PATIENCE = 10.0
"""An engine may take this many times the predicted seconds to its first token before it counts as silent."""
PATIENCE_FLOOR = 120.0
"""Seconds; no engine is given up sooner, unless the file says so."""
SLOW_TOKEN = 0.25
"""Seconds a token of the slowest engines in use; an answer in one piece is given that, whatever was predicted."""
ANSWER_FLOOR, ANSWER_CEILING = 30.0, 600.0
"""Seconds between which that allowance lies."""


def first_token_limit(predicted_ttft: float) -> float:
    """Seconds from sending a request to its first token."""
    return max(PATIENCE_FLOOR, PATIENCE * predicted_ttft)


def whole_answer_limit(tokens: int, predicted_tpot: float) -> float:
    """Seconds for an answer of at most `tokens` tokens that comes in one piece: its first byte is its last."""
    allowance = min(max(ANSWER_FLOOR, SLOW_TOKEN * tokens), ANSWER_CEILING)
    return max(allowance, PATIENCE * tokens * predicted_tpot)
