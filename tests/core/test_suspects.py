from __future__ import annotations

from gateway.core.suspects import HOLD, Suspects


def test_a_prompt_is_held_back_once_it_broke_two_backends_and_only_for_a_while() -> None:
    suspects = Suspects()
    suspects.broke(1, "a", 100.0)
    assert suspects.held(1, 100.0) == 0
    suspects.broke(1, "b", 110.0, decoded=1.5)
    assert suspects.held(1, 110.0) == HOLD
    assert suspects.held(1, 120.0) == HOLD - 10
    assert suspects.held(2, 120.0) == 0
    assert suspects.held(1, 110.0 + HOLD) == 0


def test_one_dead_backend_is_no_proof_however_many_requests_it_took_along() -> None:
    suspects = Suspects()
    for number in range(50):
        suspects.broke(1, "a", 100.0 + number)
    assert suspects.held(1, 150.0) == 0


def test_an_answer_that_was_long_under_way_is_no_good_witness() -> None:
    suspects = Suspects()
    for backend in "abc":
        suspects.broke(1, backend, 100.0, decoded=30.0)
    assert suspects.held(1, 100.0) == 0
    suspects.broke(1, "c", 100.0)
    assert suspects.held(1, 100.0) == HOLD, "that one it broke at once, another time"


def test_what_happened_long_ago_is_forgotten() -> None:
    suspects = Suspects()
    suspects.broke(1, "a", 100.0)
    suspects.broke(1, "b", 100.0 + HOLD)
    assert suspects.held(1, 100.0 + HOLD) == 0


def test_the_number_of_prompts_that_are_remembered_is_bounded() -> None:
    suspects = Suspects()
    for prompt in range(5000):
        suspects.broke(prompt, "a", 100.0)
        suspects.broke(prompt, "b", 100.0)
    assert suspects.held(4999, 100.0) > 0
    assert suspects.held(0, 100.0) == 0
    assert len(suspects._seen) == 1024
