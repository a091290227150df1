"""Whole answers: JSON, and errors in the dialect that clients read."""

from __future__ import annotations

import math

import msgspec

from gateway.edge.downstream import ClientDownstream
from gateway.edge.head import Headers
from gateway.errors import BodyTimeout, GatewayError, NotAdmitted, OverQuota, RequestError, UpstreamError

__all__ = ["answer_error", "answer_json", "cut_short", "error_headers", "retry_after_field"]

_RETRY_CAP = 59
"""Seconds; older SDKs wait as told only below 60 s and fall back to their own short back-off above."""


def retry_after_field(seconds: float) -> str:
    """Retry-After as whole seconds, 1 to 59."""
    if not math.isfinite(seconds):
        return str(_RETRY_CAP)
    return str(min(max(math.ceil(seconds), 1), _RETRY_CAP))


def _final(err: GatewayError) -> bool:
    """Whether the same request would be turned down again."""
    if isinstance(err, UpstreamError):
        return err.status < 500 and err.status not in (408, 409, 429)
    return isinstance(err, RequestError | NotAdmitted) and not isinstance(err, BodyTimeout)


def error_headers(err: GatewayError) -> list[tuple[str, str]]:
    """Fields of an error answer: when to retry, or that it can't help, and which decision it was."""
    fields: list[tuple[str, str]] = []
    if isinstance(err, OverQuota) and err.retry_after is not None and err.retry_after > _RETRY_CAP:
        # Nothing that an SDK does by itself helps before that; a person or a program that reads it is told the truth.
        fields += [("retry-after", str(math.ceil(err.retry_after))), ("x-should-retry", "false")]
    elif err.retry_after is not None:
        fields.append(("retry-after", retry_after_field(err.retry_after)))
    elif _final(err):
        fields.append(("x-should-retry", "false"))
    if err.decision_id is not None:
        fields.append(("x-kvgate-decision", err.decision_id))
    return fields


def answer_json(down: ClientDownstream, status: int, body: bytes | object, headers: Headers = ()) -> None:
    """Send one whole JSON answer; `body` is JSON already when it is bytes."""
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    down.start(status, (("content-type", "application/json"), *headers), len(data))
    down.write(data)
    down.end()


def answer_error(down: ClientDownstream, err: GatewayError, headers: Headers = ()) -> None:
    """Send an error as the whole answer, in the client's dialect. Nothing may have been sent before."""
    answer_json(down, err.status, down.dialect.body(err), (*error_headers(err), *headers))


def cut_short(down: ClientDownstream, err: GatewayError) -> None:
    """Say no after whatever was said so far: as an answer, as a stream's last event, or by cutting the body."""
    if down.ended or down.closed:
        return
    if not down.started:
        answer_error(down, err)
        return
    if down.event_stream:
        down.write(down.dialect.event(err))
        down.cut_off()
        return
    down.abort()
