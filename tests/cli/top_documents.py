"""What an admin port says, as documents for tests of `kvgate top`."""

from __future__ import annotations

from typing import Any

__all__ = ["backend", "documents", "waiter"]


def backend(name: str = "rig", **changes: Any) -> dict[str, Any]:
    """A backend that is well, three quarters full."""
    row = {
        "name": name,
        "health": "up",
        "engine": "vllm",
        "device": "rtx-pro-6000",
        "running": 3,
        "slots": 64,
        "limited_by": "slots",
        "kv_reserved_tokens": 61_000,
        "kv_foreign_tokens": 12_000,
        "kv_free_tokens": 19_000,
        "kv_pool_tokens": 100_000,
        "kv_headroom": 0.92,
        "prefill_backlog_seconds": 2.1,
        "prefill_backlog_limit_seconds": 4.0,
        "prefill_factor": 1.0,
        "decode_factor": 1.0,
        "sample_age_seconds": 0.8,
        "prefilled_tokens": 10_000,
        "generated_tokens": 500,
        "waiting_for": {},
    }
    return row | changes


def waiter(number: int = 0, **changes: Any) -> dict[str, Any]:
    """A request that waits since two backends are full."""
    row = {
        "id": f"request-{number}",
        "model": "qwen3-30b",
        "client": f"key-{number}",
        "class": "interactive",
        "session": "9f3a01bc",
        "waited_seconds": 1.5 * number,
        "deadline_in_seconds": 60.0 - number,
        "attempt": 0,
        "promised": False,
        "prompt_tokens": 4000,
        "output_tokens": 600,
        "tier": "A",
        "reason": "queued",
        "why": "waiting in the gateway's queue for a place",
        "backends": {"mac": "down", "rig": "kv_full", "other": "not_served", "spark": "slots_full"},
    }
    return row | changes


def documents(*backends: dict[str, Any], waiting: int = 0) -> dict[str, Any]:
    """`/admin/backends` and `/admin/queue` by path."""
    queue = {
        "waiting": waiting,
        "models": {"qwen3-30b": {"requests": waiting, "tokens": 4600 * waiting, "seconds_to_drain": 38.2,
                                 "oldest_seconds": 19.4}} if waiting else {},
        "requests": [waiter(number) for number in range(waiting)],
        "requests_left_out": 0,
        "clients": [{"client": "agents", "class": "interactive", "waiting": waiting, "running": 3,
                     "device_seconds": 12.5, "share": 0.62}],
    }  # fmt: skip
    return {"/admin/backends": {"backends": list(backends or (backend(),))}, "/admin/queue": queue}
