"""The text of a tool that takes text, out of the function arguments that chat wraps it in.

`{"input": "..."}` is unwrapped while it arrives. Models make mistakes in it (another name, a text without any JSON, an
escape that is none), and a client can do more with the text as it is than with nothing.
"""

from __future__ import annotations

import json
import re

__all__ = ["CustomInput"]

_HEAD = re.compile(r'\s*\{\s*"input"\s*:\s*"')
_LONGEST_HEAD = 64
"""Characters within which the text has begun, or does not begin as it should."""
_LONGEST_ESCAPE = 12
r"""Characters of an escaped surrogate pair, `\ud83d\ude00`."""
_RUN = re.compile(
    r'(?:[^"\\]++|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+"
)
_HALF = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


class CustomInput:
    """One call's input; `text` is what of it is known so far."""

    __slots__ = ("_begun", "_closed", "_odd", "_pending", "_pieces")

    def __init__(self) -> None:
        self._pending: list[str] = []
        self._pieces: list[str] = []
        self._begun = self._closed = self._odd = False

    @property
    def text(self) -> str:
        """All that `add` and `end` have given."""
        return "".join(self._pieces)

    def add(self, fragment: str) -> str:
        """Take a fragment of the arguments; return the text that it adds."""
        if self._closed:
            return ""
        self._pending.append(fragment)
        if self._odd:
            return ""
        rest = "".join(self._pending)
        if not self._begun:
            head = _HEAD.match(rest)
            if head is None:
                self._odd = len(rest) > _LONGEST_HEAD
                return ""
            self._begun = True
            rest = rest[head.end() :]
        return self._take(rest, final=False)

    def end(self, *, cut: bool = False) -> str:
        """The arguments are whole, or `cut` off; return the rest of the text."""
        rest = "".join(self._pending)
        if self._begun:
            return "" if self._closed else self._take(rest, final=True)
        text = "" if cut else _unwrapped(rest)
        self._pieces.append(text)
        return text

    def _take(self, rest: str, *, final: bool) -> str:
        found: list[str] = []
        at = 0
        while True:
            run = _RUN.match(rest, at)
            if run is not None and run.end() > at:
                found.append(json.loads(f'"{run[0]}"', strict=False))
                at = run.end()
            if at >= len(rest):
                break
            if rest[at] == '"':
                self._closed = True
                at = len(rest)
                break
            if len(rest) - at < _LONGEST_ESCAPE and not final:
                break  # the escape may go on in the next fragment
            if _HALF.match(rest, at):
                found.append("\N{REPLACEMENT CHARACTER}")
                at += 6
            elif len(rest) - at > 1 and rest[at + 1] != "u":
                found.append(rest[at : at + 2])  # `\d` in a pattern, say: not JSON, but what was meant
                at += 2
            elif final:
                break  # cut in the middle of an escape
            else:
                found.append(rest[at])
                at += 1
        self._pending = [rest[at:]] if at < len(rest) else []
        text = "".join(found)
        if text:
            self._pieces.append(text)
        return text


def _unwrapped(arguments: str) -> str:
    try:
        value = json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
        return _whole(arguments)
    if isinstance(value, dict):
        texts = [text for text in (value.get("input"), *value.values()) if isinstance(text, str)]
        if texts and (len(value) == 1 or isinstance(value.get("input"), str)):
            return _whole(texts[0])
    return _whole(value if isinstance(value, str) else arguments)


def _whole(text: str) -> str:
    # JSON can escape half of a surrogate pair, which no UTF-8 can carry on.
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text
