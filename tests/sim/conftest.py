"""Emulated engines on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import aiohttp
import pytest

from gateway.sim.profile import engine_profile
from gateway.sim.serve import EmulatedEngine, start_emulated


@pytest.fixture
async def tiny() -> AsyncIterator[EmulatedEngine]:
    """As the recorded server: model "tiny" with a window of 2048 tokens; 20 times a PRO 6000."""
    profile = replace(engine_profile("rtx-pro-6000"), max_model_len=2048)
    async with start_emulated(profile, model="tiny", speed=20, answer_tokens=1000, max_queued_requests=400) as engine:
        yield engine


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        yield session
