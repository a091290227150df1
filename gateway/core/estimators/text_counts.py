"""A prompt as counts of kinds of bytes and of what meets what: all that a token estimate needs of its text.

Byte-pair vocabularies spend tokens on words, digits, punctuation and characters of other scripts at very different
rates, and more on letters that are rare in English, which other languages and random text are full of. Counted at C
speed: by deletion, and by pairs in a copy that has one letter a kind of byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, repeat
from operator import add, mul

__all__ = ["FEATURES", "TextCounts", "count_prompt", "count_text"]

CLASS_SAMPLE = 32 * 1024
"""Bytes of a longer text whose kinds are counted, in even slices; 0.1 ms."""
PAIR_SAMPLE = 12 * 1024
"""Bytes whose pairs are counted; 0.1 ms."""
_SLICES = 16

_ASCII: dict[str, bytes] = {
    "common": b"aeionrsthl",  # three quarters of English
    "space": b" ",
    "uncommon": b"bcdfgmpuxy",
    "punctuation": bytes(b for b in range(33, 127) if not chr(b).isalnum() and chr(b) not in "\"'"),
    "capital": bytes(range(65, 91)),
    "digit": b"0123456789",
    "rare": b"jkqvwz",
    "quote": b"\"'",
    "line": b"\n\r\t" + bytes(b for b in (*range(32), 127) if b not in b"\n\r\t"),
}
_LEADS: dict[str, bytes] = {
    # By the first byte of a character in UTF-8.
    "han": bytes(range(0xE4, 0xEA)),
    "kana": b"\xe3",
    "cyrillic": bytes(range(0xCC, 0xD4)),  # Greek, too
    "latin": b"\xc2\xc3",
    "latin_extended": bytes(range(0xC4, 0xCC)) + b"\xe1",
    "middle_east": bytes(range(0xD4, 0xE1)),  # Armenian, Hebrew, Arabic; Indic, Thai
    "hangul": bytes(range(0xEA, 0xEE)),
    "symbol": b"\xe2\xee\xef",
    "emoji": bytes(range(0xF0, 0x100)) + b"\xc0\xc1",
}
_PAIRS: dict[str, bytes] = {
    "camel": b"aA",
    "digit_pair": b"00",
    "punctuation_pair": b"..",
    "space_word": b" a",
    "punctuation_word": b".a",
    "punctuation_space": b". ",
}
FEATURES: tuple[str, ...] = (*_ASCII, *_LEADS, *_PAIRS)
"""The order of `TextCounts.features`."""

_HIGH = bytes(range(128, 256))
_LOW = bytes(range(128))
_LOW_OR_CONTINUED = bytes(range(0xC0))


def _letters() -> bytes:
    table = bytearray(b"\x80" * 256)
    for kinds, letter in (
        (("common", "uncommon", "rare"), b"a"),
        (("capital",), b"A"),
        (("digit",), b"0"),
        (("space",), b" "),
        (("line",), b"\n"),
        (("punctuation", "quote"), b"."),
    ):
        for kind in kinds:
            for byte in _ASCII[kind]:
                table[byte] = letter[0]
    return bytes(table)


_LETTERS = _letters()


@dataclass(frozen=True, slots=True)
class TextCounts:
    """A prompt, or a part of one, as numbers.

    `features` in the order of FEATURES: bytes or characters of each kind, and pairs; estimates for what is longer than
    the sample. `bytes` all of them; `messages` that a template wraps; `results` those of them that bring what a tool
    said; `tools` offered, and `offered`: features of their JSON, which templates write anew, and which stands apart.
    """

    features: tuple[float, ...]
    bytes: int = 0
    messages: int = 0
    results: int = 0
    tools: int = 0
    offered: tuple[float, ...] = ()
    thought: tuple[float, ...] = ()
    """Features of reasoning, which templates render since the last question at most: of a whole prompt that part."""
    past_thought: tuple[float, ...] = ()
    """Of a whole prompt: features of the reasoning before its last question."""
    bare: bool = False
    """There is no system text: some templates then bring their own."""
    answer: bool = False
    """It is one message, and the assistant's."""
    turns: tuple[TextCounts, ...] = field(default=(), repr=False)
    """Of a whole prompt: its last messages one by one, those after each message boundary that is remembered."""

    def plus(self, more: TextCounts) -> TextCounts:
        """Both together."""
        return TextCounts(
            tuple(map(add, self.features, more.features)),
            self.bytes + more.bytes,
            self.messages + more.messages,
            self.results + more.results,
            self.tools + more.tools,
            self.offered or more.offered,
        )


def count_text(pieces: Sequence[bytes], messages: int = 0, *, results: int = 0) -> TextCounts:
    """Count one text given in pieces."""
    text = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    kinds = _kinds(_sample(text, CLASS_SAMPLE))
    sample = _sample(text, PAIR_SAMPLE)
    letters = sample.translate(_LETTERS)
    pairs = map(float, map(letters.count, _PAIRS.values()))
    if len(text) > PAIR_SAMPLE:
        pairs = map(mul, pairs, repeat(len(text) / len(sample)))
        if len(text) > CLASS_SAMPLE:
            scale = len(text) / (CLASS_SAMPLE // _SLICES * _SLICES)
            kinds = [scale * count for count in kinds]
    return TextCounts((*kinds, *pairs), len(text), messages, results)


def count_prompt(
    text: bytes,
    boundaries: Sequence[int],
    *,
    messages: int,
    results: int = 0,
    tools: int = 0,
    tool_bytes: int = 0,
    thoughts: Sequence[tuple[int, int]] = (),
    question: int = 0,
) -> TextCounts:
    """Count a rendered prompt, its last messages each on their own, so that any tail of them costs nothing more.

    `tool_bytes` of it, at its start, are the JSON of the tools. `boundaries`: bytes to the end of those messages by
    which a prefix may be found, ascending. `thoughts`: (start, end) of reasoning, ascending; `question`: where the last
    question begins.
    """
    ends = [*boundaries] if boundaries and boundaries[-1] == len(text) else [*boundaries, len(text)]
    offered = count_text((text[:tool_bytes],)).features if tool_bytes else ()
    whole = count_text(_without(text, tool_bytes, ends[0], thoughts))
    turns = tuple([_turn(text, start, end, thoughts) for start, end in pairwise(ends)])
    for turn in turns:
        whole = whole.plus(turn)
    new = [text[start:end] for start, end in thoughts if start >= question]
    past = [text[start:end] for start, end in thoughts if start < question]
    return TextCounts(
        features=whole.features,
        bytes=len(text),
        messages=messages,
        results=results,
        tools=tools,
        offered=offered,
        thought=count_text(new).features if new else (),
        past_thought=count_text(past).features if past else (),
        bare=not text.startswith((b"system\n", b"developer\n"), tool_bytes),
        turns=turns,
    )


def _turn(text: bytes, start: int, end: int, thoughts: Sequence[tuple[int, int]]) -> TextCounts:
    """One message."""
    counts = count_text(_without(text, start, end, thoughts))
    mine = [text[at:stop] for at, stop in thoughts if start <= at < end]
    return TextCounts(
        features=counts.features,
        bytes=end - start,
        messages=1,
        results=int(text.startswith(b"tool\n", start, end)),
        thought=count_text(mine).features if mine else (),
        answer=text.startswith(b"assistant\n", start, end),
    )


def _without(text: bytes, start: int, end: int, thoughts: Sequence[tuple[int, int]]) -> list[bytes]:
    """A part of the text, in pieces, less the reasoning in it."""
    pieces = []
    for at, stop in thoughts:
        if start <= at < end:
            pieces.append(text[start:at])
            start = stop
    return [*pieces, text[start:end]]


def _sample(text: bytes, most: int) -> bytes:
    """All of a text, or slices of it at even distances."""
    if len(text) <= most:
        return text
    piece, distance = most // _SLICES, len(text) // _SLICES
    return b"".join([text[start : start + piece] for start in range(0, distance * _SLICES, distance)])


def _kinds(text: bytes) -> list[float]:
    """Bytes of each kind of ASCII, then characters of each kind beyond it."""
    leads = b""
    if not text.isascii():
        leads = text.translate(None, _LOW_OR_CONTINUED)
        text = text.translate(None, _HIGH)
    return [*_by_deletion(text, _ASCII.values()), *_by_deletion(leads, _LEADS.values())]


def _by_deletion(text: bytes, kinds: Iterable[bytes]) -> list[float]:
    """How many bytes of each kind there are: the most frequent first, each from what the ones before left over."""
    found = []
    for kind in kinds:
        rest = text.translate(None, kind) if text else text
        found.append(float(len(text) - len(rest)))
        text = rest
    return found
