"""How long a silent engine may hold a request."""

from __future__ import annotations

from gateway.core.patience import first_token_limit, whole_answer_limit


def test_a_short_answer_in_one_piece_is_given_up_soon_and_a_long_one_is_not() -> None:
    assert whole_answer_limit(1, 0.02) == 30.0
    assert whole_answer_limit(400, 0.02) == 100.0
    assert whole_answer_limit(4096, 0.02) == 4096 * 0.02 * 10
    assert whole_answer_limit(100_000, 0.0) == 600.0


def test_the_first_token_is_waited_for_ten_times_as_long_as_predicted() -> None:
    assert first_token_limit(0.5) == 120.0
    assert first_token_limit(60.0) == 600.0
