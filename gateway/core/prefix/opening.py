"""What stays the same of a conversation's beginning even where somebody writes the time into it.

Clocks, counters and checksums at the head of a prompt undo every prefix cache, and would undo affinity too: a request
would be a stranger each turn. So what places a prompt, and what a conversation is known by, is read without them.
"""

from __future__ import annotations

from xxhash import xxh3_64_intdigest

from gateway.core.prefix.chain import HEAD_BYTES

__all__ = ["Opening", "opening_of"]

Opening = tuple[int, int]
"""(placement, thread): where a cold prompt goes; which conversation of equal placement it is."""

_ATTRIBUTION = b"x-anthropic-billing-header:"
"""Claude Code's first line, with another checksum each time."""
_HEX = b"0123456789abcdefABCDEF"
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_MONTHS = "January February March April May June July August September October November December"
_NAMES = [name.encode() for name in f"{_DAYS} {_MONTHS}".split()]
_NAMES += [name[:3] for name in _NAMES if name != b"May"] + [b"AM", b"PM", b" am", b" pm"]
_QUESTION_BYTES = 16 * 1024


def _steady(head: bytes) -> bytes:
    """The text without attribution, numbers, checksums, and names of days and months.

    Much else goes with the letters that hexadecimal numbers have, but always the same; a regular expression that looks
    for numbers only takes ten times as long.
    """
    at = head.find(_ATTRIBUTION)
    if at >= 0:
        end = head.find(b"\n", at)
        head = head[:at] + (head[end:] if end >= 0 else b"")
    for name in _NAMES:
        head = head.replace(name, b"")
    return head.translate(None, _HEX)


def opening_of(prompt: bytes, question: tuple[int, int], seed: int) -> Opening:
    """The opening of a rendered prompt; `question` is where the first message of the user's lies in it.

    At most 4 KiB are read without what changes, and 16 KiB of the question as it is;
    some 0.1 ms on a slow core.
    """
    start, end = question
    if end <= start:
        start = end = len(prompt)
    steady = _steady(prompt[: min(start, HEAD_BYTES)])
    if start > HEAD_BYTES:  # where a line was cut moves with the length of what changes before it
        steady = steady[: steady.rfind(b"\n") + 1] or steady
    asked = prompt[start : min(end, start + _QUESTION_BYTES)]
    placement = xxh3_64_intdigest(steady, seed)
    thread = xxh3_64_intdigest(asked, placement)
    return (placement if start >= HEAD_BYTES else thread), thread
