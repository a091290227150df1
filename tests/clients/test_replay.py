"""Requests as real clients send them: right status, an answer of the SDK's types, and what the engine said."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.clients.captures import captures, load
from tests.clients.replay import SETUPS, Replayed, flavour_for, models_of, replay
from tests.clients.setups import reach


@pytest.mark.parametrize("setup", SETUPS)
@pytest.mark.parametrize("file", captures(), ids=lambda file: file.stem)
async def test_every_captured_request_is_answered(file: Path, setup: str, tmp_path: Path) -> None:
    requests = load(file)
    outcome = Replayed(file.stem, setup)
    async with reach(setup, flavour_for(setup, requests), tmp_path / "gateway", models=models_of(requests)) as at:
        await asyncio.to_thread(replay, requests, at, outcome)
    assert outcome.requests == len(requests)
    assert not outcome.faults, "\n".join(outcome.faults)
