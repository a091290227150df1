from __future__ import annotations

from gateway.edge.pace import GRACE_S, SLOWEST, Pace


def test_one_that_stops_is_late_after_the_grace_however_fast_it_was() -> None:
    pace = Pace(60_000_000, 60.0, 100.0)
    pace.came(30_000_000, 100.0)
    assert not pace.late(100.0 + GRACE_S)
    assert pace.late(100.1 + GRACE_S)


def test_a_steady_one_is_never_late() -> None:
    pace = Pace(0, 60.0, 0.0)
    for second in range(1, 60):
        pace.came(SLOWEST, float(second))
        assert not pace.late(float(second))
    pace.begin(200.0)
    assert not pace.late(200.0)
