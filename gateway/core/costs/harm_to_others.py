"""The time that requests which already decode there would lose."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.weighing import Weighing

__all__ = ["HarmToOthers"]


@dataclass(frozen=True, slots=True)
class HarmToOthers:
    """Each decoding sequence is held up by this prefill, then takes part in longer steps.

    `weight` 0.35: between 0.25 and 0.5 nothing changes, 2 and more hurts (found by simulation).
    """

    weight: float = 0.35

    @property
    def name(self) -> str:
        """What the trace calls it."""
        return "harm_to_others"

    def seconds(self, weighing: Weighing) -> float:
        """`weight` times decoding sequences times (prefill + output * lengthening of a step)."""
        view = weighing.view
        decoding = view.decoding
        if decoding == 0 or self.weight == 0.0:
            return 0.0
        before = weighing.offer.speed.decode.step_seconds(decoding, view.resident) * view.decode_factor
        longer = weighing.step - before
        held = weighing.prefill + weighing.demand.output_mean * longer if longer > 0.0 else weighing.prefill
        return self.weight * decoding * held
