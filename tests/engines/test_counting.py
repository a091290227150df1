"""How engines are asked for the tokens of a prompt: what is sent, and what is made of the answer."""

from __future__ import annotations

import json

import pytest

from gateway.engines.adapter import Answer, Counting, Probe
from gateway.engines.registry import engine

BODY = (
    b'{"model":"mine","messages":[{"role":"user","content":"\\u00e9 \\n"}],"stream":true,"max_tokens":5,'
    b'"tools":[{"type":"function","function":{"name":"f"}}],"temperature":0}'
)


def run(counting: Counting | None, *answers: tuple[int, object]) -> tuple[list[Probe], int | None]:
    """Answer each question in turn; returns what was asked and what came of it."""
    assert counting is not None
    asked = [next(counting)]
    for status, body in answers:
        try:
            asked.append(counting.send(Answer(status, {}, json.dumps(body).encode())))
        except StopIteration as end:
            assert len(asked) == len(answers)
            return asked, end.value
    raise AssertionError(f"asks on: {asked[-1]}")


def test_vllm_tokenizes_messages() -> None:
    answer = {"count": 20, "max_model_len": 2048, "tokens": [1, 2], "token_strs": None}
    asked, tokens = run(engine("vllm").counting("chat", BODY, "theirs"), (200, answer))
    assert (asked[0].method, asked[0].path, tokens) == ("POST", "/tokenize", 20)
    sent = json.loads(asked[0].body)
    assert sent == {
        "model": "theirs",
        "messages": [{"role": "user", "content": "é \n"}],
        "tools": [{"type": "function", "function": {"name": "f"}}],
    }
    assert b"\\u00e9 \\n" in asked[0].body  # byte for byte


def test_vllm_tokenizes_prompts_and_counts_messages() -> None:
    vllm = engine("vllm")
    asked, tokens = run(vllm.counting("completions", b'{"prompt":"a b","n":2,"model":"x"}', "m"), (200, {"count": 2}))
    assert (json.loads(asked[0].body), tokens) == ({"prompt": "a b", "model": "m"}, 2)
    body = b'{"model":"x","max_tokens":9,"system":"s","messages":[]}'
    asked, tokens = run(vllm.counting("messages", body, "m"), (200, {"input_tokens": 7}))
    assert asked[0].path == "/v1/messages/count_tokens"
    assert (json.loads(asked[0].body), tokens) == ({"model": "m", "system": "s", "messages": []}, 7)
    assert vllm.counting("responses", b'{"input":"x"}', "m") is None


@pytest.mark.parametrize(
    ("surface", "path"),
    [
        ("chat", "/v1/chat/completions/input_tokens"),
        ("messages", "/v1/messages/count_tokens"),
        ("responses", "/v1/responses/input_tokens"),
    ],
)
def test_llama_cpp_counts_whole_bodies(surface: str, path: str) -> None:
    answer = {"input_tokens": 36, "object": "response.input_tokens"}
    asked, tokens = run(engine("llama.cpp").counting(surface, BODY, "theirs"), (200, answer))
    assert (asked[0].path, tokens) == (path, 36)
    sent = json.loads(asked[0].body)
    assert (sent["model"], sent["max_tokens"], "stream" in sent) == ("theirs", 5, False)


def test_older_llama_cpp_renders_and_tokenizes() -> None:
    asked, tokens = run(
        engine("llama.cpp").counting("chat", BODY, "theirs"),
        (404, {"error": {"message": "File Not Found"}}),
        (200, {"prompt": 'a "b"\n'}),
        (200, {"tokens": [{"id": 3, "piece": "x"}, 4, 5]}),
    )
    assert [probe.path for probe in asked] == ["/v1/chat/completions/input_tokens", "/apply-template", "/tokenize"]
    assert json.loads(asked[2].body) == {"content": 'a "b"\n', "add_special": True, "parse_special": True}
    assert tokens == 3


def test_llama_cpp_tokenizes_one_prompt_of_text() -> None:
    llama = engine("llama.cpp")
    asked, tokens = run(llama.counting("completions", b'{"prompt":"a b","n":2}', "m"), (200, {"tokens": [7, 8]}))
    assert (asked[0].path, json.loads(asked[0].body)["content"], tokens) == ("/tokenize", "a b", 2)
    assert llama.counting("completions", b'{"prompt":["a","b"]}', "m") is None
    assert llama.counting("completions", b'{"prompt":[1,2]}', "m") is None
    assert llama.counting("embeddings", b'{"input":"a"}', "m") is None


def test_anthropic_counts_only_what_its_api_takes() -> None:
    claude = engine("anthropic")
    body = b'{"model":"x","max_tokens":9,"stream":true,"metadata":{},"system":"s","messages":[],"tools":[]}'
    asked, tokens = run(claude.counting("messages", body, "claude-x"), (200, {"input_tokens": 7}))
    assert json.loads(asked[0].body) == {"model": "claude-x", "system": "s", "messages": [], "tools": []}
    assert (dict(asked[0].headers), tokens) == ({"anthropic-version": "2023-06-01"}, 7)
    assert claude.traits.counts_media
    assert claude.counting("chat", BODY, "x") is None


def test_sglang_tokenizes_prompts_alone() -> None:
    asked, tokens = run(engine("sglang").counting("completions", b'{"prompt":"a"}', "m"), (200, {"count": 1}))
    assert (json.loads(asked[0].body), tokens) == ({"prompt": "a", "model": "m"}, 1)
    assert engine("sglang").counting("chat", BODY, "m") is None


@pytest.mark.parametrize("name", ["ollama", "openai", "dwarfstar", "ninfer"])
def test_others_are_not_asked(name: str) -> None:
    assert engine(name).counting("chat", BODY, "m") is None


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {}), (200, []), (200, {"count": 0}), (200, {"count": -4}), (200, {"count": "20"}),
        (200, {"count": 2**40}), (400, {"count": 20}), (500, "no"), (404, {}), (200, None),
    ],
)  # fmt: skip
def test_an_odd_answer_tells_nothing(status: int, body: object) -> None:
    assert run(engine("vllm").counting("chat", BODY, "m"), (status, body))[1] is None


def test_an_odd_rendering_or_list_tells_nothing() -> None:
    llama = engine("llama.cpp")
    for last in ((200, {}), (200, {"prompt": 5}), (500, {})):
        assert run(llama.counting("chat", BODY, "m"), (501, {}), last)[1] is None
    for last in ((200, {}), (200, {"tokens": "abc"}), (200, {"tokens": []}), (500, {"tokens": [1]})):
        assert run(llama.counting("completions", b'{"prompt":"a"}', "m"), last)[1] is None
