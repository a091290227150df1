"""Reasons to end an answer that mean that the engine did not finish it."""

from __future__ import annotations

from gateway.errors import StreamBroken

__all__ = ["gave_up", "require_an_end"]

_GAVE_UP = frozenset(
    (
        "abort",  # vLLM, SGLang, LMDeploy
        "aborted",
        "cancel",
        "canceled",
        "cancelled",  # TensorRT-LLM
        "error",  # vLLM, OpenRouter
        "evicted",
        "eviction",
        "fail",
        "failed",
        "failure",
        "insufficient_system_resource",  # DeepSeek
        "interrupted",
        "not_finished",  # TensorRT-LLM
        "out_of_memory",
        "preempted",
        "preemption",
        "timeout",  # TensorRT-LLM
    )
)


def gave_up(reason: str | None) -> bool:
    """Whether a finish_reason, as any engine writes it, says that the answer is none. Others that nobody knows do not:
    engines have their own names for a good end ("eos", "stop_sequence")."""
    return reason is not None and reason.lower() in _GAVE_UP


def require_an_end(reason: str | None) -> None:
    """Raise StreamBroken unless a stream's finish_reason says that the answer came to an end."""
    if reason is None:
        raise StreamBroken("the engine's answer ended without saying why")
    if gave_up(reason):
        raise StreamBroken("the engine gave the answer up")
