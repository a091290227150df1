"""From an engine's failure to what the client is told: its own fault as its own, everything else as ours."""

from __future__ import annotations

from gateway.core.failure import FailureKind
from gateway.core.reasons import Reason
from gateway.engines.adapter import Failure
from gateway.errors import (
    AnswerTooLarge,
    BadStatus,
    ContextTooLong,
    GatewayError,
    MalformedRequest,
    NoRoom,
    NotOffered,
    Saturated,
    Unavailable,
    UpstreamError,
)
from gateway.wire.error_body import upstream_error
from gateway.wire.scrub import scrubbed

__all__ = ["engine_refusal", "most_telling"]

_NOT_BEGUN = frozenset((FailureKind.CONNECT, FailureKind.BUSY))
_FULL = frozenset((Reason.QUEUE_FULL, Reason.QUEUE_TIMEOUT, Reason.DEADLINE, Reason.OVER_QUOTA, Reason.RESTING))
_BUSY_AGAIN = 5.0
"""Seconds to tell a client whose engine did not say."""


def engine_refusal(
    failure: Failure, error: UpstreamError, again: float | None = None, names: dict[str, str] | None = None
) -> GatewayError:
    """Return what to raise when no further attempt is made.

    4xx only for what the caller can fix, with the engine's own words; a backend's trouble with our key or model name
    is a 502. `again`: seconds after which a client may try what may pass. `names`: the engine's names for what the
    client knows by others.
    """
    if isinstance(error, AnswerTooLarge | NoRoom):
        return error
    if failure.kind is FailureKind.CONTEXT:
        return ContextTooLong(failure.message, param="messages")
    if failure.kind is FailureKind.CLIENT:
        return _client_fault(failure, error, names or {})
    if failure.kind is FailureKind.BUSY:
        named = error.retry_after
        later = named if named is not None else again if again is not None else _BUSY_AGAIN
        return Saturated("The engine is busy and turned this request away.", code="engine_busy", retry_after=later)
    if failure.kind is FailureKind.LOADING:
        return Unavailable("The engine is loading its model.", code="model_loading", retry_after=10)
    if failure.kind is FailureKind.NOT_OFFERED:
        said = scrubbed(failure.message, names)
        return NotOffered(f"No backend of this model offers what was called: {said}.", param="model")
    if failure.kind in (FailureKind.CREDENTIALS, FailureKind.NOT_FOUND):
        return BadStatus(
            "A backend refused the gateway's own credentials or model name.", code="upstream_misconfigured"
        )
    if isinstance(error, BadStatus):
        return BadStatus("The engine failed on this request.", retry_after=again)
    error.retry_after = again
    return error


def most_telling(
    refused: GatewayError, failure: tuple[Failure, UpstreamError] | None, names: dict[str, str]
) -> GatewayError:
    """What the client is told when no further attempt finds a backend.

    What an engine made of the request says more than any refusal of ours, and is the same whether or not another one
    was there to try. Only of one that did not begin with it is less to say than that the others are full.
    """
    if failure is None or refused.reason is Reason.SHUTTING_DOWN:
        return refused
    if failure[0].kind is FailureKind.NOT_CLEARED:
        return refused  # no engine made anything of it
    if failure[0].kind in _NOT_BEGUN and refused.reason in _FULL:
        return refused
    return engine_refusal(*failure, again=refused.retry_after, names=names)


def _client_fault(failure: Failure, error: UpstreamError, names: dict[str, str]) -> GatewayError:
    said = upstream_error(error.status, error.payload) if isinstance(error, BadStatus) else None
    refusal = MalformedRequest(scrubbed(failure.message, names))
    if isinstance(error, BadStatus) and 400 <= error.status < 500 and error.status not in (401, 403, 407):
        refusal.status = error.status
    if said is not None:
        param, code, kind = said.get("param"), said.get("code"), said.get("type")
        refusal.param = param if isinstance(param, str) else None
        if isinstance(code, str):
            refusal.code = code
        if isinstance(kind, str) and kind.endswith("_error"):
            refusal.type = kind
    return refusal
