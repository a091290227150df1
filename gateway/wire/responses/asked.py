"""What the answer to a translated request must know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

__all__ = ["Asked", "Origin", "ToolKind", "asked_of"]


class ToolKind(Enum):
    """Tools that a client runs itself, by the kind of item that a call of them is."""

    FUNCTION = auto()
    CUSTOM = auto()
    """Takes text without JSON around it, like the patches of coding agents."""
    LOCAL_SHELL = auto()
    TOOL_SEARCH = auto()


@dataclass(frozen=True, slots=True)
class Origin:
    """A tool as the client knows it, whatever name chat has for it."""

    kind: ToolKind
    name: str
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """The context of a translation.

    settings: the request's settings as members of a response object, raw JSON without braces. tools: by the name that
    chat has, where a call is not simply a function of that name. summary: reasoning is wanted as a summary, where
    clients that ask for one look for it. logprobs: they are wanted in the answer.
    """

    settings: bytes = field(default=b"", repr=False)
    tools: Mapping[str, Origin] = field(default_factory=dict)
    summary: bool = False
    logprobs: bool = False

    def origin(self, name: str) -> Origin:
        """The client's tool of that name in chat; a function where there is none, as when a model made it up."""
        return self.tools.get(name) or Origin(ToolKind.FUNCTION, name)


def asked_of(context: object) -> Asked:
    """The context as what it is; one without anything asked where it is another translation's."""
    return context if isinstance(context, Asked) else Asked()
