"""A whole chat answer as a response."""

from __future__ import annotations

from gateway.wire.chat_answer import Delta, read_chat, usage_in
from gateway.wire.responses.asked import asked_of
from gateway.wire.responses.grown import Repeating
from gateway.wire.responses.log_probabilities import log_probabilities
from gateway.wire.responses.output import Output
from gateway.wire.responses.response_object import INCOMPLETE, response_object, usage_figures
from gateway.wire.translation import Stamp
from gateway.wire.usage import usage_of

__all__ = ["answer"]


def answer(body: bytes, context: object, stamp: Stamp) -> bytes:
    """The first choice as a response; `context` is what `to_chat` gave. Raises StreamBroken for what is no answer."""
    told, choice = read_chat(body)
    asked = asked_of(context)
    output = Output(asked, stamp, lambda _kind, _members: None)
    output.take(choice.message or Delta(), log_probabilities(choice.logprobs) if asked.logprobs else [])
    reason = INCOMPLETE.get(choice.finish_reason or "")
    status = "completed" if reason is None else "incomplete"
    usage = usage_figures(usage_of(usage_in(told)), told.usage)
    repeating = Repeating()
    made = response_object(asked, stamp, status, output.finish(status), usage, reason, repeating.encode)
    return b"".join(repeating.pieces(bytes(made)))
