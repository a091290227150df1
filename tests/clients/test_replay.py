"""Requests as real clients send them: right status, an answer of the SDK's types, and what the engine said."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.clients.captures import captures, load
from tests.clients.replay import SETUPS, Replayed, models_of, replay, speaker
from tests.clients.setups import reach


@pytest.mark.parametrize("setup", SETUPS)
@pytest.mark.parametrize("file", captures(), ids=lambda file: file.stem)
async def test_every_captured_request_is_answered(file: Path, setup: str, tmp_path: Path) -> None:
    requests = load(file)
    flavour = "openai" if setup == "translated" else speaker(requests)
    outcome = Replayed(file.stem, setup)
    async with reach(setup, flavour, tmp_path / "gateway", models=models_of(requests)) as at:
        await asyncio.to_thread(replay, requests, at, outcome)
    assert outcome.requests == len(requests)
    assert not outcome.faults, "\n".join(outcome.faults)
