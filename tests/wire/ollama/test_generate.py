from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from gateway.errors import MalformedRequest
from gateway.wire.chat_request import parse_chat, parse_completion
from gateway.wire.ollama.asked import Asked
from gateway.wire.ollama.generate_to_chat import to_chat
from gateway.wire.ollama.generate_to_completions import to_completions
from gateway.wire.reading import read_request
from gateway.wire.translations import acceptable, spoken_for

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(12)).decode()
ON = {"stream": True, "stream_options": {"include_usage": True}}


def body(**members: Any) -> bytes:
    return json.dumps({"model": "m", "prompt": "Why?", **members}).encode()


def test_a_prompt_is_what_the_user_says() -> None:
    translated = to_chat(body(system="Be brief.", images=[PNG], options={"num_predict": 9}, think=False, format="json"))
    assert translated.lost == ()
    assert translated.context == Asked(generate=True)
    assert parse_chat(translated.body).images == 1
    assert json.loads(translated.body) == {
        "model": "m",
        "max_tokens": 9,
        "response_format": {"type": "json_object"},
        "chat_template_kwargs": {"enable_thinking": False},
        **ON,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                    {"type": "text", "text": "Why?"},
                ],
            },
        ],
    }
    plain = json.loads(to_chat(body(stream=False, system="", suffix="", raw=False, context=[], template="")).body)
    assert plain == {"model": "m", "stream": False, "messages": [{"role": "user", "content": "Why?"}]}


@pytest.mark.parametrize(
    "members",
    [{"raw": True}, {"suffix": "}"}, {"template": "{{ .Prompt }}"}, {"context": [1, 2]}, {"width": 512}, {"steps": 4}],
)
def test_what_has_no_place_in_chat(members: dict[str, Any]) -> None:
    assert to_chat(body(**members)).lost == tuple(members)


def test_a_raw_prompt_is_completed() -> None:
    translated = to_completions(body(raw=True, options={"temperature": 0}, logprobs=True, top_logprobs=2, think=True))
    assert (translated.lost, translated.context) == ((), Asked(generate=True))
    assert parse_completion(translated.body).stream
    assert json.loads(translated.body) == {"model": "m", "temperature": 0, **ON, "logprobs": 2, "prompt": "Why?"}
    one = to_completions(body(raw=True, stream=False, logprobs=True))
    assert json.loads(one.body) == {"model": "m", "stream": False, "logprobs": 1, "prompt": "Why?"}


@pytest.mark.parametrize("raw", [True, False])
def test_only_an_engine_with_generate_itself_is_asked_to_write_up_to_a_suffix(raw: bool) -> None:
    chat = read_request("ollama_generate", body(suffix="}", raw=raw))
    assert "suffix" in chat.lost
    assert acceptable(chat) == {"ollama_generate"}
    assert spoken_for(chat, frozenset(("chat", "completions"))) is None
    assert read_request("ollama_generate", body(suffix="", raw=raw)).lost == ()


@pytest.mark.parametrize(
    ("members", "lost"),
    [
        ({}, ("prompt",)),
        ({"raw": True, "system": "x"}, ("system",)),
        ({"raw": True, "images": [PNG]}, ("images",)),
        ({"raw": True, "format": "json"}, ("format",)),
        ({"raw": True, "context": [1]}, ("context",)),
        ({"raw": True, "suffix": "}"}, ("suffix",)),
    ],
)
def test_what_has_no_place_in_text_completions(members: dict[str, Any], lost: tuple[str, ...]) -> None:
    assert to_completions(body(**members)).lost == lost


@pytest.mark.parametrize("translate", [to_chat, to_completions])
@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"prompt": ""}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"prompt": 7}, "prompt"),
        ({"model": None}, "model"),
        ({"stream": 1}, "stream"),
        ({"options": "x"}, "options"),
        ({"top_logprobs": -1}, "top_logprobs"),
    ],
)
def test_an_odd_member_is_named(translate: Any, members: dict[str, Any], param: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        translate(body(**members))
    assert refused.value.param == param


def test_odd_members_of_one_only() -> None:
    with pytest.raises(MalformedRequest) as refused:
        to_chat(body(system=7))
    assert refused.value.param == "system"
    for members in ({"raw": "yes"}, {"raw": True, "suffix": 7}):
        with pytest.raises(MalformedRequest) as refused:
            to_completions(body(**members))
        assert refused.value.param in members
