"""Which requests read a prompt for others too, and what those who follow may expect of them."""

from __future__ import annotations

from gateway.core.decision import Decision
from gateway.core.prefix.chain import Chain
from gateway.core.prefix.leaders import LEAST_AWAITED, Leaders
from gateway.core.prefix.reuse import Match
from gateway.core.prefix.trust import PrefixTrust
from gateway.core.snapshot import BackendView

__all__ = ["NOTHING_AWAITED", "awaited", "leads", "when_read"]

NOTHING_AWAITED = (0.0, 0.0, 0.0)
"""What `awaited` says where nothing is being read."""


def leads(decision: Decision, view: BackendView) -> bool:
    """Whether others may want to wait for the prompt of this request: it is long, new, and can be shared there."""
    footprint, backend = decision.footprint, view.backend
    if footprint is None or footprint.uncached < LEAST_AWAITED:
        return False
    return backend.shares_prefix and not backend.keeps_sequences


def when_read(decision: Decision, sent: float) -> float:
    """When the prompt of a request that was sent then should be read, prefills before it included."""
    return sent + (decision.predicted_ttft or 0.0)


def awaited(
    leaders: Leaders, trust: PrefixTrust, holder: str, chain: Chain, match: Match
) -> tuple[float, float, float]:
    """The part of a prompt that is being read there, as far as it is trusted to be shared, since when, and till when.

    Only if it is more of the prompt than is held there already, which is `match`.
    """
    shared, leader = leaders.ahead(holder, chain)
    if leader is None or shared <= match.bytes:
        return NOTHING_AWAITED
    return shared / match.total * trust.probability(holder, 0), leader.sent, leader.ready
