"""Read from a chat or completion body what the decision needs, once; the body itself is forwarded as it came."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from gateway.core.media import NO_MEDIA, Media
from gateway.errors import MalformedRequest
from gateway.wire.chat_body import NOTHING, Body, Chat, Completion, StreamOptions
from gateway.wire.distinct import Told, distinct_members
from gateway.wire.malformed import decoded, integer
from gateway.wire.media import media
from gateway.wire.members import Member
from gateway.wire.raw_members import first_byte
from gateway.wire.reasoning import reasoning_of
from gateway.wire.rendered import Rendered, render_chat, render_prompts

__all__ = ["ChatRequest", "Rendered", "parse_chat", "parse_completion"]

MAX_CHOICES = 128
"""The most that OpenAI's API takes for `n`."""
MAX_TOKENS = 2**31 - 1
"""Engines keep token counts in signed 32-bit integers."""
MAX_PROMPTS = 2048
"""Prompts of one completion request; each is a sequence of its own in the engine, and OpenAI's API takes as many."""
MAX_MESSAGES = 100_000
"""Messages and content parts of one request. A template wraps each in 4 tokens at least."""
SESSION_LENGTH = 256
"""Characters; a longer session key is no key."""
_BUDGETS = ("max_completion_tokens", "max_tokens", "n_predict")
_FLOORS = ("min_tokens", "min_length")

_CHAT = msgspec.json.Decoder(Chat)
_COMPLETION = msgspec.json.Decoder(Completion)
_STREAM_OPTIONS = msgspec.json.Decoder(StreamOptions | None)
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a request asks for.

    surface: what the client called; of a surface that translates, all else is that of its chat body. lost: members
    that no translation has a place for, by path. previous: the stored answer that it goes on from.
    hub: what it was read as, and is translated to. beyond: it uses what engines that copy its dialect mostly refuse.
    turns: messages and tool calls of its own dialect, of which a translation may join several.
    prompts: how many prompts a completion request has; `n` choices come for each.
    max_tokens: the output budget in tokens, None when unsaid; max_tokens_field: the member that said so.
    budgets: all members that say one. floors: members that say how long the answer is at least, and the tokens.
    include_usage: `stream_options.include_usage` as asked; stream_options: raw JSON, for an edit that keeps the rest.
    needs: of "tools", "vision", "audio", "json_schema", "logprobs". session: the client's own key for a conversation.
    prompt_tokens: exact, when the prompt came as token ids. stops: stop strings are given.
    reasoning: how hard to think, as `reasoning_of` says; json: the answer must be JSON.
    media: what of pictures, sounds and documents is in it; images: how many pictures.
    verbose: llama.cpp's switch for a fuller answer. members: where the body's members lie, for edits.
    """

    surface: str
    model: str
    stream: bool
    n: int
    max_tokens: int | None
    max_tokens_field: str | None
    include_usage: bool | None
    stream_options: bytes | None
    tools: int
    needs: frozenset[str]
    images: int
    session: str | None
    text: Rendered
    prompts: int = 1
    prompt_tokens: int | None = None
    stops: bool = False
    verbose: bool = False
    lost: tuple[str, ...] = ()
    previous: str | None = None
    hub: str = "chat"
    beyond: bool = False
    turns: int = 0
    reasoning: str = ""
    json: bool = False
    media: Media = NO_MEDIA
    budgets: tuple[str, ...] = ()
    floors: tuple[tuple[str, float], ...] = ()
    members: tuple[Member, ...] = field(default=(), repr=False, compare=False)


def parse_chat(body: bytes, *, ours: bool = False) -> ChatRequest:
    """Read a body of /v1/chat/completions; of `ours`, a translation's, the members are not looked for.

    Raises MalformedRequest with `param` naming the member at fault.
    """
    parsed = decoded(_CHAT, body)
    if not parsed.messages:
        raise MalformedRequest("messages must hold at least one message", param="messages")
    contents = [message.content for message in parsed.messages if isinstance(message.content, list)]
    if len(parsed.messages) + sum(map(len, contents)) > MAX_MESSAGES:
        raise MalformedRequest(f"messages hold more than {MAX_MESSAGES} messages and parts", param="messages")
    tools = b"" if parsed.tools is NOTHING or bytes(parsed.tools) == b"null" else bytes(parsed.tools)
    count = _tools(tools)
    needs, found = media(contents)
    if count and parsed.tool_choice != "none":
        needs.add("tools")
    if parsed.logprobs:
        needs.add("logprobs")
    text = render_chat(tools if count else b"", parsed.messages)
    members = () if ours else distinct_members(body, _told(text, count) if text.plain else None)
    return _request("chat", members, parsed, needs, text, count, found)


def _told(text: Rendered, tools: int) -> Told:
    # Each of these messages has a role and a content at least.
    said = text.pieces[1:] if tools else text.pieces
    return Told("messages", 2 * text.messages, sum([piece.count(b":") for piece in said]))


def parse_completion(body: bytes, *, ours: bool = False) -> ChatRequest:
    """The same of a body of /v1/completions."""
    parsed = decoded(_COMPLETION, body)
    prompt = parsed.prompt
    if prompt is None or prompt == []:
        raise MalformedRequest("prompt must not be empty", param="prompt")
    needs = {"logprobs"} if parsed.logprobs is not None and parsed.logprobs is not False else set()
    tokens: int | None = None
    if isinstance(prompt, str):
        prompts = [prompt.encode()]
    elif isinstance(prompt[0], int):  # one prompt as token ids
        prompts, tokens = [msgspec.json.encode(prompt)], len(prompt)
    elif len(prompt) > MAX_PROMPTS:
        raise MalformedRequest(f"prompt must not hold more than {MAX_PROMPTS} prompts", param="prompt")
    else:
        prompts = [item.encode() if isinstance(item, str) else msgspec.json.encode(item) for item in prompt]
        if all(isinstance(item, list) for item in prompt):
            tokens = sum(len(item) for item in prompt if isinstance(item, list))
    members = () if ours else distinct_members(body)
    return _request("completions", members, parsed, needs, render_prompts(prompts), 0, NO_MEDIA, len(prompts), tokens)


def _request(
    surface: str,
    members: tuple[Member, ...],
    parsed: Body,
    needs: set[str],
    text: Rendered,
    tools: int,
    found: Media = NO_MEDIA,
    prompts: int = 1,
    prompt_tokens: int | None = None,
) -> ChatRequest:
    if not parsed.model:
        raise MalformedRequest("model is required", param="model", code="missing_required_parameter")
    n = integer("n", parsed.n, 1, MAX_CHOICES)
    field, asked = "max_completion_tokens", parsed.max_completion_tokens
    if asked is None:
        field, asked = "max_tokens", parsed.max_tokens
    if asked is None and parsed.n_predict != -1:  # llama.cpp's own name; -1 is its word for "no limit"
        field, asked = "n_predict", parsed.n_predict
    max_tokens = integer(field, asked, 0, MAX_TOKENS)
    if parsed.n_probs:
        needs.add("logprobs")
    if parsed.response_format is not None and parsed.response_format.type == "json_schema":
        needs.add("json_schema")
    stream_options = None if parsed.stream_options is NOTHING else bytes(parsed.stream_options)
    return ChatRequest(
        surface=surface,
        model=parsed.model,
        stream=parsed.stream is True,
        n=1 if n is None else n,
        max_tokens=max_tokens,
        max_tokens_field=None if max_tokens is None else field,
        include_usage=_include_usage(stream_options),
        stream_options=stream_options,
        tools=tools,
        needs=frozenset(needs),
        images=len(found.pictures),
        media=found,
        session=_session(parsed.prompt_cache_key) or _session(parsed.session_id),
        text=text,
        prompts=prompts,
        prompt_tokens=prompt_tokens,
        stops=bool(parsed.stop),
        verbose=bool(parsed.verbose),
        reasoning=reasoning_of(parsed.reasoning_effort, parsed.chat_template_kwargs),
        json=parsed.response_format is not None and parsed.response_format.type in ("json_schema", "json_object"),
        budgets=tuple(name for name in _BUDGETS if getattr(parsed, name) is not None),
        floors=tuple((name, least) for name in _FLOORS if isinstance(least := getattr(parsed, name), (int, float))),
        members=members,
    )


def _tools(raw: bytes) -> int:
    if not raw:
        return 0
    try:
        tools = _ITEMS.decode(raw)
    except msgspec.MsgspecError:
        raise MalformedRequest("tools must be an array", param="tools") from None
    for index, tool in enumerate(tools):
        if first_byte(tool) != b"{":
            raise MalformedRequest(f"tools[{index}] must be an object", param=f"tools[{index}]")
    return len(tools)


def _include_usage(raw: bytes | None) -> bool | None:
    if raw is None:
        return None
    try:
        options = _STREAM_OPTIONS.decode(raw)
    except msgspec.MsgspecError:
        raise MalformedRequest("stream_options must be an object", param="stream_options") from None
    return None if options is None else options.include_usage


def _session(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= SESSION_LENGTH else None
