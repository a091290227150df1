"""What one token and one state take in all layers of the fullest pipeline stage, as SGLang's pools are divided."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.core.kv.layer_spec import Kind, LayerSpec

__all__ = ["stage_bytes"]

_WINDOW_PAGE = 128
"""Tokens of a window page of DeepSeek V4; a compressor keeps its inputs once a page."""


def stage_bytes(specs: Sequence[LayerSpec], stages: int, standing: int) -> tuple[float, float, int]:
    """Bytes of a token in the growing layers, of one in those with a window, and of a state, on one rank.

    `standing`: drafting layers of DeepSeek V4, which have their window whether they run or not.
    """
    growing, windowed, state = 0.0, 0.0, 0
    for spec in specs:
        layers = spec.on_stage(stages)
        match spec.kind:
            case Kind.GROWING:
                growing += layers * spec.token_bytes
            case Kind.STATE:
                state += layers * spec.state_bytes
            case _ if spec.name.startswith("compressor"):
                windowed += layers * spec.token_bytes * spec.window / _WINDOW_PAGE
            case _ if spec.compressed:
                windowed += (layers + standing) * spec.token_bytes
            case _:
                windowed += layers * spec.token_bytes
    return growing, windowed, state
