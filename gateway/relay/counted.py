"""The answer to how many tokens a request would have: the number that it would be admitted with."""

from __future__ import annotations

from gateway.core.request import Request
from gateway.relay.downstream import Downstream
from gateway.wire.anthropic.models import count_body

__all__ = ["tell_count"]


def tell_count(request: Request, down: Downstream) -> None:
    """Answer an Anthropic client; a header says whether the number was counted or estimated."""
    estimate = max(request.estimates.values(), key=lambda each: (each.tier == "C", each.prompt))
    how = "exact" if estimate.tier == "C" else "estimated"
    body = count_body(estimate.prompt)
    down.start(200, [("content-type", "application/json"), ("x-kvgate-count", how)], len(body))
    down.end(body)
