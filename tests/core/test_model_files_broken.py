"""Descriptions of models with any value in any place: read, or refused with a sentence, never anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.kv.described import ModelFileError
from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.gguf.header import GgufHeader
from gateway.core.kv.gguf.reader import model_from_gguf
from gateway.core.kv.hf_config.reader import model_from_config
from tests.core.config_families import FAMILIES
from tests.core.test_gguf_metadata import CASES, header

RECORDED = Path(__file__).parents[1] / "recordings" / "model_configs"
CONFIGS = [json.loads(path.read_text("utf-8")) for path in sorted(RECORDED.glob("*.json"))]
CONFIGS += [family.config for family in FAMILIES.values()]
HEADERS = [header(case.arch, **case.keys).metadata for case in CASES.values()]
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 200) | st.just(2**70) | st.floats() | st.text(max_size=4),
    lambda one: st.lists(one, max_size=4) | st.dictionaries(st.text(max_size=3), one, max_size=2),
    max_leaves=5,
)  # fmt: skip


def places(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(value, dict):
        return [path]
    return [path] * bool(path) + [one for key, inner in value.items() for one in places(inner, (*path, key))]


def changed(value: Any, path: tuple[str, ...], new: Any) -> Any:
    if not path:
        return new
    return {**value, path[0]: changed(value[path[0]], path[1:], new)}


@given(st.data())
def test_any_value_in_any_place_of_a_config(data: st.DataObject) -> None:
    config = data.draw(st.sampled_from(CONFIGS))
    for _ in range(data.draw(st.integers(1, 3))):
        config = changed(config, data.draw(st.sampled_from(places(config))), data.draw(ODD))
        if not isinstance(config, dict) or not config:
            return
    try:
        found = model_from_config(config)
    except ModelFileError:
        return
    assert found.shape.kv(KvDtype.F16, 2).bytes(1000) >= 0
    assert found.weights_bytes >= 0


@given(st.data())
def test_any_value_under_any_key_of_a_gguf(data: st.DataObject) -> None:
    metadata = dict(data.draw(st.sampled_from(HEADERS)))
    value = st.booleans() | st.integers(-3, 2**64) | st.floats() | st.text(max_size=4)
    for _ in range(data.draw(st.integers(1, 3))):
        new = data.draw(value | st.lists(value, max_size=70).map(tuple))
        metadata[data.draw(st.sampled_from(sorted(metadata)))] = new
    try:
        found = model_from_gguf(GgufHeader(3, metadata, ()))
    except ModelFileError:
        return
    assert found.shape.kv(KvDtype.Q8_0).bytes(1000) >= 0
