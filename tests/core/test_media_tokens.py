"""Tokens of pictures, sounds and documents: by family and size, then as engines' counts teach."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.estimators.image_tokens import UNKNOWN_PICTURE, image_tokens
from gateway.core.estimators.media_tokens import MediaTokens, audio_rate
from gateway.core.media import Media, Picture

HD = Picture(1920, 1080)


@pytest.mark.parametrize(
    ("model", "picture", "tokens"),
    [
        # 69 x 39 squares of 28 pixels, by the processor's own rounding, and two marks
        ("Qwen/Qwen2.5-VL-7B-Instruct", HD, 69 * 39 + 2),
        ("Qwen/Qwen2.5-VL-7B-Instruct", Picture(20, 20), 4 + 2),
        ("Qwen/Qwen3-VL-8B-Instruct", HD, 60 * 34 + 2),
        ("Qwen3.6-27B", Picture(1024, 1024), 32 * 32 + 2),
        ("google/gemma-3-27b-it", HD, 260),
        ("google/gemma-3-27b-it", Picture(), 260),
        ("llava-hf/llava-1.5-7b-hf", HD, 576),
        ("OpenGVLab/InternVL3-8B", Picture(448, 448), 258),
        ("OpenGVLab/InternVL3-8B", Picture(896, 448), 3 * 256 + 2),
        ("mistralai/Pixtral-12B-2409", Picture(1024, 512), 64 * 32 + 32),
        ("mistralai/Pixtral-12B-2409", Picture(2048, 1024), 64 * 32 + 32),
        # the examples of OpenAI's guide to pictures
        ("gpt-4o", Picture(1024, 1024), 765),
        ("gpt-4o", Picture(2048, 4096), 1105),
        ("gpt-4o", Picture(4096, 8192, low=True), 85),
        ("gpt-4.1-mini", Picture(1024, 1024), 1659),
        # and of Anthropic's
        ("claude-sonnet-4-5", Picture(1000, 1000), 1334),
        ("claude-sonnet-4-5", Picture(200, 200), 54),
        ("claude-opus-4-5", Picture(8000, 6000), 1600),
        ("somebody/own-model", HD, UNKNOWN_PICTURE),
    ],
)
def test_families(model: str, picture: Picture, tokens: int) -> None:
    assert image_tokens(model, picture)[0] == tokens


def test_what_is_known() -> None:
    assert image_tokens("qwen3-vl-8b", HD)[1]
    assert image_tokens("gemma-3-4b", Picture())[1]  # the same for every picture
    assert not image_tokens("qwen3-vl-8b", Picture())[1]
    assert not image_tokens("own", HD)[1]


@given(
    st.sampled_from(("qwen2.5-vl", "qwen3-vl", "glm-4.5v", "kimi-k2.5", "internvl3", "llama-4", "pixtral-12b", "gpt-4o",
                     "gpt-5-nano", "claude", "minicpm-v", "mistral-small-3.2", "x")),
    st.integers(1, 65_535), st.integers(1, 65_535), st.booleans(),
)  # fmt: skip
def test_any_picture_has_some_tokens_and_not_too_many(model: str, width: int, height: int, low: bool) -> None:
    tokens, _ = image_tokens(model, Picture(width, height, low))
    assert 1 <= tokens <= 60_000


def test_sounds_by_family() -> None:
    assert audio_rate("Qwen/Qwen2-Audio-7B-Instruct") == 25
    assert audio_rate("mistralai/Voxtral-Mini-3B") == 12.5
    assert audio_rate("anything") == 25
    assert MediaTokens().estimate("voxtral", "c", Media(seconds=60)) == (750, 1013)


def test_documents_have_thousands_of_tokens_a_page() -> None:
    tokens, high = MediaTokens().estimate("m", "c", Media(pages=3))
    assert (tokens, high) == (6900, 9315)


def test_nothing_costs_nothing() -> None:
    assert MediaTokens().estimate("m", "c", Media()) == (0, 0)


def test_an_unknown_family_is_doubted_until_its_pictures_were_counted() -> None:
    learned = MediaTokens()
    media = Media((HD, HD))
    assert learned.estimate("own", "c", media) == (2048, 4096)
    for _ in range(6):
        learned.learn("own", "c", media, 700)
    assert learned.estimate("own", "c", media) == (700, 805)
    assert learned.estimate("own", "other", media) == (2048, 4096)
    assert learned.estimate("other", "c", media) == (2048, 4096)


def test_pictures_that_only_the_engine_sees_get_the_learned_mean() -> None:
    learned = MediaTokens()
    for tokens in (400, 500, 600) * 4:
        learned.learn("qwen3-vl", "c", Media((Picture(),)), tokens)
    assert 450 <= learned.estimate("qwen3-vl", "c", Media((Picture(),)))[0] <= 550
    assert learned.estimate("qwen3-vl", "c", Media((HD,)))[0] == image_tokens("qwen3-vl", HD)[0]


def test_an_engine_that_scales_its_pictures_down_is_learned_as_a_factor() -> None:
    """Started with --mm-processor-kwargs of fewer pixels, say."""
    learned = MediaTokens()
    for _ in range(40):
        learned.learn("qwen3-vl", "c", Media((HD,)), 1021)
    tokens, high = learned.estimate("qwen3-vl", "c", Media((HD, HD)))
    assert tokens == pytest.approx(2042, rel=0.05)
    assert high <= 1.16 * tokens


@given(st.lists(st.tuples(st.integers(-50, 10**7), st.booleans()), max_size=30))
def test_whatever_is_told_estimates_stay_within_reason(told: list[tuple[int, bool]]) -> None:
    learned = MediaTokens()
    for tokens, sized in told:
        learned.learn("qwen3-vl", "c", Media((HD if sized else Picture(),)), tokens)
    for picture in (HD, Picture()):
        tokens, high = learned.estimate("qwen3-vl", "c", Media((picture,)))
        assert 0 < tokens <= high <= 140_000


def test_the_table_of_clients_is_bounded() -> None:
    learned = MediaTokens()
    for number in range(5000):
        learned.learn("m", str(number), Media((HD,)), 500)
    assert len(learned._learned) == 4096
