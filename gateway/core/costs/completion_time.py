"""The time until the whole answer is there."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.weighing import Weighing

__all__ = ["CompletionTime"]


@dataclass(frozen=True, slots=True)
class CompletionTime:
    """Expected completion: time to first token, then the expected output at this backend's time per token.

    The first part holds the prefill queued there and the part of the prompt that isn't cached; the second is stretched
    by prefills that cut in. First token alone would pile long answers on the device that reads fastest.
    """

    @property
    def name(self) -> str:
        """What the trace calls it."""
        return "completion_time"

    def seconds(self, weighing: Weighing) -> float:
        """TTFT + output * TPOT."""
        return weighing.completion
