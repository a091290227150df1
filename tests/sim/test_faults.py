"""Faults are found soon and named rightly; engines that are well are left alone: a part of `tests.sim.faults`."""

from __future__ import annotations

import pytest

from gateway.core.degrading.causes import Cause
from tests.sim.faults import FAULTS, RATES, Kind, clean, play


@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.name)
def test_a_fault_is_named_within_a_minute(kind: Kind) -> None:
    seen = play(kind, ("left",), RATES["low"], 1)
    cause, after = seen.named["left"]
    assert cause in kind.right
    assert after < 60.0
    assert not seen.wrongly
    assert seen.ejected == 0
    assert seen.failed <= 0.01 * seen.requests


def test_half_an_hour_of_noise_takes_nobody_out_and_blames_nobody() -> None:
    seen = clean(0.5, RATES["low"], 3)
    assert (seen.ejected, sum(seen.wrongly.values()), seen.failed) == (0, 0, 0)
    assert Cause.NONE not in seen.wrongly
