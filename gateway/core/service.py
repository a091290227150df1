"""What a request takes of a device, in device seconds: the unit in which turns are shared out (algorithms 2.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.core.backend import Offer
    from gateway.core.decision import Decision
    from gateway.core.lease import Ended
    from gateway.core.snapshot import BackendView

__all__ = ["Service", "service_of"]

_REFERENCE = 1e12
"""Bytes a second of memory bandwidth that count as one device: a second of a faster one is worth more."""
_KV = 0.5
"""What holding a whole KV pool for a second counts, in device seconds."""
_BATCH = 32
"""Sequences in a full batch, where a backend bears more."""


@dataclass(frozen=True, slots=True)
class Service:
    """Of one request where it runs, in device seconds: the prefill, each output token, and each second that it stays.

    `uncached` prompt tokens and `output` tokens are those it was expected to have, `ttft` and `seconds` when its first
    token was to come and how long it was to run.
    """

    prefill: float
    token: float
    second: float
    uncached: int
    output: int
    ttft: float
    seconds: float

    @property
    def predicted(self) -> float:
        """What it is charged when it is dispatched."""
        return self.prefill + self.token * self.output + self.second * self.seconds

    def actual(self, ended: Ended, seconds: float) -> float:
        """What it took, as far as is known: tokens as its engine counted them, and how long it ran.

        Of a prompt that was given up while it was read counts the part that was read by then.
        """
        prefill = self.prefill
        if ended.prompt_tokens is not None and ended.cached_tokens is not None and self.uncached > 0:
            prefill *= max(0, ended.prompt_tokens - ended.cached_tokens) / self.uncached
        elif ended.ttft is None and not ended.completed and self.ttft > 0.0:
            prefill *= min(1.0, seconds / self.ttft)
        return prefill + self.token * (ended.output_tokens or 0) + self.second * seconds


def service_of(decision: Decision, view: BackendView, offer: Offer) -> Service:
    """What an admitted request takes of `view`, the backend that it was admitted to, as `offer` of it.

    What it takes by its own nature, whoever runs beside it: its prompt read alone, and its part of the steps of a batch
    as large as the backend bears. Who happens to come first does not pay for an empty machine.
    """
    footprint = decision.footprint
    if footprint is None:
        return Service(0.0, 0.0, 0.0, 0, 0, 0.0, 0.0)
    device, speed = view.backend.device, offer.speed
    weight = device.bandwidth * device.count / _REFERENCE
    output = footprint.output_mean * footprint.sequences
    context = footprint.prompt + footprint.output_mean // 2
    batch = min(view.slots, _BATCH)
    if view.pool > 0:
        batch = min(batch, view.pool // max(context, 1))
    batch = max(batch, 1)
    step = speed.decode.step_seconds(batch, batch * context) * view.decode_factor
    held = footprint.kv / view.pool if view.pool > 0 else footprint.sequences / max(view.slots, 1)
    return Service(
        prefill=weight * speed.prefill.seconds(footprint.uncached, footprint.cached) * view.prefill_factor,
        token=weight * step / batch,
        second=weight * _KV * min(held, 1.0),
        uncached=footprint.uncached,
        output=output,
        ttft=decision.predicted_ttft or 0.0,
        seconds=(decision.predicted_ttft or 0.0) + footprint.output_mean * (decision.predicted_tpot or 0.0),
    )
