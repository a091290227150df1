"""The examples, and the schema that editors use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from gateway.config.load import load
from gateway.config.schema import json_schema, schema_text

CONFIG = Path(__file__).parents[2] / "config"
EXAMPLES = sorted(CONFIG.glob("*.yaml"))
BAD = Path(__file__).parent / "bad"


def test_there_are_six_examples() -> None:
    assert [path.stem for path in EXAMPLES] == [
        "department", "few-users-fast", "home", "huge-model-async", "many-long-contexts", "smallest",
    ]  # fmt: skip


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_can_be_used(path: Path) -> None:
    loaded = load(path, {}, lenient=True)
    assert loaded.policy.backends
    expected = {"needs the environment", "there is no `auth`", "is in a directory"}
    assert all(any(w.message.startswith(words) for words in expected) for w in loaded.warnings)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_begins_with_the_schema_line_and_obeys_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=./kvgate.schema.json\n")
    assert errors(yaml.safe_load(text)) == []


def test_the_department_has_a_boundary_that_holds() -> None:
    policy = load(CONFIG / "department.yaml", {}, lenient=True).policy
    hosted = next(backend for backend in policy.backends if backend.location == "off-prem")
    assert hosted.clearance == "internal"
    assert {route.name: route.data for route in policy.models}["code"] == "confidential"


def test_the_committed_schema_is_the_generated_one() -> None:
    # Made by `kvgate schema --out config/kvgate.schema.json`.
    assert (CONFIG / "kvgate.schema.json").read_text(encoding="utf-8") == schema_text(), (
        "run: kvgate schema --out config/kvgate.schema.json"
    )


def test_every_key_has_a_text() -> None:
    whole = json_schema()

    def text(node: dict[str, Any]) -> str:
        # A key whose text is that of its class has none of its own.
        return node.get("description") or whole["$defs"][node["$ref"].rsplit("/", 1)[1]]["description"]

    for definition in (whole, *whole["$defs"].values()):
        for key, node in definition["properties"].items():
            assert text(node).endswith("."), key


def test_every_mapping_refuses_unknown_keys() -> None:
    for definition in (json_schema(), *json_schema()["$defs"].values()):
        assert definition["additionalProperties"] is False


def test_every_default_obeys_its_own_schema() -> None:
    whole = json_schema()
    for definition in (whole, *whole["$defs"].values()):
        for key, node in definition["properties"].items():
            if "default" in node:
                checked = Draft7Validator(
                    {**{k: v for k, v in node.items() if k != "default"}, "$defs": whole["$defs"]}
                )
                assert list(checked.iter_errors(node["default"])) == [], key


@pytest.mark.parametrize("name", ["unknown_key", "missing_keys", "unknown_engine", "not_yet", "no_keys", "formats"])
def test_an_editor_with_the_schema_sees_these_too(name: str) -> None:
    assert errors(yaml.safe_load((BAD / f"{name}.yaml").read_text(encoding="utf-8")))


def test_the_schema_is_plain_json() -> None:
    assert json.loads(schema_text()) == json_schema()
    Draft7Validator.check_schema(json_schema())


def errors(tree: Any) -> list[str]:
    return [f"{list(error.path)}: {error.message}" for error in Draft7Validator(json_schema()).iter_errors(tree)]
