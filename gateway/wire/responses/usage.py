"""What an answer cost, in the figures of a response."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.wire.usage import Usage, usage_of

__all__ = ["response_usage"]


def response_usage(usage: object, timings: object = None) -> Usage | None:
    """The usage of a response object; `timings` are llama.cpp's, beside it. None when neither tells any."""
    told: dict[str, object] = {"timings": timings}
    if isinstance(usage, Mapping):
        told["usage"] = {
            "prompt_tokens": usage.get("input_tokens"),
            "completion_tokens": usage.get("output_tokens"),
            "prompt_tokens_details": usage.get("input_tokens_details"),
        }
    return usage_of(told)
