"""Prompts that an engine cut short are told apart from estimates that were off."""

from __future__ import annotations

import pytest

from gateway.core.decision import Decision, Verdict
from gateway.core.footprint import Footprint
from gateway.core.lease import Ended, Lease
from gateway.core.prefix.chain import fingerprint
from gateway.core.reasons import Reason
from gateway.core.truncation import was_cut
from tests.core.fleet import offer, request


def lease(prompt: int, tier: str) -> Lease:
    footprint = Footprint(prompt, prompt, 0, prompt, 100, 100, None, prompt + 100, 0, tier=tier)
    decision = Decision("r1", Verdict.ADMIT, Reason.ADMITTED, 0.0, 0.5, "a", "m", footprint=footprint)
    return Lease("l1", request(), fingerprint((b"x",), (), b"s"), decision, "a", offer(), 16, 0.0)


@pytest.mark.parametrize(
    ("tier", "counted", "cut"),
    [
        ("A", 9_900, True),
        ("A", 10_100, False),
        ("B", 17_900, True),
        ("B", 18_100, False),
        ("C", 18_900, True),
        ("C", 19_100, False),
    ],
)
def test_how_well_a_prompt_was_known_decides_what_a_lower_count_means(tier: str, counted: int, cut: bool) -> None:
    assert was_cut(lease(20_000, tier), Ended(completed=True, prompt_tokens=counted, text_only=True)) is cut


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert not was_cut(lease(2_000, "C"), Ended(completed=True, prompt_tokens=10, text_only=True))
    assert not was_cut(lease(20_000, "A"), Ended(completed=True, prompt_tokens=None, text_only=True))
    assert not was_cut(lease(20_000, "A"), Ended(completed=True, prompt_tokens=4_096, text_only=False))
