"""A client's body as one engine is asked: translated where need be, and where its members lie. Bytes in, values out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.wire.formats import FORMATS
from gateway.wire.members import Member, members
from gateway.wire.translations import translation

__all__ = ["Rewriting", "Rewritten", "rewritten"]


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What is to be done. `client` and `spoken` are surfaces; the rest is as for `Format.edits`."""

    client: str
    spoken: str
    model: str | None = None
    stream: bool | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What was found: the members of the body that is sent, the edits that its own form asks for (None where the
    engine's adapter knows), the translation's context, and what it has no place for."""

    members: tuple[Member, ...] = ()
    edits: Mapping[str, bytes | None] | None = None
    context: object = None
    lost: tuple[str, ...] = ()


def rewritten(told: Rewriting, body: bytes) -> tuple[Rewritten, bytes]:
    """The findings, and the body in translation; empty where it is sent as it came. Raises MalformedRequest."""
    made, context = b"", None
    if told.spoken != told.client:
        translated = translation(told.client, told.spoken).request(body)
        if translated.lost:
            return Rewritten(lost=translated.lost), b""
        made, context = translated.body, translated.context
    form = FORMATS.get(told.spoken)
    edits = None
    if form is not None and form.edits is not None:
        edits = form.edits(made or body, told.model, told.stream, told.max_tokens)
    return Rewritten(tuple(members(made or body)), edits, context), made
