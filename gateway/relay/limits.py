"""How long each phase of an exchange may take, and what is told to whom on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.wire.usage import Usage

__all__ = ["Hooks", "Limits"]


def _nothing() -> None:
    pass


def _nothing_of(_tokens: int) -> None:
    pass


def _nothing_counted(_usage: Usage) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, infinity for no limit; there is none on the whole, because a healthy answer may take an hour.

    `first_token_s` runs from the request sent to the first token; for an answer that is not streamed that is all of
    the generation, and the caller sizes it so and says in `whole_by` from which limits. `token_gap_s` runs between
    events that are not comments. `write_s` is how long a client may stay over its high-water mark. `keepalive_s` of
    silence draws a comment to the client. `answer_bytes` bounds an answer that is held whole, in bytes as it comes.
    `connect_s` None: the pool's own.
    """

    connect_s: float | None = None
    first_token_s: float = 300.0
    token_gap_s: float = 60.0
    write_s: float = 30.0
    keepalive_s: float = 15.0
    answer_bytes: int = 64 << 20
    whole_by: str = ""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Called on the loop, inside a read: quick, and never raising.

    `first_token` once; `progress` with the number of token events so far, every 64 of them and not for each; right
    before it, and after `first_token`, `counted` with what the engine has told of its usage so far, if anything.
    """

    first_token: Callable[[], None] = _nothing
    progress: Callable[[int], None] = _nothing_of
    counted: Callable[[Usage], None] = _nothing_counted
