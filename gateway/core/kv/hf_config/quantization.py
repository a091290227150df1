"""What the weights of a config.json weigh: the number format of its quantisation, and which part is left in 16 bit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.hf_config.weights import Weights
from gateway.core.kv.values import Values

__all__ = ["kv_format", "weights_bytes", "weights_format"]

_BITS = {
    "fp32": 32.0, "fp16": 16.0, "bf16": 16.0, "fp8": 8.0, "int8": 8.0, "nvfp4": 4.5, "mxfp4": 4.25, "mxfp8": 8.25,
    "int4": 4.25, "awq": 4.25, "gptq": 4.25,
}  # fmt: skip
"""Bits a quantised weight, scales included: one 8-bit scale for 16 (NVFP4) or 32 (MXFP4), a 16-bit scale and a zero
point for 128 (AWQ, GPTQ)."""
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
_EXPERTS_ONLY = frozenset(("mxfp4",))
"""Formats that in practice are used for experts alone."""


def weights_format(values: Values) -> str:
    """The number format of most weights: `bf16`, `fp8`, `nvfp4`, `awq`..., or `mixed` where layers differ."""
    stated = values.get("quantization_config", "quantization")
    if not isinstance(stated, Mapping):
        return _DTYPES.get(values.text("torch_dtype", "dtype"), "bf16")
    algorithm = str(stated.get("quant_algo") or "").casefold()
    method = str(stated.get("quant_method") or "").casefold()
    if algorithm == "mixed_precision":
        return "mixed"
    for name in (algorithm, method):
        for known in ("nvfp4", "mxfp4", "mxfp8", "fp8", "awq", "gptq", "int8", "int4"):
            if known in name:
                return known
    if "w4a" in algorithm:
        return "int4"
    return _from_bits(stated)


def _from_bits(stated: Mapping[str, Any]) -> str:
    if stated.get("load_in_4bit") or stated.get("bits") == 4:
        return "int4"
    if stated.get("load_in_8bit") or stated.get("bits") == 8:
        return "int8"
    groups = stated.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    weights = first.get("weights") if isinstance(first, Mapping) else None
    if isinstance(weights, Mapping):
        floating = weights.get("type") == "float"
        known = {(4, True): "nvfp4", (4, False): "int4", (8, True): "fp8", (8, False): "int8"}
        bits = weights.get("num_bits")
        return known.get((bits, floating), "bf16") if isinstance(bits, int) else "bf16"
    return "bf16"


def weights_bytes(values: Values, weights: Weights, name: str) -> int:
    """An estimate of all weights in that format: embedding tables in 16 bit; 0 where layers have unlike formats."""
    if name == "mixed" or name not in _BITS:
        return 0
    packed = weights.routed if name in _EXPERTS_ONLY and weights.routed else weights.total - weights.embedding
    experts = str(values.get("expert_dtype", "quantization_config.expert_dtype") or "").casefold()
    if re.fullmatch(r"fp4|mxfp4", experts) and name == "fp8":
        packed -= weights.routed
        small = weights.routed * _BITS["mxfp4"] / 8
    else:
        small = 0.0
    rest = weights.total - packed - (weights.routed if small else 0.0)
    bits = _BITS[name]
    return round(packed * bits / 8 + small + rest * max(2.0, bits / 8 if bits > 16 else 2.0))


def kv_format(values: Values) -> KvDtype | None:
    """The KV cache format that the checkpoint asks for (its scales are calibrated), or None."""
    scheme = values.get("quantization_config.kv_cache_scheme")
    if isinstance(scheme, Mapping) and scheme.get("num_bits") == 8 and scheme.get("type") == "float":
        return KvDtype.FP8
    stated = values.text("quantization_config.kv_cache_quant_algo", "quantization.kv_cache_quant_algo")
    return KvDtype.FP8 if stated.casefold() == "fp8" else None
