"""Number formats of weights and KV caches, and the bytes a weight takes in each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from gateway.config.sizes import Unreadable

__all__ = ["KV_FORMATS", "WEIGHT_BYTES", "KvFormat", "WeightFormat"]


def _dtype(known: frozenset[str]) -> BeforeValidator:
    def check(value: Any) -> Any:
        if isinstance(value, str) and value.lower() in known:
            return value.lower()
        raise Unreadable("is a number format that is not known", f"one of {', '.join(sorted(known))}")

    return BeforeValidator(check, json_schema_input_type=Literal[tuple(sorted(known))])


WEIGHT_BYTES = {
    "auto": 0.0, "fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "q8_0": 1.0625, "q6_k": 0.82,
    "q5_k_m": 0.71, "q4_k_m": 0.605, "q4_0": 0.5625, "iq4_xs": 0.53, "awq": 0.56, "gptq": 0.56, "int4": 0.56,
    "nvfp4": 0.5625, "mxfp4": 0.53125, "q3_k_m": 0.49, "q2_k": 0.37,
}  # fmt: skip
"""Bytes a weight as stored, scales included (ggml block formats; groups of 128 with fp16 scales for AWQ and GPTQ;
blocks of 16 for NVFP4 and 32 for MXFP4). The k-quants are whole-file averages of the mixed layers."""

KV_FORMATS = frozenset({"auto", "fp16", "bf16", "fp8", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"})

WeightFormat = Annotated[str, _dtype(frozenset(WEIGHT_BYTES))]
KvFormat = Annotated[str, _dtype(KV_FORMATS)]
