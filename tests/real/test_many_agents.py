"""Agents of three keys before a real engine of two slots, for a quarter of a minute.

`python -m tests.real.many_agents` plays five minutes with contexts of 4,000 tokens.
"""

from __future__ import annotations

import pytest

from tests.real.many_agents import KEYS, many_agents


@pytest.mark.timeout(120)
async def test_nothing_waits_inside_the_engine_and_each_key_gets_its_part() -> None:
    tally = await many_agents(15.0, tokens=1200, scale=0.4)
    print(tally.table())
    assert not tally.errors
    assert tally.looks > 5
    assert tally.deferred == 0
    assert all(tally.answers[key] >= 3 for key in KEYS)
    # Over so short a time one request more or less is a good part of what a key gets.
    assert tally.unfairness < 0.6
