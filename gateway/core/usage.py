"""What a lease is charged to its client when it is granted, and what it turns out to have used."""

from __future__ import annotations

from gateway.core.fair_share import cost_of
from gateway.core.lease import Ended, Lease
from gateway.core.quota import Amounts, Quota

__all__ = ["expected_usage", "nothing", "usage"]


def expected_usage(lease: Lease) -> Amounts:
    """What it is charged at its grant: as long as it is predicted to run, and as much as its answer is likely to be."""
    seconds = lease.service.seconds if lease.service is not None else 0.0
    return {
        Quota.REQUESTS: 1.0,
        Quota.TOKENS: float(cost_of(lease.request)),
        Quota.KV_SECONDS: _reserved(lease) * seconds,
    }


def nothing() -> Amounts:
    """What an attempt used of which nothing reached its client."""
    return {}


def usage(lease: Lease, ended: Ended, seconds: float) -> Amounts:
    """What it used in the seconds that it ran.

    Nothing, where its backend failed before the client was shown anything. Tokens as the engine counted them, else as
    estimated and as streamed. Of a prompt that was given up while it was read counts the part that was read by then.
    """
    if ended.failure is not None and not ended.shown:
        return nothing()
    return {
        Quota.REQUESTS: 1.0,
        Quota.TOKENS: _prompt(lease, ended, seconds) + _output(lease, ended),
        Quota.KV_SECONDS: (_reserved(lease) + lease.extended / 2) * seconds,
    }


def _prompt(lease: Lease, ended: Ended, seconds: float) -> float:
    counted = ended.prompt_tokens if ended.prompt_tokens is not None else lease.counted_prompt
    if counted is not None:
        return float(counted)
    footprint = lease.decision.footprint
    prompt = float(footprint.prompt) if footprint is not None else 0.0
    ttft = lease.service.ttft if lease.service is not None else 0.0
    if ended.completed or ended.shown or ended.ttft is not None or ttft <= 0.0:
        return prompt
    return prompt * min(1.0, seconds / ttft)


def _output(lease: Lease, ended: Ended) -> float:
    """Of all choices."""
    if ended.completed and ended.output_tokens is not None:
        return float(ended.output_tokens)
    return float(max(ended.output_tokens or 0, lease.counted_output, lease.generated))


def _reserved(lease: Lease) -> float:
    """Tokens of KV cache, at the start of its answer."""
    footprint = lease.decision.footprint
    return float(footprint.kv) if footprint is not None else 0.0
