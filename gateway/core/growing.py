"""How much more to reserve for an answer that has used up most of its reservation.

A step covers what answers of this length turn out to need, so that a request costs the ledger a few writes and not one
a chunk (algorithms 1.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.core.output_quantiles import key_of, level_of, room_of

if TYPE_CHECKING:
    from gateway.core.estimators.output_length import OutputLengthEstimator
    from gateway.core.lease import Lease
    from gateway.core.snapshot import BackendView

__all__ = ["STEP", "STEP_SHARE", "further_output", "is_worth_a_write", "prompt_change"]

STEP, STEP_SHARE = 256, 0.05
"""Tokens, and part of a reservation, by which it changes at least."""


def prompt_change(lease: Lease, counted: int, cached: int | None) -> int:
    """KV tokens that a lease holds beyond what was reserved for its prompt, now that its engine has counted it.

    Whole blocks; negative: so many may be given back. A part of the prompt that was left out because running requests
    hold it, but that the engine did not take from its cache, is held by this one after all.
    """
    footprint, block = lease.decision.footprint, lease.block
    if footprint is None:
        return 0
    held = min(footprint.prompt_high, lease.offer.window)
    more = counted - held
    # Choices that share the prompt on one engine have a copy each on another: take much, give back little.
    change = -(-more // block) * block * footprint.sequences if more > 0 else -(-more // block * block)
    if cached is not None and cached < footprint.shared:
        change += (footprint.shared - cached) // block * block
    return change


def is_worth_a_write(change: int, reserved: int) -> bool:
    """Whether the ledger should be told of a change by so many tokens."""
    return abs(change) >= max(STEP, STEP_SHARE * reserved)


def further_output(lease: Lease, outputs: OutputLengthEstimator, view: BackendView) -> int:
    """Output tokens, over all choices, to reserve beyond what the lease has; 0 when its answer can't get longer.

    The conditional quantile of an answer that is as long as this one, at the level that the backend's room asks for;
    at least one step, and at most what the output limit and the window leave.
    """
    footprint, request = lease.decision.footprint, lease.request
    if footprint is None:
        return 0
    choices = max(1, footprint.sequences)
    most = lease.offer.window - footprint.prompt
    for limit in (footprint.max_tokens, request.max_tokens):
        if limit is not None and limit < most:
            most = limit
    room = choices * most - lease.reserved_output
    if room <= 0:
        return 0
    level = level_of(room_of(view), request.klass)
    length = outputs.quantile(level, key_of(lease.offer.model, request), lease.generated // choices, cap=most)
    step = max(STEP, int(STEP_SHARE * footprint.kv))
    return min(room, max(step, choices * length - lease.reserved_output))
