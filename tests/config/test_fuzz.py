"""Whatever is written, load answers with a configuration or with problems, never with anything else, and in time."""

from __future__ import annotations

import copy
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.config.load import Loaded, load
from gateway.config.problems import Problems

WHOLE: dict[str, Any] = {
    "server": {"listen": "127.0.0.1:8080", "limits": {"body": "64MiB"}, "drain": "2m"},
    "auth": {"keys": [{"name": "a", "key": "${env.KEY}", "models": ["code"], "limits": {"running": 2}}]},
    "backends": [
        {
            "name": "rig",
            "url": "http://10.0.0.21:8080",
            "engine": "llama.cpp",
            "device": "rtx-3090",
            "models": [{"id": "Qwen3.6-27B", "weights": "q4_k_m", "context": 32768}],
            "timeouts": {"first_token": "auto"},
        },
        {"name": "own", "url": "http://10.0.0.22", "engine": "vllm", "device": {"memory": "24GiB"}, "models": ["x"]},
    ],
    "models": [
        {"name": "code", "serves": "Qwen3.6-27B", "fallback": ["x"], "context": "longest", "slo": {"ttft": "5s"}}
    ],
    "classes": {"default": {"weight": 4}},
    "queue": {"length": 10, "wait": "60s"},
    "retry": {"attempts": 1},
    "telemetry": {"log": {"level": "info"}},
}
ENV = {"KEY": "sk-canary-of-the-test"}
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**12), 10**12), st.floats(), st.text(max_size=12),
    st.sampled_from(["auto", "30s", "5%", "24GiB", "none", "${env.KEY}", "${env.NO}", "${file:/x}", "-1", "1e9999"]),
)  # fmt: skip
keys = st.one_of(st.text(max_size=10), st.sampled_from(["name", "url", "engine", "models", "key", "class", "<<"]))
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=6,
)


def answer(text: str) -> Loaded | Problems:
    try:
        return load(text, ENV)
    except Problems as problems:
        found = problems
    assert found.problems
    for problem in found.problems:
        assert problem.message
        assert "canary" not in str(problem)
        assert problem.line <= text.count("\n") + 2
    return found


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        found += places(value, (*path, key))
    return found


def test_the_whole_file_is_good() -> None:
    assert isinstance(answer(yaml.safe_dump(WHOLE)), Loaded)


@QUICK
@given(st.sampled_from(places(WHOLE)), trees)
def test_any_value_may_stand_anywhere(path: tuple[Any, ...], value: Any) -> None:
    tree = copy.deepcopy(WHOLE)
    holder: Any = tree
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = value
    answer(yaml.safe_dump(tree))


@QUICK
@given(st.sampled_from([(), *places(WHOLE)]), st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=12))
def test_an_unknown_key_is_a_problem_at_its_own_path(path: tuple[Any, ...], key: str) -> None:
    tree = copy.deepcopy(WHOLE)
    holder: Any = tree
    for part in path:
        holder = holder[part]
    if not isinstance(holder, dict) or path == ("classes",):
        return
    key = f"zz{key}"
    holder[key] = 1
    found = answer(yaml.safe_dump(tree))
    assert isinstance(found, Problems)
    assert [p.path.rsplit(".", 1)[-1] for p in found.problems] == [key]


@QUICK
@given(st.sampled_from(places(WHOLE)))
def test_anything_may_be_left_out(path: tuple[Any, ...]) -> None:
    tree = copy.deepcopy(WHOLE)
    holder: Any = tree
    for part in path[:-1]:
        holder = holder[part]
    del holder[path[-1]]
    answer(yaml.safe_dump(tree))


@QUICK
@given(trees)
def test_any_tree_is_answered(tree: Any) -> None:
    answer(yaml.safe_dump(tree))


@QUICK
@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_any_text_is_answered(text: str) -> None:
    answer(text)


@QUICK
@given(st.text("ab:{}[]&*!|>-?%@`'\"#,\n\t ~<0", max_size=40))
def test_any_punctuation_is_answered(text: str) -> None:
    answer(text)


@QUICK
@given(st.data())
def test_any_cut_of_a_file_is_answered(data: st.DataObject) -> None:
    text = yaml.safe_dump(WHOLE)
    answer(text[: data.draw(st.integers(0, len(text)))])
