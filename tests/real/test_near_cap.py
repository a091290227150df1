"""Right at the window: nothing is refused that the engine takes, and nothing is admitted that it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.conftest import Launch
from tests.real.gateway_process import backend, serving
from tests.real.near_cap import WINDOW, near_cap


@pytest.mark.timeout(240)
async def test_no_wrong_refusal_and_no_late_one(llama: Launch, tmp_path: Path) -> None:
    engine = await llama("tiny", context=2 * WINDOW, slots=2)
    async with serving(tmp_path, [backend("near", engine.url)]) as gateway:
        tally = await near_cap(gateway, engine, 150, seed=11)
    assert (tally.wrongly_refused, tally.refused_late, tally.odd) == ([], 0, []), tally.table()
    assert tally.served > 20, tally.table()
    assert tally.refused > 40, tally.table()
    assert tally.near > 75, tally.table()
    assert tally.counts['by="engine",outcome="counted"'] > 75, tally.table()
