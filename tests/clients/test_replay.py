"""Requests as real clients send them: right status, an answer of the SDK's types, and what the engine said."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.clients.captures import captures, load
from tests.clients.conftest import Reach
from tests.clients.replay import SETUPS, Replayed, flavour_for, replay


@pytest.mark.parametrize("setup", SETUPS)
@pytest.mark.parametrize("file", captures(), ids=lambda file: file.stem)
@pytest.mark.asyncio(loop_scope="session")
async def test_every_captured_request_is_answered(file: Path, setup: str, reached: Reach) -> None:
    requests, outcome = load(file), Replayed(file.stem, setup)
    at = await reached(setup, flavour_for(setup, requests))
    await asyncio.to_thread(replay, requests, at, outcome)
    assert outcome.requests == len(requests)
    assert not outcome.faults, "\n".join(outcome.faults)
