"""Prompt tokens against real tokenizers, over the corpus of `python -m tests.tokens.accuracy`, within its bounds."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import pytest

from tests.tokens.accuracy import Errors, anchored, cold_and_warm
from tests.tokens.corpus import KINDS
from tests.tokens.tokenizers import FAMILIES, NEEDED, Family

REQUESTS = 4
"""Of each kind and family."""
COLD, WARM, ANCHORED = (10.0, 25.0), (3.0, 8.0), (0.5, 1.0)
"""Median and 95 % of errors, in per cent."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not all(map(find_spec, NEEDED)), reason="needs the tokenizers of the test extra and the model"),
]


def within(errors: Errors, bounds: tuple[float, float]) -> bool:
    return errors.quantile(0.5) < bounds[0] and errors.quantile(0.95) < bounds[1]


def test_cold_and_taught_clients() -> None:
    cold, warm = Errors(), Errors()
    for family in FAMILIES:
        for kind in KINDS:
            first, later = cold_and_warm(family, kind, REQUESTS)
            cold.merge([first])
            warm.merge([later])
    assert within(cold, COLD), (cold.quantile(0.5), cold.quantile(0.95))
    assert within(warm, WARM), (warm.quantile(0.5), warm.quantile(0.95))
    assert cold.coverage >= 93.0
    assert warm.coverage >= 93.0
    assert cold.wrongly_refused == warm.wrongly_refused == 0


@cache
def later_turns(family: Family) -> Errors:
    return anchored(family, 6)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_anchored_turns(family: Family) -> None:
    errors = later_turns(family)
    assert len(errors.errors) >= 50
    assert errors.quantile(0.5) < ANCHORED[0]
    assert errors.quantile(0.95) < 2.0 * ANCHORED[1]  # of some 50 turns; what all families have together is below one
    assert errors.coverage >= 93.0
    assert errors.wrongly_refused == 0


def test_anchored_turns_of_all_families() -> None:
    errors = Errors().merge(map(later_turns, FAMILIES))
    assert within(errors, ANCHORED), (errors.quantile(0.5), errors.quantile(0.95))
