"""A request of which nothing is decoded, or nothing that is counted in tokens, as the decision sees it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gateway.wire.chat_request import ChatRequest
from gateway.wire.inputs import Inputs
from gateway.wire.members import Member
from gateway.wire.rendered import Rendered, render_prompts

__all__ = ["Named", "inputs_request", "plain_request"]


class Named(msgspec.Struct):
    """What every plain body may say. An engine of one model needs no name; the request's is "" then."""

    model: str | None = None


def plain_request(
    surface: str,
    model: str | None,
    text: Rendered,
    members: tuple[Member, ...] = (),
    *,
    prompts: int = 1,
    prompt_tokens: int | None = None,
    images: int = 0,
    needs: Iterable[str] = (),
    n: int = 1,
    tools: int = 0,
    stream: bool = False,
    max_tokens: int = 0,
) -> ChatRequest:
    """The request with an output budget that no member of it says, 0 tokens if nothing is decoded."""
    return ChatRequest(
        surface=surface,
        model=model or "",
        stream=stream,
        n=n,
        max_tokens=max_tokens,
        max_tokens_field=None,
        include_usage=None,
        stream_options=None,
        tools=tools,
        needs=frozenset(needs),
        images=images,
        session=None,
        text=text,
        prompts=prompts,
        prompt_tokens=prompt_tokens,
        members=members,
    )


def inputs_request(surface: str, model: str | None, given: Inputs, members: tuple[Member, ...]) -> ChatRequest:
    """The request for all of these inputs, each a sequence of its own in the engine."""
    return plain_request(
        surface,
        model,
        render_prompts(given.texts),
        members,
        prompts=len(given.texts),
        prompt_tokens=None if given.tokens is None else sum(given.tokens),
        images=given.images,
        needs=("vision",) if given.images else (),
    )
