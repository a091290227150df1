"""Every model of the catalogue against the figures that stand beside its layers."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import pytest
from ruamel.yaml import YAML

from gateway.core.kv.catalog_entry import attention_from_catalog, model_shape_from_catalog
from gateway.core.kv.dtype import KvDtype


@cache
def entries() -> list[dict[str, Any]]:
    text = resources.files("gateway.config.catalog").joinpath("models.yaml").read_text("utf-8")
    return list(YAML(typ="safe").load(text)["models"])


WITH_FIGURES = [entry for entry in entries() if "kv" in entry]
WITH_EXPERTS = [entry for entry in entries() if "calc_total_b" in entry and entry.get("moe")]


def test_the_catalogue_has_figures_for_most_models() -> None:
    assert len(WITH_FIGURES) > 55


@pytest.mark.parametrize("entry", WITH_FIGURES, ids=lambda entry: str(entry["id"]))
def test_bytes_of_a_sequence(entry: dict[str, Any]) -> None:
    model, figures = model_shape_from_catalog(entry), entry["kv"]
    for dtype, name in ((KvDtype.F16, "fp16"), (KvDtype.FP8, "fp8")):
        shape = model.kv(dtype)
        assert shape.bytes_per_token == pytest.approx(figures[f"bytes_per_token_{name}"], abs=0.01)
        assert shape.window_bytes_per_token * shape.window == figures.get(f"window_cap_bytes_{name}", 0)
        assert shape.state_bytes == figures["state_bytes_per_sequence"]
    for tokens, size in figures["one_sequence_bytes_fp16"].items():
        assert model.kv(KvDtype.F16).bytes(tokens) == size


@pytest.mark.parametrize("entry", WITH_EXPERTS, ids=lambda entry: str(entry["id"]))
def test_expert_weights(entry: dict[str, Any]) -> None:
    # Three matrices an expert and layer; the catalogue doesn't say which first layers are dense, so up to 6 % fewer.
    model, moe = model_shape_from_catalog(entry), entry["moe"]
    every_layer = 3.0 * entry["layers"] * moe["experts"] * entry["hidden"] * moe["expert_ff"]
    assert 0.94 * every_layer <= model.expert_params <= 1.001 * every_layer


def test_every_entry_becomes_a_model() -> None:
    models = [model_shape_from_catalog(entry) for entry in entries()]
    assert len({model.id for model in models}) == len(models)
    assert not next(model for model in models if model.id == "GLM-5.3-Flash").kv_known
    encoder = next(model for model in models if model.id == "bge-m3")
    assert encoder.kv_known
    assert not encoder.keeps_kv


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"kind": "quadratic", "layers": 3}, "unknown attention kind"),
        ({"kind": "full_gqa", "layers": 3, "kv_heads": 8}, "incomplete"),
        ({"kind": "mla", "kv_lora_rank": 512, "rope_dim": 64}, "incomplete"),
    ],
)
def test_wrong_attention_is_named(item: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        attention_from_catalog(item)


def test_an_entry_needs_an_id() -> None:
    with pytest.raises(ValueError, match="id"):
        model_shape_from_catalog({"layers": 3})
