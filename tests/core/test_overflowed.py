from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.core.overflowed import Overflowed, after_overflow
from tests.core.fleet import offer, request

OFFER = offer(window=4096)
ASKED = request(prompt=2000, high=2200, output=300)


def test_what_was_counted_is_what_it_has_and_the_same_backend_may_serve_it() -> None:
    told, again = after_overflow(ASKED, OFFER, 2500, Overflowed(4096, 5000, 3000))
    estimate = told.estimates["m"]
    assert again
    assert (estimate.prompt, estimate.prompt_high, estimate.prompt_low, estimate.tier) == (3000, 3000, 3000, "C")


def test_the_engines_own_count_is_worth_more_than_another_tokenizers() -> None:
    told, again = after_overflow(replace(ASKED.at_least(2500), attempt=1), OFFER, 2500, Overflowed(4096, 5000, 3000))
    assert again
    assert told.estimates["m"].prompt == 3000


def test_a_count_below_the_estimate_counts_too() -> None:
    told, again = after_overflow(ASKED, OFFER, 3500, Overflowed(4096, 5000, 1000))
    assert again
    assert told.estimates["m"].prompt == 1000


def test_without_a_number_it_is_taken_to_be_long() -> None:
    told, again = after_overflow(ASKED, OFFER, 2500, Overflowed())
    assert again
    assert told.estimates["m"].prompt == ASKED.estimates["m"].prompt_most
    assert told.estimates["m"].tier == "A"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (ASKED, Overflowed(4096, 4085, 4085)),
        (ASKED, Overflowed(2000)),
        (ASKED, Overflowed(4096, 9000)),
        (ASKED.at_least(3000), Overflowed(4096, 5000, 3000)),
        (after_overflow(ASKED, OFFER, 2500, Overflowed())[0], Overflowed()),
        (request(prompt=4000, high=4200), Overflowed()),
        (request(prompt=1000, high=1010, output=10), Overflowed(None, None, 1000)),
    ],
    ids=[
        "no room",
        "a smaller window",
        "a sum",
        "the second time",
        "counted before",
        "long on the high side",
        "as much as was sent",
    ],
)
def test_what_is_not_asked_again_there(asked: object, said: Overflowed) -> None:
    told, again = after_overflow(asked, OFFER, 2500, said)  # type: ignore[arg-type]
    assert not again
    if said.least is not None and said.least > 2000:
        assert told.estimates["m"].prompt >= min(said.least, said.prompt or said.least)
