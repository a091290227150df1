"""Models and devices of an operator's own: the shipped words, and a place before the shipped entries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.config import catalog
from gateway.config.catalog import shipped
from gateway.config.compile import compile_policy
from gateway.config.endpoint import endpoints
from gateway.config.load import Loaded, load
from gateway.config.offers import Serving, serving
from gateway.config.own_entries import OwnDevice, OwnModel
from gateway.config.problems import Problems
from gateway.core.confidence import Confidence

OWN = """
auth: none
catalogue:
  models:
    - id: House-8B
      aliases: [house]
      params_total_b: 8
      attention:
        - {kind: full_gqa, layers: 8, kv_heads: 4, head_dim: 128}
        - {kind: sliding_gqa, layers: 24, kv_heads: 4, head_dim: 128, window: 1024}
      max_context: 65536
    - id: Qwen3-8B
      params_total_b: 9
      attention: [{kind: full_gqa, layers: 10, kv_heads: 8, head_dim: 128}]
      confidence: low
      source: measured here
  devices:
    - {id: box, aliases: [shoebox], memory_bytes: 64GiB, bandwidth_gbs: 400, tflops: {fp16: 100}, memory_budget: 75%}
    - {id: rtx-3090, memory_bytes: 48GiB, bandwidth_gbs: 936, tflops: {fp16: 71, fp8: null}}
backends:
  - {name: a, url: http://10.0.0.1:1, engine: vllm, device: shoebox, models: [{id: acme/House-8B-FP8}]}
  - {name: b, url: http://10.0.0.2:1, engine: vllm, device: rtx-3090, models: [Qwen3-8B, Qwen3-4B]}
"""


def served(loaded: Loaded) -> dict[str, tuple[Serving, ...]]:
    plan, found = compile_policy(loaded.policy), endpoints(loaded.policy)
    return {known.name: serving(known, found[known.name]) for known in plan.backends}


@pytest.mark.parametrize("name", shipped.model_ids())
def test_every_shipped_model_could_stand_in_a_file(name: str) -> None:
    entry = dict(shipped.entry("models", name))
    assert OwnModel.model_validate(entry).shape() == shipped.known_model(name)
    assert entry["source"]
    assert Confidence(entry["confidence"])


def test_every_shipped_device_could_stand_in_a_file() -> None:
    for name in shipped.device_ids():
        found = shipped.device(name)
        assert found is not None
        entry = dict(shipped.entry("devices", found.id))
        assert OwnDevice.model_validate(entry).device() == found
        assert found.source == entry["source"]
        assert found.confidence == entry["confidence"]


def test_own_entries_are_used_and_win_over_shipped_ones() -> None:
    loaded = load(OWN)
    plan, offers = compile_policy(loaded.policy), served(loaded)
    box, bigger = (backend.device for backend in plan.backends)
    assert (box.id, box.memory, box.bandwidth, box.flops, box.budget) == ("box", 64 << 30, 400e9, 100e12, 0.75)
    assert bigger.memory == 48 << 30
    (house,) = offers["a"]
    assert house.offer.kv.bytes_per_token == 8 * 4 * 256 * 2
    assert (house.offer.kv.window, house.offer.kv.window_bytes_per_token) == (1024, 24 * 4 * 256 * 2)
    assert house.weights_bytes == 8e9
    own, shipped_one = offers["b"]
    assert own.offer.kv.bytes_per_token == 10 * 8 * 256 * 2
    assert own.weights_bytes == 9e9 * 2
    assert shipped_one.offer.kv.bytes_per_token == 147_456


def test_names_that_nothing_goes_by_are_compared_with_own_ones_too() -> None:
    found = load(OWN).policy.catalogue.catalogue
    assert found.nearest_device("shoebx") == "shoebox"
    assert found.nearest_model("House-8") == "House-8B"
    assert found.model("HOUSE") is found.model("acme/house-8b-AWQ")
    assert catalog.known_model("house") is None
    assert len(found.model_ids) == len(catalog.model_ids()) + 1
    assert set(found.device_ids) == {*catalog.device_ids(), "box", "shoebox"}


def test_layers_that_are_not_told_apart_are_worth_a_warning() -> None:
    text = OWN.replace("params_total_b: 8\n", "params_total_b: 8\n      layers: 40\n")
    (warning,) = load(text).warnings
    assert str(warning).startswith("<text>:9:7: catalogue.models[0].attention: says 40 layers, and 32 by kind")


CONFIG_JSON = {
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 12_288,
    "vocab_size": 151_936,
    "max_position_embeddings": 40_960,
}


def from_file(folder: Path, entry: str) -> Loaded:
    file = folder / "gateway.yaml"
    file.write_text(
        f"auth: none\ncatalogue: {{models: [{entry}]}}\nbackends: [{{name: a, url: 'http://h:1', engine: vllm}}]\n"
    )
    return load(file, lenient=True)


def test_a_config_json_tells_what_the_entry_does_not(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text(json.dumps(CONFIG_JSON))
    loaded = from_file(tmp_path, "{id: Ours, config: m/config.json, max_context: 8192, confidence: medium}")
    found = loaded.policy.catalogue.catalogue.model("ours")
    assert found is not None
    assert found.kv().bytes_per_token == 147_456
    assert (found.id, found.max_context, found.confidence) == ("Ours", 8192, Confidence.MEDIUM)
    assert found.source == "config.json"
    assert found.params_total == pytest.approx(8.19e9, rel=0.01)


def test_a_model_file_that_is_not_here_is_a_problem_where_it_serves_and_a_warning_elsewhere(tmp_path: Path) -> None:
    (warning,) = [w for w in from_file(tmp_path, "{id: Ours, gguf: ours.gguf}").warnings if "catalogue" in w.path]
    assert warning.message == "can't be used: its file can't be read: no such file or directory"
    with pytest.raises(Problems, match="its file can't be read"):
        load(tmp_path / "gateway.yaml")


def test_a_model_file_that_is_none_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(Problems, match="must be one JSON object"):
        from_file(tmp_path, "{id: Ours, config: config.json}")
    with pytest.raises(Problems, match="one of them must do"):
        from_file(tmp_path, "{id: Ours, config: config.json, gguf: a.gguf}")


def test_the_entries_that_an_example_shows_can_be_used() -> None:
    lines = (Path(__file__).parents[2] / "config" / "home.yaml").read_text().splitlines()
    first = lines.index("# catalogue:")
    last = next(i for i in range(first, len(lines)) if not lines[i].startswith("#"))
    shown = [line[2:] for line in lines[first:last] if "config.json" not in line]
    found = load("\n".join([*lines[:first], *shown, *lines[last:]])).policy.catalogue.catalogue
    assert [model.id for model in found.models] == ["House-30B-A3B"]
    assert [device.id for device in found.devices] == ["old-card"]
