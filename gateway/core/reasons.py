"""The closed set of reasons: HTTP body, metric label, journal field and CLI text all come from here."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["SENTENCES", "Reason"]


class Reason(StrEnum):
    """Why a request was admitted, waits, or was turned down; also why one candidate fell out."""

    # A verdict of yes or not yet.
    ADMITTED = "admitted"
    QUEUED = "queued"
    WORTH_WAITING = "worth_waiting"

    # Why one candidate backend fell out (set by filters).
    NOT_SERVED = "not_served"
    OUTSIDE_BOUNDARY = "outside_boundary"
    DOWN = "down"
    LOADING = "loading"
    DRAINING = "draining"
    BREAKER_OPEN = "breaker_open"
    RESTING = "resting"
    MISSING_ABILITY = "missing_ability"
    SURFACE_NOT_OFFERED = "surface_not_offered"
    NOT_THE_KEEPER = "not_the_keeper"
    WINDOW_TOO_SMALL = "window_too_small"
    POOL_TOO_SMALL = "pool_too_small"
    KV_FULL = "kv_full"
    SLOTS_FULL = "slots_full"
    TPOT_LIMIT = "tpot_limit"
    LEARNED_LIMIT = "learned_limit"
    DECODE_PACE = "decode_pace"
    PREFILL_BACKLOG = "prefill_backlog"
    ALREADY_TRIED = "already_tried"
    CLASS_CEILING = "class_ceiling"
    KV_SCARCE = "kv_scarce"
    OTHER_MODEL = "other_model"
    PREFIX_IN_PREFILL = "prefix_in_prefill"

    # Why the whole request was turned down.
    UNKNOWN_MODEL = "unknown_model"
    MODEL_NOT_ALLOWED = "model_not_allowed"
    WRONG_KEY = "wrong_key"
    CONTEXT_TOO_LONG = "context_too_long"
    OVER_QUOTA = "over_quota"
    QUEUE_FULL = "queue_full"
    QUEUE_TIMEOUT = "queue_timeout"
    DEADLINE = "deadline"
    NO_BACKEND = "no_backend"
    RETRIES_SPENT = "retries_spent"
    SHUTTING_DOWN = "shutting_down"
    CLIENT_CLOSED = "client_closed"


SENTENCES: dict[Reason, str] = {
    Reason.ADMITTED: "admitted",
    Reason.QUEUED: "waiting in the gateway's queue for a place",
    Reason.WORTH_WAITING: "waiting: a better backend frees up sooner than the open one would finish",
    Reason.NOT_SERVED: "does not serve this model",
    Reason.OUTSIDE_BOUNDARY: "is cleared for less than this request's data label",
    Reason.DOWN: "does not answer",
    Reason.LOADING: "is loading its model",
    Reason.DRAINING: "is being drained and takes nothing new",
    Reason.BREAKER_OPEN: "failed repeatedly and rests before its next trial",
    Reason.RESTING: "is busy and asked for a pause",
    Reason.MISSING_ABILITY: "lacks an ability that this request needs",
    Reason.SURFACE_NOT_OFFERED: "does not speak the API that was called, nor one that it can be translated to",
    Reason.NOT_THE_KEEPER: "does not keep the answer that this request goes on from",
    Reason.WINDOW_TOO_SMALL: "has a context window below this request",
    Reason.POOL_TOO_SMALL: "has a KV pool that could never hold this request",
    Reason.KV_FULL: "has too little free KV cache now",
    Reason.SLOTS_FULL: "runs as many requests as it may",
    Reason.DECODE_PACE: "reads so many prompts that one more would slow its answers beyond the objective",
    Reason.TPOT_LIMIT: "runs as many requests as keep its time per token within the objective",
    Reason.LEARNED_LIMIT: "runs as many requests as it was found to bear",
    Reason.PREFILL_BACKLOG: "has more seconds of prefill queued than allowed",
    Reason.ALREADY_TRIED: "has already failed this request",
    Reason.CLASS_CEILING: "has no KV cache left for this class of request",
    Reason.KV_SCARCE: "takes no long new prompt while KV cache is scarce",
    Reason.PREFIX_IN_PREFILL: "is reading the start of this prompt for another request",
    Reason.OTHER_MODEL: "runs another model, and holds one at a time",
    Reason.UNKNOWN_MODEL: "no model of this name is served here",
    Reason.MODEL_NOT_ALLOWED: "this key may not use this model",
    Reason.WRONG_KEY: "the API key is missing or not known",
    Reason.CONTEXT_TOO_LONG: "the prompt is longer than any backend that may serve it can hold",
    Reason.OVER_QUOTA: "a limit of this key is reached",
    Reason.QUEUE_FULL: "the queue for this model is full",
    Reason.QUEUE_TIMEOUT: "no place freed up within the queue's wait limit",
    Reason.DEADLINE: "the first token can't come before the deadline",
    Reason.NO_BACKEND: "no backend that may serve this is working",
    Reason.RETRIES_SPENT: "every allowed attempt failed",
    Reason.SHUTTING_DOWN: "the gateway is shutting down",
    Reason.CLIENT_CLOSED: "the client left",
}
"""One sentence fragment a reason, readable after a backend's name or after "refused:"."""
