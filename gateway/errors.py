"""One exception family.

GatewayError                       status, type, code, Reason?, retry_after?
├── RequestError                   the client can fix it; never retried, never sampled
│   ├── MalformedRequest 400
│   ├── Unauthorized 401
│   ├── Forbidden 403
│   ├── UnknownModel 404
│   ├── NotFound 404
│   ├── NotOffered 404             no backend speaks what was called, nor what it translates to
│   ├── MethodNotAllowed 405
│   ├── BodyTimeout 408
│   ├── BodyTooLarge 413
│   ├── UnsupportedCoding 415
│   └── ContextTooLong 400         code context_length_exceeded
├── NotAdmitted                    the decision was no
│   ├── OverQuota 429
│   ├── Saturated 429              working backends are full
│   └── Unavailable 503            none works
├── UpstreamError                  the engine's fault; settles the lease
│   ├── ConnectFailed 502
│   ├── TimedOut 504
│   ├── BadStatus                  the engine's own status, or 502
│   ├── AnswerTooLarge 502         to be held whole; another backend's would be no shorter
│   ├── NoRoom 503                 memory is full: not the engine's fault, nothing is tried again
│   ├── NotSpoken 404              this engine turned out not to speak the surface
│   └── StreamBroken 502           after the first byte: an in-band error event, then the end
├── ClientClosed 499               nobody is there to read the answer
├── StoreError 503                 policy says: go on with a local share, or refuse
└── ConfigError                    start, reload and `check`: file, line, path, nearest key
"""

from __future__ import annotations

from typing import ClassVar

from gateway.core.reasons import Reason

__all__ = [
    "AnswerTooLarge",
    "BadStatus",
    "BodyTimeout",
    "BodyTooLarge",
    "ClientClosed",
    "ConfigError",
    "ConnectFailed",
    "ContextTooLong",
    "Forbidden",
    "GatewayError",
    "MalformedRequest",
    "MethodNotAllowed",
    "NoRoom",
    "NotAdmitted",
    "NotFound",
    "NotOffered",
    "NotSpoken",
    "OverQuota",
    "RequestError",
    "Saturated",
    "StoreError",
    "StreamBroken",
    "TimedOut",
    "Unauthorized",
    "Unavailable",
    "UnknownModel",
    "UnsupportedCoding",
    "UpstreamError",
]


class GatewayError(Exception):
    """Anything kvgate says no with; an edge turns it into the dialect of the surface that was called.

    `message` is for a person and never holds prompt text or a key. `retry_after` is in seconds.
    """

    status: int = 500
    type: str = "server_error"
    code: str = "internal_error"
    default_reason: ClassVar[Reason | None] = None

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        reason: Reason | None = None,
        retry_after: float | None = None,
        decision_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        if code is not None:
            self.code = code
        self.reason = reason if reason is not None else self.default_reason
        self.retry_after = retry_after
        self.decision_id = decision_id


class RequestError(GatewayError):
    """The client can fix it; never retried, never counted against a backend."""

    status = 400
    type = "invalid_request_error"
    code = "invalid_request"


class MalformedRequest(RequestError):
    """The body or its framing is not what the surface asks for."""


class Unauthorized(RequestError):
    """No key, or a key that is not configured."""

    status = 401
    type = "authentication_error"
    code = "invalid_api_key"
    default_reason = Reason.WRONG_KEY


class Forbidden(RequestError):
    """The key is known but may not do this."""

    status = 403
    type = "permission_error"
    code = "not_allowed"
    default_reason: ClassVar[Reason | None] = Reason.MODEL_NOT_ALLOWED


class UnknownModel(RequestError):
    """No configured or discovered model has this name."""

    status = 404
    code = "model_not_found"
    default_reason = Reason.UNKNOWN_MODEL


class NotFound(RequestError):
    """No such path."""

    status = 404
    code = "not_found"


class NotOffered(RequestError):
    """The model is served, but not over the surface that was called, nor in translation."""

    status = 404
    code = "surface_not_offered"
    default_reason: ClassVar[Reason | None] = Reason.SURFACE_NOT_OFFERED


class MethodNotAllowed(RequestError):
    """The path exists, the method does not."""

    status = 405
    code = "method_not_allowed"


class BodyTimeout(RequestError):
    """The body took longer to arrive than `server.limits.body_read`."""

    status = 408
    code = "body_timeout"


class BodyTooLarge(RequestError):
    """The body is over `server.limits.body`."""

    status = 413
    code = "body_too_large"


class UnsupportedCoding(RequestError):
    """A Content-Encoding that kvgate does not read."""

    status = 415
    code = "unsupported_content_encoding"


class ContextTooLong(RequestError):
    """The prompt is longer than any backend that may serve it can hold."""

    code = "context_length_exceeded"
    default_reason = Reason.CONTEXT_TOO_LONG


class NotAdmitted(GatewayError):
    """The decision was no, for now."""

    status = 503
    type = "overloaded_error"
    code = "not_admitted"


class OverQuota(NotAdmitted):
    """A limit of the caller's own key."""

    status = 429
    type = "rate_limit_error"
    code = "over_quota"


class Saturated(NotAdmitted):
    """Working backends are full and so is the queue, or the wait was too long."""

    status = 429
    type = "rate_limit_error"
    code = "saturated"


class Unavailable(NotAdmitted):
    """No backend that may serve this works right now."""

    status = 503
    code = "no_backend_available"


class UpstreamError(GatewayError):
    """The engine's fault; the lease is settled and the backend is blamed.

    `started` says whether the client had been shown anything by then; if so, nothing may be tried again.
    """

    status = 502
    type = "upstream_error"
    code = "upstream_error"
    started: bool = False
    unsaid: bool = False
    """The client's stream is still open and has not been told: the answer may go on elsewhere."""


class ConnectFailed(UpstreamError):
    """No connection to the engine: refused, reset before a byte, or over the connect limit."""

    code = "upstream_connect_failed"


class TimedOut(UpstreamError):
    """The engine went over the limit for the first token or for the gap between tokens."""

    status = 504
    code = "upstream_timeout"


class BadStatus(UpstreamError):
    """The engine answered with an error status; `payload` is the body that came with it, for its adapter to read."""

    code = "upstream_status"

    def __init__(self, message: str, *, status: int = 502, payload: bytes = b"", **rest: object) -> None:
        super().__init__(message, **rest)  # type: ignore[arg-type]
        self.status = status
        self.payload = payload


class NotSpoken(UpstreamError):
    """What one engine can't be asked for; another may. Nothing was sent, and nobody is to blame."""

    status = 404
    type = "invalid_request_error"
    code = "surface_not_offered"


class NotCleared(UpstreamError):
    """The file was changed after a backend had been chosen, which may not see the data any more. Nothing was sent."""

    status = 503
    code = "not_cleared"


class AnswerTooLarge(UpstreamError):
    """An answer that had to be held whole is over `server.limits.answer`."""

    code = "answer_too_large"


class NoRoom(UpstreamError):
    """There is no memory for what has to be done with a large body or answer (`server.limits.memory`)."""

    status = 503
    type = "overloaded_error"
    code = "memory_limit"

    def __init__(self, message: str = "large requests and answers fill the memory set aside for them") -> None:
        super().__init__(f"{message} (server.limits.memory); try again", retry_after=5.0)


class StreamBroken(UpstreamError):
    """The engine's answer ended before its terminal event."""

    code = "upstream_stream_broken"


class ClientClosed(GatewayError):
    """The client left; written to logs as 499, to nobody's socket."""

    status = 499
    type = "client_closed"
    code = "client_closed"
    default_reason = Reason.CLIENT_CLOSED


class StoreError(GatewayError):
    """The shared state does not answer."""

    status = 503
    code = "state_unavailable"


class ConfigError(GatewayError):
    """A file that can't be used; carries every problem found, each with its line."""

    type = "config_error"
    code = "config_invalid"
