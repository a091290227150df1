"""A Hugging Face config.json (a mapping, as a JSON reader gives it) to a model's shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.core.kv.described import DescribedModel, ModelFileError, gathered
from gateway.core.kv.hf_config.attention import HEADS, HIDDEN, layers_of
from gateway.core.kv.hf_config.class_defaults import left_to_class
from gateway.core.kv.hf_config.context import max_context
from gateway.core.kv.hf_config.families import DEFAULTS, KNOWN
from gateway.core.kv.hf_config.nesting import depth_of, text_model
from gateway.core.kv.hf_config.quantization import kv_format, weights_bytes, weights_format
from gateway.core.kv.hf_config.weights import VOCABULARY, weights_of
from gateway.core.kv.model import ModelShape
from gateway.core.kv.values import Values

__all__ = ["model_from_config"]

_DRAFTING = (
    "num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", "mtp_transformer_layers", "num_mtp_modules",
)  # fmt: skip


def model_from_config(config: Mapping[str, Any], *, name: str = "") -> DescribedModel:
    """The model that a config.json describes; `name` is its id if the file itself has none.

    A kind of model that isn't known is read as full attention if its keys are the ordinary ones, and `caveats` says so.
    Raises ModelFileError naming the key that is missing, wrong, or contradicts another.
    """
    if not isinstance(config, Mapping):
        raise ModelFileError("a config.json must be one JSON object")
    own = text_model(config)
    family = str(own.get("model_type") or config.get("model_type") or "")
    if family == "deepseek_ref":
        family = "deepseek_v4"
    assumed = left_to_class(own, config, family)
    values = Values(own, config, {**DEFAULTS.get(family, {}), **assumed})
    context = max_context(values)
    attention = layers_of(values, context)
    weights = weights_of(values, attention)
    named = weights_format(values)
    shape = ModelShape(
        id=name or str(config.get("_name_or_path") or family or "unnamed"),
        layers=gathered(attention.layers),
        family=family,
        params_total=weights.total,
        params_active=weights.read,
        read_params=weights.read,
        expert_params=weights.routed,
        experts=weights.experts,
        experts_per_token=weights.per_token,
        max_context=context,
        hidden=values.positive(*HIDDEN),
        depth=depth_of(values),
        vocab=values.whole(*VOCABULARY, default=0),
        draft_layers=_draft_layers(values),
        query_heads=values.largest(*HEADS),
        source="its config.json",
    )
    caveats = attention.caveats
    if assumed:
        listed = ", ".join(f"{key} {value}" for key, value in assumed.items())
        caveats = (f"not in the file, so as transformers' class for {family} has it: {listed}", *caveats)
    if family not in KNOWN:
        caveats = (f"{family or 'a model without model_type'} is not a known kind: read as its keys suggest", *caveats)
    return DescribedModel(
        shape,
        architecture=_architecture(config, family),
        weights_bytes=weights_bytes(values, weights, named),
        weights_format=named,
        kv_dtype=kv_format(values),
        caveats=caveats,
    )


def _architecture(config: Mapping[str, Any], family: str) -> str:
    listed = config.get("architectures")
    return str(listed[0]) if isinstance(listed, list) and listed else family or "not named"


def _draft_layers(values: Values) -> int:
    return values.whole(*_DRAFTING, default=0)
