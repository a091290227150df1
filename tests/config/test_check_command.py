"""`kvgate check`, `kvgate schema` and the dispatcher, as a person or a script meets them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway import __version__
from gateway.cli import check, main
from gateway.cli.check_view import size_text
from gateway.config.schema import schema_text
from gateway.engines.adapter import Facts, FoundModel

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "config"


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    for name in ("KVGATE_KEY_AGENTS", "KVGATE_KEY_NIGHTLY", "SPARKS_KEY", "HOSTED_KEY"):
        monkeypatch.delenv(name, raising=False)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = main(words)
    return status, capsys.readouterr().out


def asked(
    path: Path,
    answers: dict[str, Facts | str],
    capsys: pytest.CaptureFixture[str],
    *,
    as_json: bool = False,
    devices: dict[str, dict[str, Any]] | None = None,
) -> Any:
    arguments = type("Arguments", (), {"file": path, "json": as_json, "offline": False})
    told = devices or {}
    assert check.run(arguments, lambda endpoints: {e.name: answers[e.name] for e in endpoints}, lambda _: told) == 0
    out = capsys.readouterr().out
    return json.loads(out) if as_json else out


@pytest.mark.parametrize("name", ["smallest", "home", "department"])
def test_examples_pass_offline_within_100_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out = run(capsys, "check", str(CONFIG / f"{name}.yaml"), "--offline")
    assert status == 0
    assert f"{name}.yaml can be used" in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_names_and_numbers_stay_whole(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out = run(capsys, "check", str(CONFIG / "department.yaml"), "--offline")
    assert max(map(len, out.splitlines())) <= columns
    tables = out.split("Backends  what")[1]
    for whole in ("gpt-oss-120b", "Qwen3.6-27B", "3,631,280", "262,144", "rtx-pro-6000-ws", "+4.5 MiB", "57.8 GiB"):
        assert whole in tables
    assert "…" not in out


def test_what_the_department_means(capsys: pytest.CaptureFixture[str]) -> None:
    _, out = run(capsys, "check", str(CONFIG / "department.yaml"), "--offline")
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "needs the environment variable KVGATE_KEY_AGENTS, which is not set → set it before serving" in rows
    assert "rig llama.cpp 4 x rtx-3090 26.6 GiB 4.8 GiB 131,072 4" in rows
    assert "rig Qwen3.6-27B q8_0 q8_0 34 KiB +147 MiB 32,768 16 4 –" in rows
    assert "code data confidential, class interactive, up to 262,144 tokens, consent any" in rows
    assert "2 gpt-oss-120b → sparks; not hosted: cleared for internal data only" in rows
    assert "confidential yes yes yes no" in rows


def test_devices_that_nobody_says_how_to_use_are_named_as_they_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gateway.yaml"
    rest = "engine: vllm, device: rtx-3090, models: [{id: Llama-3.1-8B, context: 131072}]"
    file.write_text(
        "auth: none\nbackends:\n"
        f"  - {{name: three, url: 'http://10.0.0.1:8000', devices: {{count: 3}}, {rest}}}\n"
        f"  - {{name: pair, url: 'http://10.0.0.2:8000', devices: {{count: 2}}, {rest}}}\n"
        f"  - {{name: said, url: 'http://10.0.0.3:8000', devices: {{count: 2, tensor_parallel: 2}}, {rest}}}\n"
    )
    _, out = run(capsys, "check", str(file), "--offline", "--json")
    told = {each["path"]: each["message"] for each in json.loads(out)["warnings"]}
    assert "counts as 3 x rtx-3090, 3 copies of the weights" in told["backends[0].devices"]
    assert "counts as 2 x rtx-3090, tp 2, one copy of the weights" in told["backends[1].devices"]
    assert "backends[2].devices" not in told
    assert "of each of 3 copies holds: 38,0" in told["backends[0].models[0].context"]
    assert "backends[1].models[0].context" not in told


def test_a_cap_that_no_copy_holds_is_warned_of_where_weights_are_assumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(
        "auth: none\nmodels: [{name: chat, serves: Llama-3.1-8B, context: 60000}]\nbackends:\n  - {name: b,"
        " url: 'http://10.0.0.1:8000', engine: vllm, device: rtx-3090, devices: {count: 3, tensor_parallel: 1},"
        " models: [Llama-3.1-8B]}\n"
    )
    status, out = run(capsys, "check", str(file), "--offline")
    assert status == 0
    assert "caps chat at 60,000 tokens, and no KV cache holds one such request" in " ".join(out.split())


def test_problems_are_printed_with_places_and_hints(capsys: pytest.CaptureFixture[str]) -> None:
    status, out = run(capsys, "check", str(Path(__file__).parent / "bad" / "unknown_key.yaml"), "--offline")
    assert status == 1
    assert "✗ 4 problems in" in out
    assert "unknown_key.yaml:4:5  backends[0].enigne" in out
    assert "there is no such key here → did you mean engine?" in out


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    status, out = run(capsys, "check", str(CONFIG / "department.yaml"), "--offline", "--json")
    answer = json.loads(out)
    assert (status, answer["ok"], answer["problems"]) == (0, True, [])
    rig = next(b for b in answer["backends"] if b["name"] == "rig")
    assert (rig["reachable"], rig["pool_tokens"], rig["slots"], rig["sources"]["pool"]) == (
        None,
        131_072,
        4,
        "declared",
    )
    assert rig["models"][0]["fits"] == {"8192": 16, "32768": 4, "131072": None}
    code = next(route for route in answer["routes"] if route["name"] == "code")
    assert code["steps"][1] == {
        "model": "gpt-oss-120b",
        "backends": ["sparks"],
        "closed": [["hosted", "cleared for internal data only"]],
    }
    assert answer["reach"]["restricted"] == ["sparks", "pro"]


def test_json_of_a_bad_file(capsys: pytest.CaptureFixture[str]) -> None:
    status, out = run(capsys, "check", str(Path(__file__).parent / "bad" / "twins.yaml"), "--json")
    answer = json.loads(out)
    assert (status, answer["ok"], "backends" in answer) == (1, False, False)
    assert [(p["line"], p["path"]) for p in answer["problems"]] == [
        (3, "backends[1].name"),
        (3, "backends[1].url"),
        (6, "models[1].name"),
    ]


class TestAskingEngines:
    FOUND = Facts(
        models=(FoundModel("Qwen/Qwen3.6-27B-FP8", window=65_536),),
        slots=12,
        pool_tokens=500_000,
        block=1568,
        notes=("a note",),
    )

    def test_what_they_say_fills_the_tables_and_who_is_silent_is_said(self, capsys: pytest.CaptureFixture[str]) -> None:
        out = asked(CONFIG / "smallest.yaml", {"rig": "connection refused", "spark": self.FOUND}, capsys)
        rows = [" ".join(line.split()) for line in out.splitlines()]
        assert "its engine: connection refused; the figures are from this file alone" in rows
        line = "spark pool: engine, in blocks of 1568 tokens, 9,408 tokens more a sequence for states and windows; "
        assert f"{line}at once: engine; its engine answers" in " ".join(rows)
        assert "spark Qwen3.6-27B fp8 16 bit 64 KiB +147 MiB 65,536 26 11 –" in rows
        assert "1 Qwen3.6-27B → spark" in rows
        assert "a note" in rows

    def test_json_tells_who_answered(self, capsys: pytest.CaptureFixture[str]) -> None:
        answer = asked(
            CONFIG / "smallest.yaml", {"rig": Facts(loading=True), "spark": self.FOUND}, capsys, as_json=True
        )
        rig, spark = answer["backends"]
        assert (rig["reachable"], rig["error"]) == (False, "is loading its model")
        assert (spark["reachable"], spark["error"], spark["slots"], spark["block"]) == (True, None, 12, 1568)

    def test_what_its_device_tells_is_shown(self, capsys: pytest.CaptureFixture[str]) -> None:
        told = {
            "rig": {"device": "0", "temperature_c": 71.0, "trouble": None},
            "spark": {"trouble": "dcgm: status 404"},
        }
        answers: dict[str, Facts | str] = {"rig": "connection refused", "spark": self.FOUND}
        rows = [line.strip() for line in asked(CONFIG / "smallest.yaml", answers, capsys, devices=told).splitlines()]
        assert "its device: 71 °C" in rows
        assert "its device: not told: dcgm: status 404" in rows
        listed = asked(CONFIG / "smallest.yaml", answers, capsys, devices=told, as_json=True)["backends"]
        assert [each["device_reports"] for each in listed] == [told["rig"], told["spark"]]

    def test_what_its_engine_tells_otherwise_is_shown_with_both_figures(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = tmp_path / "gateway.yaml"
        model = "{id: Qwen3-8B, weights: fp8, kv: fp8, context: 32768}"
        file.write_text(
            f"backends: [{{name: a, url: 'http://h:1', engine: vllm, device: rtx-3090, models: [{model}]}}]\n"
        )
        found = {"a": Facts(models=(FoundModel("Qwen3-8B", window=32_768),), pool_tokens=87_000, block=16)}
        out = " ".join(asked(file, found, capsys).split())
        assert "! KV pool: 87,000 tokens by the engine, 174,352 tokens by arithmetic (-50%); likely " in out
        assert "something else holds memory of that device" in out
        (backend,) = asked(file, found, capsys, as_json=True)["backends"]
        (odd,) = backend["mismatches"]
        assert (odd["fact"], odd["engine"], odd["expected"], odd["ratio"]) == ("KV pool", 87_000, 174_352, -0.501)
        agreed = {"a": Facts(models=(FoundModel("Qwen3-8B", window=32_768),), pool_tokens=170_000, block=16)}
        assert asked(file, agreed, capsys, as_json=True)["backends"][0]["mismatches"] == []

    def test_entries_of_low_confidence_are_named_with_what_to_do(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = tmp_path / "gateway.yaml"
        known = "models: [{id: Devstral-2-123B, weights: fp8}]"
        file.write_text(f"backends: [{{name: a, url: 'http://h:1', engine: vllm, device: h200, {known}}}]\n")
        out = " ".join(run(capsys, "check", str(file), "--offline")[1].split())
        assert "a pool: device memory less weights, 75% of it: figures of low confidence" in out
        assert "! the KV cache of Devstral-2-123B is worked out from an entry of low confidence (" in out
        assert "→ give `kv_bytes`, or `kv_pool` in tokens" in out
        found = {"a": Facts(models=(FoundModel("Devstral-2-123B", window=32_768),), pool_tokens=50_000, block=16)}
        (backend,) = asked(file, found, capsys, as_json=True)["backends"]
        assert (backend["pool_tokens"], backend["sources"]["pool"]) == (50_000, "engine")
        assert backend["doubts"][0]["message"].endswith("; room is counted in the tokens of its engine")
        assert backend["mismatches"] == []
        file.write_text(file.read_text().replace("weights: fp8", "weights: fp8, kv_bytes: 360448"))
        assert json.loads(run(capsys, "check", str(file), "--offline", "--json")[1])["backends"][0]["doubts"] == []

    def test_over_the_network_nobody_there_is_no_failure(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = tmp_path / "gateway.yaml"
        file.write_text("backends: [{name: a, url: http://127.0.0.1:9, engine: vllm}]\n")
        status, out = run(capsys, "check", str(file))
        assert status == 0
        assert "its engine: " in out


class TestSchemaCommand:
    def test_it_prints(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(capsys, "schema") == (0, schema_text())

    def test_it_writes(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(capsys, "schema", "--out", str(tmp_path / "s.json")) == (0, "")
        assert (tmp_path / "s.json").read_text() == schema_text()

    def test_it_says_when_it_cannot_write(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["schema", "--out", str(tmp_path)]) == 1
        assert "is a directory" in capsys.readouterr().err.lower()


class TestDispatcher:
    def test_help_names_every_command(self, capsys: pytest.CaptureFixture[str]) -> None:
        status, out = run(capsys)
        assert status == 2
        assert all(f"    {name} " in out for name in ("serve", "check", "schema", "explain", "demo"))

    @pytest.mark.parametrize(
        ("words", "status"), [(["--help"], 0), (["--version"], 0), (["abacus"], 2), (["check"], 2)]
    )
    def test_statuses(self, words: list[str], status: int, capsys: pytest.CaptureFixture[str]) -> None:
        try:
            code: object = main(words)
        except SystemExit as left:
            code = left.code
        assert code == status
        captured = capsys.readouterr()
        assert captured.out if status == 0 else captured.err.startswith(("usage: kvgate", "kvgate: "))

    def test_version(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            main(["--version"])
        assert capsys.readouterr().out == f"kvgate {__version__}\n"

    def test_the_schema_needs_neither_network_nor_tables(self) -> None:
        code = (
            "import sys; from gateway.cli import main; main(['schema', '--out', sys.argv[1]]); "
            "sys.exit(bool({'aiohttp', 'rich', 'gateway.edge'} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code, "/dev/null"], cwd=ROOT, timeout=60, check=False)
        assert done.returncode == 0

    def test_a_closed_pipe_is_no_traceback(self) -> None:
        command = f"{sys.executable} -m gateway.cli schema | head -1"
        done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == "{\n"
        assert done.stderr == ""

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
    @pytest.mark.parametrize(
        "words", ["check --offline config/home.yaml", "check --offline --json config/home.yaml", "check none", "schema"]
    )
    def test_a_full_disk_is_one_sentence(self, words: str) -> None:
        command = f"{sys.executable} -m gateway.cli {words} > /dev/full"
        done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert done.stderr == "kvgate: the output could not be written: no space left on device\n"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (153_944_064, "147 MiB"),
        (26 * 1024**3, "26 GiB"),
        (2**41, "2 TiB"),
    ],
)
def test_sizes_for_a_person(size: float, text: str) -> None:
    assert size_text(size) == text


def test_what_an_engine_would_refuse_at_start_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(
        "backends:\n"
        "  - {name: a, url: http://127.0.0.1:9, engine: vllm, device: h200,\n"
        "     models: [{id: Qwen3-8B, kv: q4_0}]}\n"
    )
    status, out = run(capsys, "check", str(path), "--offline", "--json")
    told = [(one["path"], one["message"]) for one in json.loads(out)["warnings"]]
    assert status == 0
    assert ("backends[0].models[0].kv", "vllm has no KV cache in q4_0") in told
