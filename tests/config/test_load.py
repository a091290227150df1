"""What a good file becomes: units, defaults, secrets, warnings."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.config.problems import Problems
from gateway.config.secrets import Secret
from gateway.config.settings import host_and_port, is_loopback
from gateway.config.sizes import PoolSize

SMALLEST = """\
backends:
  - {name: rig, url: http://10.0.0.21:8080, engine: llama.cpp, device: rtx-3090}
  - {name: spark, url: http://10.0.0.11:8000/v1/, engine: vllm, device: dgx-spark}
"""


def test_the_smallest_file_gets_its_defaults() -> None:
    loaded = load(SMALLEST)
    rig, spark = loaded.policy.backends
    assert (rig.name, rig.engine, rig.device.id, rig.models, rig.kv_pool) == (
        "rig",
        "llama.cpp",
        "rtx-3090",
        (),
        PoolSize(),
    )
    assert spark.url == "http://10.0.0.11:8000"
    assert loaded.policy.queue.length == 200
    assert loaded.settings.server.listen == "127.0.0.1:8080"
    assert loaded.config.retry.budget == 0.10
    assert [warning.message for warning in loaded.warnings] == ["there is no `auth`: anybody on this machine may ask"]


def test_units_become_bytes_seconds_shares_and_tokens() -> None:
    loaded = load(
        """\
server: {limits: {body: 8MiB, body_read: 500ms}, drain: 2m}
backends:
  - name: pro
    url: https://10.0.0.31
    engine: vllm
    device: {memory: 96GiB, bandwidth: 1792GB/s, fp16: 250T, budget: 85%}
    models: [{id: mine, params: 27B, kv_bytes: 64KiB, context: 131_072}]
    kv_pool: 200000 tokens
    timeouts: {first_token: auto, token_gap: 1.5m}
classes: {batch: {kv_ceiling: 0.6}}
routing: {move_penalty: {share: 5%, floor: 150ms}}
"""
    )
    (pro,) = loaded.policy.backends
    assert loaded.settings.server.limits.body == 8 * 1024**2
    assert (loaded.settings.server.limits.body_read, loaded.settings.server.drain) == (0.5, 120.0)
    assert (pro.device.memory, pro.device.bandwidth, pro.device.fp16) == (96 * 1024**3, 1792e9, 250e12)
    assert pro.device.budget == 0.85
    assert (pro.models[0].params, pro.models[0].kv_bytes, pro.models[0].context) == (27e9, 65536, 131072)
    assert pro.kv_pool == PoolSize(tokens=200_000)
    assert (pro.timeouts.first_token, pro.timeouts.token_gap) == (None, 90.0)
    assert loaded.policy.classes["batch"].kv_ceiling == 0.6
    assert (loaded.policy.routing.move_penalty.share, loaded.policy.routing.move_penalty.floor) == (0.05, 0.15)


def test_anchors_and_merges_are_read() -> None:
    loaded = load(
        """\
backends:
  - &rig {name: a, url: http://10.0.0.1:8080, engine: vllm, device: rtx-3090, queued_prefill: 3s}
  - {<<: *rig, name: b, url: http://10.0.0.2:8080}
"""
    )
    assert [(b.name, b.device.id, b.queued_prefill) for b in loaded.policy.backends] == [
        ("a", "rtx-3090", 3.0),
        ("b", "rtx-3090", 3.0),
    ]


class TestSecrets:
    TEXT = """\
auth: {keys: [{name: a, key: "${env.KEY_A}"}, {name: b, key: "${file:keys/b}"}, {name: c, key: sk-plain}]}
backends: [{name: rig, url: "http://${env.HOST}:8080", engine: vllm, key: "${env.KEY_A}"}]
"""

    def loaded(self, tmp_path: Path, *, lenient: bool = False, env: dict[str, str] | None = None):
        (tmp_path / "keys").mkdir()
        (tmp_path / "keys" / "b").write_text("from-the-file\n")
        file = tmp_path / "gateway.yaml"
        file.write_text(self.TEXT)
        return load(file, {"KEY_A": "from-the-env", "HOST": "10.0.0.9"} if env is None else env, lenient=lenient)

    def test_they_come_from_the_environment_and_from_files_beside_the_policy(self, tmp_path: Path) -> None:
        loaded = self.loaded(tmp_path)
        keys = loaded.policy.auth.keys
        assert [key.key.reveal() for key in keys] == ["from-the-env", "from-the-file", "sk-plain"]
        assert [key.key.plain for key in keys] == [False, False, True]
        assert loaded.policy.backends[0].key == Secret("from-the-env")
        assert loaded.policy.backends[0].url == "http://10.0.0.9:8080"

    def test_one_that_stands_in_the_file_is_a_warning(self, tmp_path: Path) -> None:
        (warning,) = self.loaded(tmp_path).warnings
        assert (warning.path, warning.message) == ("auth.keys[2].key", "is a secret written in the file")
        assert warning.hint.startswith("write ${env.KEY_C}")
        assert warning.line == 1

    def test_they_are_in_no_text_of_what_was_loaded(self, tmp_path: Path) -> None:
        loaded = self.loaded(tmp_path)
        for text in (
            repr(loaded),
            str(loaded.config),
            str(loaded.config.model_dump()),
            loaded.config.model_dump_json(),
        ):
            assert "from-the" not in text
            assert "sk-plain" not in text

    def test_one_that_is_missing_stops_serving_and_only_warns_a_check(self, tmp_path: Path) -> None:
        loaded = self.loaded(tmp_path, lenient=True, env={"HOST": "h"})
        assert loaded.policy.backends[0].key.missing
        assert [w.path for w in loaded.warnings] == ["auth.keys[0].key", "auth.keys[2].key", "backends[0].key"]
        with pytest.raises(Problems) as caught:
            load(tmp_path / "gateway.yaml", {"HOST": "h"})
        assert [p.path for p in caught.value.problems] == ["auth.keys[0].key", "backends[0].key"]

    def test_a_missing_part_of_a_url_is_one_problem_not_two(self, tmp_path: Path) -> None:
        with pytest.raises(Problems) as caught:
            self.loaded(tmp_path, env={"KEY_A": "k"})
        assert [p.path for p in caught.value.problems] == ["backends[0].url"]

    def test_the_type_shows_nothing_and_travels_nowhere(self) -> None:
        secret = Secret("sk-1")
        assert (repr(secret), str(secret), f"{secret}") == ("Secret(***)", "***", "***")
        assert secret == Secret("sk-1") != Secret("sk-2")
        assert hash(secret) == hash(Secret("sk-1"))
        assert copy.deepcopy([secret])[0] is secret
        assert copy.copy(secret) is secret
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(secret)


class TestWarnings:
    def said(self, text: str) -> list[str]:
        return [f"{w.path}: {w.message}" for w in load(text).warnings]

    def test_an_open_admin_port_and_an_open_door_that_was_asked_for(self) -> None:
        said = self.said("server: {listen: 0.0.0.0:80, admin: 0.0.0.0:81}\nauth: none\n" + SMALLEST)
        assert said == [
            "server.admin: puts the admin port, which asks for no key, on the network",
            "auth: lets anybody who reaches the port ask",
        ]

    def test_pages_of_every_site_without_a_key(self) -> None:
        said = self.said("server: {origins: ['*']}\nauth: none\n" + SMALLEST)
        assert said == ["server.origins: lets pages of every site ask through their visitors' browsers"]
        assert (
            self.said("server: {origins: ['https://a.example', 'http://b.example:81']}\nauth: none\n" + SMALLEST) == []
        )

    @pytest.mark.parametrize("origin", ["a.example", "https://a.example/", "ftp://a.example", "https://"])
    def test_an_origin_is_written_as_browsers_do(self, origin: str) -> None:
        with pytest.raises(Problems) as caught:
            load(f"server: {{origins: ['{origin}']}}\nauth: none\n" + SMALLEST)
        assert [p.path for p in caught.value.problems] == ["server.origins[0]"]

    def test_data_that_leaves_the_house(self) -> None:
        said = self.said(
            "auth: none\nbackends:\n"
            "  - {name: a, url: http://llm.example.com, engine: openai, location: off-prem, clearance: confidential}\n"
            "  - {name: b, url: http://8.8.8.8:8000, engine: vllm}\n"
        )
        assert said == [
            "backends[0].url: sends prompts and key unencrypted out of the house",
            "backends[0].clearance: lets confidential data leave the house",
            "backends[1].url: 8.8.8.8 is a public address, and the backend counts as on-prem",
        ]

    def test_models_that_only_an_engine_can_know_of(self) -> None:
        said = self.said(
            "auth: none\nbackends:\n"
            "  - {name: a, url: http://10.0.0.1, engine: vllm, models: [Qwen3.6-27B, my-own-model]}\n"
            "  - {name: b, url: http://10.0.0.2, engine: vllm}\n"
            "models:\n  - {name: code, serves: gpt-oss-20b}\n"
        )
        assert said == [
            "backends[0].models[1]: `my-own-model` is not in the catalogue: its KV cache a token is assumed",
            "models[0].serves: `gpt-oss-20b` is named by no backend in this file",
        ]

    def test_a_window_over_the_pool(self) -> None:
        said = self.said(
            "auth: none\nbackends:\n"
            "  - {name: a, url: http://10.0.0.1, engine: vllm, device: rtx-3090, kv_pool: 50000 tokens,\n"
            "     models: [{id: Qwen3-8B, weights: fp8, context: 131072}]}\n"
        )
        assert said == ["backends[0].models[0].context: is more than the KV cache holds: 50,000 tokens (declared)"]


@pytest.mark.parametrize(
    ("address", "host", "port", "loopback"),
    [
        ("127.0.0.1:80", "127.0.0.1", 80, True),
        ("127.8.9.1:80", "127.8.9.1", 80, True),
        ("[::1]:80", "::1", 80, True),
        ("localhost:0", "localhost", 0, True),
        ("0.0.0.0:80", "0.0.0.0", 80, False),
        ("[::]:80", "::", 80, False),
        ("localhost.example.com:80", "localhost.example.com", 80, False),
    ],
)
def test_addresses(address: str, host: str, port: int, loopback: bool) -> None:
    assert host_and_port(address) == (host, port)
    assert is_loopback(host) is loopback
