"""The prompt as one canonical byte string, for fingerprints and token estimates.

Order and content are what chat templates render: tools first, then the messages. Ids and metadata are left out.
Pictures and sounds stand in as a digest: they must tell prompts apart, but their base64 is no text to count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate

import msgspec
import xxhash

from gateway.wire.chat_body import NOTHING, Call, Message, Part

__all__ = ["Rendered", "render_chat", "render_part", "render_prompts"]

_CALLS = msgspec.json.Decoder(list[Call])
_STRING = msgspec.json.Decoder(str)


@dataclass(frozen=True, slots=True)
class Rendered:
    """pieces: tools JSON as received, then for every message role, name, content parts, tool calls and reasoning.

    message_ends: the length in bytes of the joined pieces up to the end of each message. thoughts: where reasoning
    stands in them, (start, end) in bytes; question: where the last message of the user's begins. Many templates leave
    out what was thought before that. first: where the first message of the user's lies, (start, end) in bytes.
    results: messages that are results of tools. plain: the content of every message is one text.
    """

    pieces: list[bytes]
    message_ends: list[int]
    thoughts: list[tuple[int, int]] = field(default_factory=list)
    question: int = 0
    first: tuple[int, int] = (0, 0)
    results: int = 0
    plain: bool = False

    @property
    def messages(self) -> int:
        """How many messages (or prompts) there are."""
        return len(self.message_ends)


def render_chat(tools: bytes, messages: list[Message]) -> Rendered:
    """Render a conversation; `tools` is the raw JSON of the tool list, empty for none."""
    pieces: list[str | bytes] = []
    marks: list[int] = []  # pieces up to the end of each message
    thoughts: list[int] = []  # pieces that are reasoning
    question = results = 0  # pieces up to the last question; messages that are results of tools
    first: int | None = None  # messages up to the first one
    plain = True
    for message in messages:
        content, role = message.content, message.role
        if role == "user":
            question = len(pieces)
            if first is None:
                first = len(marks)
        elif role == "tool":
            results += 1
        pieces.append(role)
        pieces.append("\n")
        if message.name is not NOTHING:
            pieces.append(_loose(message.name) + b"\n")
        if isinstance(content, str):
            pieces.append(content)
        else:
            plain = False
            if content is not None:
                pieces.extend([part if isinstance(part, str) else render_part(part) for part in content])
        if message.tool_calls is not NOTHING:
            pieces.extend(_calls(message.tool_calls))
        if message.function_call is not NOTHING:
            pieces.append(bytes(message.function_call))
        if message.reasoning_content is not NOTHING:
            thoughts.append(len(pieces))
            pieces.append(_loose(message.reasoning_content))
        if message.reasoning is not NOTHING:
            thoughts.append(len(pieces))
            pieces.append(_loose(message.reasoning))
        pieces.append("\n")
        marks.append(len(pieces))
    one = _encoded_at_once(pieces)
    written = [one] if one is not None else [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    lengths = list(accumulate(map(len, pieces if one is not None else written), initial=len(tools)))
    spans = [(lengths[i], lengths[i + 1]) for i in thoughts if pieces[i]]
    ends = [lengths[mark] for mark in marks]
    begun = (0, 0) if first is None else (ends[first - 1] if first else len(tools), ends[first])
    if tools:
        written.insert(0, tools)
    return Rendered(written, ends, spans, lengths[question], begun, results, plain)


def _encoded_at_once(pieces: list[str | bytes]) -> bytes | None:
    """The pieces as one, where all are ASCII texts: their lengths stay the same. None where they are not."""
    texts = [piece for piece in pieces if type(piece) is str]
    if len(texts) == len(pieces) and all(map(str.isascii, texts)):
        return "".join(texts).encode()
    return None


def render_prompts(prompts: list[bytes]) -> Rendered:
    """Render the prompts of a completion request: text, or the raw JSON of token ids."""
    return Rendered(prompts, list(accumulate(map(len, prompts))))


def render_part(part: Part) -> bytes:
    """The text of one part, or a digest in place of a picture or a sound."""
    if part.text is not None:
        return part.text.encode()
    if part.refusal is not None:
        return part.refusal.encode()
    for raw in (part.image_url, part.image, part.input_audio, part.audio_url, part.video_url, part.file):
        if raw is not NOTHING:
            return f"<{part.type} {xxhash.xxh3_64_hexdigest(memoryview(raw))}>".encode()
    return part.type.encode()


def _calls(raw: msgspec.Raw) -> list[bytes]:
    data = bytes(raw)
    if data == b"null":
        return []
    try:
        calls = _CALLS.decode(data)
    except msgspec.MsgspecError:
        return [data]  # not the usual shape: the engine will say what it thinks of it
    pieces: list[bytes] = []
    for call in calls:
        pieces += (call.function.name.encode(), b"\n", _loose(call.function.arguments))
    return pieces


def _loose(raw: msgspec.Raw) -> bytes:
    # Text when it is a string, else the JSON as it came; null is nothing.
    data = bytes(raw)
    if data.startswith(b'"'):
        return _STRING.decode(data).encode()
    return b"" if data == b"null" else data
