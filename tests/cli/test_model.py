"""`kvgate model`: the arithmetic of catalogue entries, config.json files and GGUF headers, as a person meets it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.main import main
from tests.config.gguf_bytes import Tensor, gguf

CONFIGS = Path(__file__).parents[1] / "recordings" / "model_configs"
LLAMA: dict[str, Any] = {
    "general.architecture": "llama", "general.name": "Tiny Llama", "llama.block_count": 2, "llama.context_length": 8192,
    "llama.embedding_length": 64, "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2,
    "tokenizer.ggml.model": "gpt2", "tokenizer.chat_template": "{{ messages }}",
}  # fmt: skip
TENSORS: list[Tensor] = [("token_embd.weight", (64, 100), 1), ("blk.0.attn_q.weight", (64, 64), 8)]


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(("model", *words)) == 0
    return capsys.readouterr().out


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(said(capsys, *words, "--json"))


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(("model", *words)) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def folder(path: Path, config: str = "Qwen3-8B") -> Path:
    path.mkdir(parents=True)
    shutil.copy(CONFIGS / f"{config}.json", path / "config.json")
    return path


@pytest.mark.parametrize("name", ["Qwen3-32B", "Qwen/Qwen3-32B-FP8", "qwen3-32b-awq", "Qwen3-32B-Q4_K_M.gguf"])
def test_any_common_spelling_of_a_catalogue_id(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, name)
    assert (found["id"], found["source"], found["confidence"]) == ("Qwen3-32B", "the catalogue", "high")
    assert found["kv"] == {"bytes_per_token": 262144, "window_bytes_per_token": 0, "window": 0, "state_bytes": 0}


def test_the_format_in_a_name_weighs(capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(capsys, "Qwen/Qwen3-32B-FP8")["weights"]["bytes"] == 32_761_000_000
    assert asked(capsys, "Qwen3-32B")["weights"]["bytes"] == 65_522_000_000
    assert asked(capsys, "Qwen3-32B", "--weights", "nvfp4")["weights"]["bytes"] == 18_428_062_500
    assert asked(capsys, "gpt-oss-120b")["weights"]["format"] == "mxfp4"
    assert asked(capsys, "Qwen3-32B", "--engine", "llama.cpp")["weights"]["format"] == "q4_k_m"


def test_a_published_log_line_is_met_to_the_token(capsys: pytest.CaptureFixture[str]) -> None:
    # vLLM 0.24 printed "GPU KV cache size: 567,978 tokens" and 4.33x for this pool.
    found = asked(capsys, "Qwen3.6-35B-A3B", "--kv", "fp8", "--pool", "5.98GiB", "--context", "131072")
    assert (found["pool"]["block"], found["pool"]["blocks"], found["pool"]["tokens"]) == (2096, 299, 567978)
    assert found["requests"][-1]["fit"] == 4
    two = asked(capsys, "Qwen3.6-27B", "--kv", "fp8", "--pool", "9.84GiB", "--tp", "2", "--context", "262144")
    assert (two["pool"]["block"], two["pool"]["blocks"], two["pool"]["tokens"]) == (1568, 411, 619202)


def test_a_person_sees_the_arithmetic(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "Qwen3.6-35B-A3B", "--kv", "fp8", "--pool", "5.98GiB", "--context", "131072")
    for words in (
        "34.7 B weights, 2.9 B read a token (8 of 256 experts), 40 layers, window 262,144",
        "as vllm keeps it, fp8, context 131,072",
        "10,240 B a token (10 KiB) + 61.4 MiB of state",
        "2 heads x (256 + 256) x 1 B",
        "299 / 69 x 131,072",
        "567,978 tokens",
        "whole blocks of 2,096 tokens",
    ):
        assert words in out


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    "words",
    [
        ("Qwen3-32B", "--device", "rtx-5090", "--devices", "2"),
        ("DeepSeek-V4-Flash", "--kv", "fp8", "--device", "h200", "--devices", "8"),
        ("Gemma-3-27B", "--engine", "llama.cpp", "--slots", "4", "--memory", "48GiB"),
        ("gpt-oss-20b", "--engine", "sglang"),
        ("GLM-5.3-Flash",),
    ],
)
def test_lines_fit_the_terminal(
    words: tuple[str, ...], columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = said(capsys, *words).splitlines()
    assert len(lines) > 4
    assert max(map(len, lines)) <= columns


def test_memory_of_devices_less_weights_and_working_space(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "Qwen3-32B-FP8", "--device", "rtx-5090", "--devices", "2")
    assert "on 2 x rtx-5090" in out
    assert "90% of 64 GiB" in out
    assert "-30.5 GiB" in out
    found = asked(capsys, "Qwen3-32B-FP8", "--device", "rtx-5090", "--devices", "2")
    assert found["deployment"]["tensor_parallel"] == 2
    assert found["pool"]["bytes"] == (int(64 * 2**30 * 0.9) - 32_761_000_000 - 2 * (32 * 2**30 // 10)) // 2


def test_more_devices_than_one_copy_needs_are_more_copies(capsys: pytest.CaptureFixture[str]) -> None:
    one = asked(capsys, "Qwen3-8B", "--device", "h200", "--devices", "1")
    four = asked(capsys, "Qwen3-8B", "--device", "h200", "--devices", "4", "--tp", "1")
    assert four["pool"]["copies"] == 4
    assert [r["fit"] for r in four["requests"]] == [4 * r["fit"] for r in one["requests"]]
    assert "no whole number of copies" in refused(capsys, "Qwen3-8B", "--device", "h200", "--devices", "3", "--tp", "2")


def test_weights_that_leave_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "Qwen3-32B", "--memory", "24GiB")
    assert "the weights leave nothing for a KV cache" in out
    assert out.splitlines()[-2].split()[-1] == "0"


def test_a_config_file_and_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = folder(tmp_path / "My-Model")
    by_folder, by_file = asked(capsys, str(where)), asked(capsys, str(where / "config.json"))
    assert by_folder == by_file
    assert (by_folder["id"], by_folder["source"]) == ("My-Model", "its config.json")
    assert by_folder["path"] == str(where / "config.json")
    assert by_folder["kv"]["bytes_per_token"] == 147456
    assert by_folder["weights"]["exact"] is False


def test_the_hugging_face_cache_is_a_folder_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder(tmp_path / "models--Qwen--Qwen3-8B" / "snapshots" / "0a1b")
    found = asked(capsys, str(tmp_path / "models--Qwen--Qwen3-8B"))
    assert (found["id"], found["kv"]["bytes_per_token"]) == ("Qwen/Qwen3-8B", 147456)


def test_what_lies_beside_a_config_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = folder(tmp_path / "model")
    (where / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}')
    found = asked(capsys, str(where))
    assert (found["weights"]["format"], found["deployment"]["kv_dtype"]) == ("fp8", "fp8")
    (where / "model.safetensors.index.json").write_text('{"metadata": {"total_size": 12345}}')
    assert asked(capsys, str(where))["weights"] | {"count": 0} == {
        "count": 0, "read_per_token": 7568097280, "experts": 0, "experts_per_token": 0, "bytes": 12345,
        "format": "fp8", "exact": True,
    }  # fmt: skip


def test_a_gguf_file_is_llama_cpps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(gguf(LLAMA, TENSORS))
    found = asked(capsys, str(path), "--slots", "3", "--context", "1024")
    assert (found["id"], found["source"], found["deployment"]["engine"]) == (
        "Tiny Llama",
        "its GGUF header",
        "llama.cpp",
    )
    assert found["weights"] | {"read_per_token": 0} == {
        "count": 10496, "read_per_token": 0, "experts": 0, "experts_per_token": 0, "bytes": 17152, "format": "F16",
        "exact": True,
    }  # fmt: skip
    assert (
        found["pool"]["allocated_bytes"] == 3 * 512 * 256
    )  # three slots, each rounded up to 256 cells, 256 bytes a cell
    out = said(capsys, str(path))
    assert "chat template: yes, tokenizer: gpt2" in out
    assert asked(capsys, str(tmp_path))["id"] == "Tiny Llama"


def test_a_cache_that_llama_cpp_could_not_allocate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "Qwen3-8B", "--engine", "llama.cpp", "--pool", "1GiB")
    assert "! it takes 5.6 GiB at start, more than there is; it starts with --context 7168" in out


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("vllm", "block of full attention"),
        ("sglang", "token in the growing layers"),
        ("llama.cpp", "each rounded up to 256"),
        ("ollama", "each rounded up to 256"),
    ],
)
def test_each_engine_pages_in_its_own_way(engine: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "Qwen3-8B", "--engine", engine, "--memory", "40GiB")
    assert f"as {engine} keeps it" in out
    assert words in out


def test_what_keeps_nothing_and_what_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert "It keeps no KV cache" in said(capsys, "bge-m3", "--memory", "8GiB")
    assert asked(capsys, "bge-m3")["requests"] == []
    out = said(capsys, "GLM-5.3-Flash")
    assert "nothing can be said of its KV cache" in out
    assert "don't admit requests on it" in out
    assert asked(capsys, "GLM-5.3-Flash")["kv"] is None


def test_an_unknown_kind_of_config_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = json.loads((CONFIGS / "Qwen3-8B.json").read_text("utf-8")) | {"model_type": "novel_lm"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert "! novel_lm is not a known kind: read as its keys suggest" in said(capsys, str(tmp_path))


def test_what_there_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no model Qwn3-32B, and there is no such file; did you mean Qwen3-32B?" in refused(capsys, "Qwn3-32B")
    assert "there is no file ./nope.gguf" in refused(capsys, "./nope.gguf")
    assert "has neither a config.json nor a .gguf file" in refused(capsys, str(tmp_path))
    assert "did you mean rtx-5090?" in refused(capsys, "Qwen3-8B", "--device", "rtx-5091")
    assert "no model" in refused(capsys, "a\0b")


def test_files_that_are_broken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "config.json"
    for text, message in (
        ("[1]", "must be one JSON object"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("{}", "num_hidden_layers is missing"),
    ):
        bad.write_text(text)
        assert message in refused(capsys, str(bad))
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(gguf(LLAMA, TENSORS)[:100])
    assert "cut.gguf: the file ends in its header" in refused(capsys, str(cut))
    cut.write_bytes(b"PK\x03\x04" + bytes(50))
    assert "this is no GGUF file" in refused(capsys, str(cut))


def test_a_folder_of_several_models_is_asked_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(gguf(LLAMA, TENSORS))
    assert "has 2 models: name one of a.gguf, b.gguf" in refused(capsys, str(tmp_path))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--context", "128k"), "write the number: 131072, not 128k"),
        (("--kv", "fp6"), "is not a number format of a KV cache"),
        (("--tp", "0"), "must be from 1 to 4096"),
        (("--context", "0"), "leave it out for the model's own"),
        (("--memory", "lots"), "write it like 24GiB"),
        (("--pool", "1GiB", "--memory", "2GiB"), "not allowed with"),
    ],
)
def test_options_that_are_wrong(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(("model", "Qwen3-8B", *words))
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tp", "3"), "vllm can't split its heads over 3 devices; tensor parallel works with 1, 2, 4, 8, 16, 32"),
        (("--device", "h200", "--devices", "6", "--tp", "6"), "vllm can't split its heads over 6 devices"),
        (("--pp", "37"), "vllm can't cut 36 layers into 37 stages; at most 36 work"),
        (("--kv", "q4_0"), "vllm has no KV cache in q4_0; auto (16 bit) and fp8 work"),
        (("--kv", "fp8", "--engine", "llama.cpp"), "llama.cpp has no KV cache in fp8"),
    ],
)
def test_what_the_engine_would_refuse(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refused(capsys, "Qwen3-8B", *words)


def test_drafting_without_a_head_for_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no drafting head of its own is known" in " ".join(said(capsys, "Qwen3-8B", "--draft", "2").split())
    assert "drafting head of its own" not in said(capsys, "Qwen3.6-27B", "--draft", "2")


def test_a_checkpoints_fp8_is_no_format_of_llama_cpp(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = folder(tmp_path / "model")
    (where / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}')
    assert asked(capsys, str(where), "--engine", "llama.cpp")["deployment"]["kv_dtype"] == "f16"


def test_a_pool_without_room_for_a_block_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "Qwen3-0.6B", "--pool", "1MiB")
    lines = {line.split("  ")[1].strip(): line.split()[-2:] for line in out.splitlines() if line.startswith("  ")}
    assert lines["blocks in the pool"] == ["0", "blocks"]
    assert lines["requests of full length"] == ["0", "requests"]
    assert lines["tokens as logged"] == ["0", "tokens"]


def test_one_is_no_plural(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = json.loads((CONFIGS / "Qwen3-8B.json").read_text("utf-8"))
    one = {"num_hidden_layers": 1, "num_key_value_heads": 1, "max_position_embeddings": 16}
    (tmp_path / "config.json").write_text(json.dumps(config | one))
    out = said(capsys, str(tmp_path), "--pool", "16KiB")
    for words in ("1 layer, window 16", "full attention, 1 layer ", "1 head x (128 + 128)", "1 block\n"):
        assert words in out
    assert not re.search(r"\b1 (layers|heads|blocks|slots|requests|states)\b", out)
    hybrid = said(capsys, "Qwen3.6-27B", "--tp", "8", "--context", "131072", "--pool", "1GiB", "--engine", "sglang")
    assert not re.search(r"(?<![\d.,])1 (layers|heads|blocks|slots|requests|states)\b", hybrid)
