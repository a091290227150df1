from __future__ import annotations

import pytest

from gateway.wire.scrub import scrubbed


@pytest.mark.parametrize(
    "secret",
    [
        "http://10.0.0.3:8000/v1",
        "10.0.0.3:8000",
        "192.168.1.20",
        "gpu-7.lan.example:8000",
        "localhost:8000",
        "[fe80:0:0:0:1:2:3:4]:80",
        "/opt/models/secret.gguf",
        "/home/ann/.cache/huggingface/hub",
        "~/models/x.gguf",
        "C:\\models\\x.gguf",
        "sk-abc123",
        "hf_abcdefgh",
        "Bearer abcdefgh",
        "api_key=abcdefgh",
        "token: abcdefgh",
    ],
)
def test_a1_a2_where_an_engine_lives_and_its_keys_are_left_out(secret: str) -> None:
    said = scrubbed(f"CUDA error at {secret}, sorry")
    assert said.startswith("CUDA error at [...]")
    assert said.endswith("sorry")
    assert not set(secret.split()) & set(said.replace(",", " ").split()) - {"Bearer"}


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
        "(parameter=input_tokens, value=2049)",
        "messages/0/content: Input should be a valid string",
        "This is not a chat model and thus not supported in the v1/chat/completions endpoint.",
        "use /v1/completions instead",
        "Field 'n': Value must be between 1 <= value <= 2",
        "temperature must be in [0.0, 2.0], token generation stopped at 12:30",
        "the ratio is 3/4 and and/or not",
    ],
)
def test_what_a_client_can_mend_is_told_as_it_was(text: str) -> None:
    assert scrubbed(text) == text


def test_a_model_is_told_by_the_name_that_the_client_knows() -> None:
    assert (
        scrubbed('"org/m1-awq" does not support thinking', {"org/m1-awq": "code"}) == '"code" does not support thinking'
    )


def test_it_is_bounded() -> None:
    assert len(scrubbed("x" * 10_000)) == 500


def test_a_name_within_a_word_is_no_name() -> None:
    assert scrubbed("the model is not mod", {"mod": "code", "m": "x"}) == "the model is not code"
    assert scrubbed("a \\1 b", {"a \\1": "\\g<0>"}) == "\\g<0> b"
