"""Saves and restores slots of llama.cpp's server before a request is sent to one (its `--slot-save-path`)."""

from __future__ import annotations

import msgspec

from gateway import clock
from gateway.core.experience import Experience
from gateway.core.lease import Lease
from gateway.engines.adapter import Probe
from gateway.relay.questions import Questions

__all__ = ["swap_slot"]

_WITHIN_S = 20.0


async def swap_slot(questions: Questions, lease: Lease, experience: Experience) -> None:
    """Carry out `lease.swap`; what fails costs the time that reading the prompt takes, and nothing else."""
    swap, lease.swap = lease.swap, None
    if swap is None:
        return
    began = clock.monotonic()
    saved = restored = False
    try:
        if swap.save is not None:
            saved = await _action(questions, lease.backend, swap.slot, "save", swap.save.name)
        if swap.restore is not None:
            restored = await _action(questions, lease.backend, swap.slot, "restore", swap.restore.name)
    finally:
        experience.swapped(lease, swap, saved=saved, restored=restored, seconds=clock.monotonic() - began)


async def _action(questions: Questions, backend: str, slot: int, action: str, name: str) -> bool:
    body = msgspec.json.encode({"filename": name})
    answer = await questions.ask(backend, Probe("POST", f"/slots/{slot}?action={action}", body=body), _WITHIN_S)
    return answer is not None and answer.status == 200
