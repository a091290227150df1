"""What an answer is to be like, as far as a request says: what its length depends on most, beside model and client."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

__all__ = ["PLAIN", "AnswerShape", "OutputKind"]


class OutputKind(StrEnum):
    """Answers of these kinds differ in length by an order of magnitude."""

    CHAT = "chat"
    TOOLS = "tools"
    """The request offers tools: mostly short calls."""
    REASONING = "reasoning"
    """The model thinks before it answers, and the thoughts count."""


class AnswerShape(NamedTuple):
    """A named tuple, since it is part of keys that are hashed often.

    `tools`: the request offers some. `reasoning`: how hard the model is to think, in the words of `reasoning_effort`;
    "on" without a level, "none" when it must not, empty when unsaid. `json`: the answer must be JSON.
    """

    tools: bool = False
    reasoning: str = ""
    json: bool = False

    @property
    def kind(self) -> OutputKind:
        """What to expect before anything was learned."""
        if self.reasoning not in ("", "none", "minimal"):
            return OutputKind.REASONING
        return OutputKind.TOOLS if self.tools else OutputKind.CHAT


PLAIN = AnswerShape()
"""Of a request that says nothing of the kind."""
