"""How long a silent engine is waited for where the file does not say."""

from __future__ import annotations

__all__ = ["ANSWER_FLOOR", "PATIENCE", "PATIENCE_FLOOR", "first_token_limit", "whole_answer_limit"]

PATIENCE = 10.0
"""An engine may take this many times the predicted seconds to its first token before it counts as silent."""
PATIENCE_FLOOR = 120.0
"""Seconds; no engine is given up sooner, unless the file says so."""
ANSWER_FLOOR = 600.0
"""Seconds for an answer that comes in one piece, whose first byte is its last."""


def first_token_limit(predicted_ttft: float) -> float:
    """Seconds from sending a request to its first token."""
    return max(PATIENCE_FLOOR, PATIENCE * predicted_ttft)


def whole_answer_limit(predicted_output: int, predicted_tpot: float) -> float:
    """Seconds that are added for the generation of an answer that isn't streamed."""
    return max(ANSWER_FLOOR, PATIENCE * predicted_output * predicted_tpot)
