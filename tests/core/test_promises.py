"""Places kept for those who were told to come back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.promises import EARLY, LATE, Promises


def test_a_promise_is_kept_about_its_time_and_once() -> None:
    promises = Promises()
    promises.make("c", 7, "m", 1000, at=110.0, now=100.0)
    assert promises.claim("c", 7, 105.0) is None, "too early, and it may still come"
    assert promises.claim("c", 8, 110.0) is None, "another prompt"
    assert promises.claim("d", 7, 110.0) is None, "another client"
    assert promises.claim("c", 7, 110.0 - EARLY) == 110.0
    assert promises.claim("c", 7, 110.0) is None


def test_nobody_s_place_is_kept_for_ever() -> None:
    promises = Promises()
    promises.make("c", 7, "m", 1000, at=110.0, now=100.0)
    assert promises.work("m", 110.0 + LATE) == 1000
    assert promises.work("m", 110.1 + LATE) == 0
    assert promises.claim("c", 7, 110.1 + LATE) is None
    assert len(promises) == 0


def test_the_last_word_to_a_client_counts() -> None:
    promises = Promises()
    promises.make("c", 7, "m", 1000, at=110.0, now=100.0)
    promises.make("c", 7, "m", 1000, at=130.0, now=101.0)
    assert promises.work("m", 101.0) == 1000
    assert promises.claim("c", 7, 112.0) is None
    assert promises.claim("c", 7, 131.0) == 130.0
    assert promises.work("m", 131.0) == 0


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), st.integers(0, 5), st.sampled_from("mn"), st.floats(0.0, 60.0), st.booleans()
        ),
        max_size=60,
    )
)
def test_what_is_promised_is_what_is_outstanding(steps: list[tuple[str, int, str, float, bool]]) -> None:
    promises, open_, now = Promises(), dict[tuple[str, int], tuple[str, float]](), 0.0
    for client, prompt, model, wait, comes in steps:
        now += 1.0
        open_ = {key: (m, at) for key, (m, at) in open_.items() if at + LATE >= now}
        if comes:
            kept = promises.claim(client, prompt, now)
            known = open_.get((client, prompt))
            assert (kept is not None) == (known is not None and now >= known[1] - EARLY)
            if kept is not None:
                del open_[client, prompt]
        else:
            promises.make(client, prompt, model, 10, now + wait, now)
            open_[client, prompt] = (model, now + wait)


def test_they_are_bounded() -> None:
    promises = Promises()
    for number in range(10_000):
        promises.make("c", number, "m", 1, at=1000.0, now=0.0)
    assert len(promises) == promises.work("m", 0.0) <= 4096


def test_the_last_word_counts_though_the_book_is_full() -> None:
    promises = Promises()
    promises.make("c", 0, "m", 1, at=1000.0, now=0.0)
    for number in range(1, 4096):
        promises.make("c", number, "m", 1, at=1000.0, now=0.0)
    promises.make("c", 0, "m", 1, at=1001.0, now=0.0)
    promises.make("c", 9999, "m", 1, at=1001.0, now=0.0)
    assert promises.claim("c", 0, 1001.0) == 1001.0


def test_a_place_is_not_kept_longer_behind_one_that_is_kept_long() -> None:
    promises = Promises()
    promises.make("c", 1, "m", 1, at=150.0, now=100.0)
    promises.make("c", 2, "m", 1, at=101.0, now=100.0)
    assert promises.claim("c", 2, 101.1 + LATE) is None
    assert promises.work("m", 130.0) == 1
