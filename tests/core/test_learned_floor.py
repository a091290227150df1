"""What was learned of one kind of text refuses nothing of another."""

from __future__ import annotations

from gateway.core.estimators.prompt_tokens import count_text
from gateway.core.experience import Experience


def test_a_client_of_odd_prompts_is_not_refused_an_ordinary_one() -> None:
    experience = Experience()
    odd = count_text([b"w " * 600], 1)
    for _ in range(400):
        experience.tokens.learn("m", "c", odd, 620)
    ordinary = count_text([b"word " * 3850], 1)
    estimate = experience.estimate("m", "c", ordinary)
    assert estimate.prompt > 4096 + 500, "the learned guess is far off, as it was when this was found"
    assert estimate.prompt_low < 3930, "what an engine counts must still be possible"


def test_what_is_far_too_long_is_still_known_to_be() -> None:
    # Of the vocabularies of today, some have half a token a character.
    chinese = count_text(["\u4f60\u597d".encode() * 8000], 1)
    assert Experience().estimate("m", "c", chinese).prompt_low > 4096
    english = count_text([b"word " * 20_000], 1)
    assert Experience().estimate("m", "c", english).prompt_low > 4096
