"""No member of a body may be given twice, on whatever surface: which of them counts would be each reader's choice."""

from __future__ import annotations

import pytest

from gateway.errors import MalformedRequest
from gateway.wire.reading import read_request

_BODIES = {
    "chat": '"messages":[{"role":"user","content":"Why?"}]',
    "completions": '"prompt":"Why?"',
    "embeddings": '"input":"Why?"',
    "messages": '"max_tokens":5,"messages":[{"role":"user","content":"Why?"}]',
    "count_tokens": '"messages":[{"role":"user","content":"Why?"}]',
    "responses": '"input":"Why?"',
    "ollama_chat": '"messages":[{"role":"user","content":"Why?"}]',
    "ollama_generate": '"prompt":"Why?"',
    "ollama_embed": '"input":"Why?"',
}


@pytest.mark.parametrize("surface", _BODIES)
@pytest.mark.parametrize("again", ['"model":"other"', '"\\u006dodel":"other"'])
def test_a_member_that_is_given_twice_is_refused(surface: str, again: str) -> None:
    body = f'{{"model":"m",{_BODIES[surface]},%s}}'
    assert read_request(surface, (body % '"user":"u"').encode()).model == "m"
    with pytest.raises(MalformedRequest, match="more than once") as raised:
        read_request(surface, (body % again).encode())
    assert (raised.value.status, raised.value.code, raised.value.param) == (400, "duplicate_member", "model")


def test_generate_without_a_template_is_held_to_it_too() -> None:
    with pytest.raises(MalformedRequest) as raised:
        read_request("ollama_generate", b'{"model":"m","prompt":"a","raw":true,"prompt":"b"}')
    assert (raised.value.code, raised.value.param) == ("duplicate_member", "prompt")


def test_inside_of_values_members_pass_as_they_came() -> None:
    body = b'{"model":"m","max_tokens":5,"messages":[{"role":"user","role":"user","content":"Why?"}]}'
    assert read_request("messages", body).model == "m"
