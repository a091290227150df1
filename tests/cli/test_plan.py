from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.cli.plan_traffic import described, from_file, parse_rate
from gateway.config.sizes import Unreadable
from gateway.errors import ConfigError

GIB = 1024**3


def plan(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> dict[str, object]:
    assert main(["plan", *words, "--json"]) == status
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_weights_and_cache_are_counted_as_check_counts_them(capsys: pytest.CaptureFixture[str]) -> None:
    found = plan(capsys, "Qwen3.6-27B", "--weights", "fp8", "--device", "rtx-3090", "--device", "2xrtx-5090")
    one, *more = found["instances"]
    assert (one["device"], one["count"], one["holds"]) == ("rtx-3090", 1, False)
    assert one["weights_bytes"] == pytest.approx(25 * GIB, rel=0.05)
    assert one["pool_bytes"] < 0
    assert [(each["device"], each["count"]) for each in more] == [
        ("rtx-3090", 2), ("rtx-3090", 4), ("rtx-3090", 8), ("rtx-5090", 2),
    ]  # fmt: skip
    pair = more[0]
    assert pair["holds"]
    assert pair["weights_bytes"] + pair["pool_bytes"] < pair["memory_bytes"]
    assert pair["fits"]["8192"] > 2 * pair["fits"]["32768"] > 0


def test_the_smallest_that_serves_the_traffic_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("Qwen3-8B", "--device", "rtx-3090", "--device", "1xh200-sxm-141", "--prompt", "2000", "--output", "100")
    few = plan(capsys, *words, "--rate", "6/min")
    assert few["instances"][few["smallest"]]["count"] == 1
    assert few["instances"][few["smallest"]]["device"] == "rtx-3090"
    many = plan(capsys, *words, "--rate", "30/s")
    chosen = many["instances"][many["smallest"]]
    assert chosen["needed"] > 1 or chosen["device"] == "h200-sxm-141"
    assert chosen["at_most"]["rate"] * chosen["needed"] >= 30


def test_prices_decide_where_there_are_any(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("Qwen3-8B", "--prompt", "2000", "--output", "100", "--rate", "0.2/s")
    dear = plan(capsys, *words, "--price", "rtx-3090=9", "--price", "rtx-5090=0.1")
    assert {each["device"] for each in dear["instances"]} == {"rtx-3090", "rtx-5090"}
    chosen = dear["instances"][dear["smallest"]]
    assert chosen["device"] == "rtx-5090"
    assert chosen["cost_per_1000"] == pytest.approx(0.1 * chosen["count"] / (0.2 * 3600) * 1000)


def test_what_nothing_serves_is_said_and_the_status_tells(capsys: pytest.CaptureFixture[str]) -> None:
    found = plan(capsys, "DeepSeek-V3", "--device", "1xrtx-3090", status=1)
    assert found["smallest"] is None
    assert main(["plan", "DeepSeek-V3", "--device", "1xrtx-3090"]) == 1
    out = capsys.readouterr().out
    assert "nothing here serves that" in out
    assert "short" in out


def test_a_file_is_planned_with_its_own_backends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(
        "backends:\n  - {name: rig, url: 'http://10.0.0.21:8080', engine: vllm, device: rtx-5090,"
        " models: [{id: Qwen3-8B, context: 32768}]}\n"
    )
    found = plan(capsys, str(file), "--prompt", "1000")
    (only,) = found["instances"]
    assert (only["backend"], only["model"], only["window"]) == ("rig", "Qwen3-8B", 32_768)
    assert only["holds"]


def test_tables_say_what_the_numbers_are(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["plan", "Qwen3-8B", "--device", "rtx-3090", "--rate", "0.2/s"]) == 0
    out = capsys.readouterr().out
    for word in ("What fits", "KV pool", "128k", "How fast", "TTFT", "TPOT", "bears", "smallest that serves it"):
        assert word in out
    assert all(len(line) <= 100 for line in out.splitlines())


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("models", [["Llama-3.1-8B"], ["Llama-3.1-8B", "Qwen3-8B"]])
def test_names_and_numbers_stay_whole(
    columns: int, models: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    words = ["--device", "2xrtx-3090", "--device", "1xrtx-pro-6000", "--rate", "1/s", "--price", "rtx-3090=0.2"]
    main(["plan", *models, *words])
    out = capsys.readouterr().out
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert max(map(len, out.splitlines())) <= columns
    assert "…" not in out
    speeds = [row for row in rows if row.startswith("2 x rtx-3090") and " ms " in row]
    assert len(speeds) == len(models)
    assert all("/min TTFT 8 0.889" in row and row.count(" s ") == 2 for row in speeds)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["Qwen3-8", "--device", "rtx-3090"], "did you mean Qwen3-8B"),
        (["Qwen3-8B", "--device", "rtx-390"], "did you mean rtx-3090"),
        (["Qwen3-8B", "--traffic", "missing.jsonl"], "no such file"),
    ],
)
def test_what_is_not_known_is_said_with_what_is_near(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *words]) == 1
    assert said.lower() in capsys.readouterr().err.lower()


@pytest.mark.parametrize(("text", "rate"), [("0.5/s", 0.5), ("30/min", 0.5), ("1800/h", 0.5), ("30 / minute", 0.5)])
def test_rates(text: str, rate: float) -> None:
    assert parse_rate(text) == pytest.approx(rate)


@pytest.mark.parametrize("text", ["", "5", "0/s", "-1/s", "1/day", "./s", "1e999/s"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(Unreadable):
        parse_rate(text)


def test_described_traffic_has_the_means_that_were_given_and_is_spread() -> None:
    traffic = described(8000, 400, 0.6, 1.0).traffic
    assert traffic.prompt == pytest.approx(8000, rel=0.01)
    assert traffic.output == pytest.approx(400, rel=0.01)
    assert traffic.cached == pytest.approx(4800, rel=0.01)
    assert traffic.longest(0.95) > 2 * 8000
    assert len({each.prompt for each in traffic.samples}) > 50


def test_a_trace_tells_lengths_rate_and_what_was_there_before(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    rows = [
        {"timestamp_ms": 0, "input_tokens": 1024, "output_tokens": 10, "hash_ids": [1, 2]},
        {"timestamp_ms": 2000, "input_tokens": 1536, "output_tokens": 30, "hash_ids": [1, 2, 3]},
        {"timestamp_ms": 4000, "input_tokens": 1024, "output_tokens": 20, "hash_ids": [9, 2]},
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + "not json\n[]\n")
    found = from_file(file, None, 0.0)
    assert found.rate == pytest.approx(0.5)
    assert [tuple(each) for each in found.traffic.samples] == [(1024, 0, 10), (1536, 1024, 30), (1024, 0, 20)]


def test_a_journal_tells_the_same_of_one_name(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"

    def row(at: float, model: str, **settled: int) -> str:
        return json.dumps({"at": at, "request": {"model": model}, "settled": settled}) + "\n"

    file.write_text(
        row(100.0, "code", prompt_tokens=5000, completion_tokens=300, cached_tokens=4000)
        + row(101.0, "chat", prompt_tokens=50, completion_tokens=30)
        + row(104.0, "code", prompt_tokens=6000, completion_tokens=200, cached_tokens=5000)
        + row(105.0, "code")
    )
    found = from_file(file, "code", 0.0)
    assert [tuple(each) for each in found.traffic.samples] == [(5000, 4000, 300), (6000, 5000, 200)]
    assert found.rate == pytest.approx(0.25)
    assert from_file(file, "code", 7.0).rate == 7.0
    with pytest.raises(ConfigError, match="no finished request for nobody"):
        from_file(file, "nobody", 0.0)


def test_a_model_file_is_planned_like_a_model_of_the_catalogue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = Path(__file__).parents[1] / "recordings" / "model_configs" / "DeepSeek-V3.json"
    file = tmp_path / "config.json"
    file.write_text(recorded.read_text())
    words = ("--device", "8xh200-sxm-141", "--weights", "fp8", "--context", "131072")
    own, known = (plan(capsys, name, *words)["instances"][0] for name in (str(file), "DeepSeek-V3"))
    assert own["weights_bytes"] == pytest.approx(known["weights_bytes"], rel=0.03)
    assert own["fits"]["32768"] == pytest.approx(known["fits"]["32768"], rel=0.1)
    assert own["holds"]


def test_devices_that_the_heads_cannot_be_split_over_are_copies_as_in_check(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("Qwen3-8B", "--device", "3xrtx-3090", "--device", "2xrtx-3090", "--ttft", "60s", "--rate", "6/min")
    found = plan(capsys, *words)
    three, two = found["instances"]
    assert (three["copies"], two["copies"]) == (3, 1)
    assert three["serves"]
    file = tmp_path / "gateway.yaml"
    file.write_text(
        "backends: [{name: rig, url: http://127.0.0.1:9, engine: vllm, device: rtx-3090, devices: {count: 3},"
        " models: [{id: Qwen3-8B}]}]"
    )
    main(["check", str(file), "--offline", "--json"])
    checked = json.loads(capsys.readouterr().out)["backends"][0]
    assert checked["pool_tokens"] == three["pool_tokens"] > 0
    assert main(["plan", *words]) == 0
    assert "3 x rtx-3090: counted as 3 copies of Qwen3-8B, each on 1 of them" in _flat(capsys)


def test_what_is_only_tried_is_one_copy_or_none(capsys: pytest.CaptureFixture[str]) -> None:
    tried = plan(capsys, "SmolLM2-135M", "--device", "rtx-3090", "--prompt", "1000")["instances"]
    assert [each["copies"] for each in tried] == [1] * len(tried)
    assert any("can't split its heads over" in (each["refused"] or "") for each in tried)


def test_an_entry_of_low_confidence_is_said_to_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("Devstral-2-123B", "--weights", "q4_k_m", "--device", "4xrtx-3090")
    doubts = plan(capsys, *words, status=1)["instances"][0]["doubts"]
    assert any("low confidence" in each["message"] for each in doubts)
    main(["plan", *words])
    assert "low confidence" in _flat(capsys)
    assert plan(capsys, "Qwen3-8B", "--device", "2xrtx-3090")["instances"][0]["doubts"] == []


def _flat(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_a_cache_format_that_the_engine_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "Qwen3-8B", "--kv", "q4_0"]) == 1
    assert "vllm has no KV cache in q4_0; auto (16 bit) and fp8 work" in capsys.readouterr().err
