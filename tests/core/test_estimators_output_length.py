"""Answer lengths: quantiles, conditional tails, and streams that were cut short."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.estimators.answer_shape import PLAIN, AnswerShape
from gateway.core.estimators.output_length import MOST_KEYS, OutputKey, OutputLengthEstimator
from gateway.core.estimators.recalibration import LEVELS, Recalibration
from gateway.core.estimators.survival import BINS, EDGES, SketchState, SurvivalCurve, SurvivalSketch, lognormal_counts

KEY = OutputKey("m", "c")
LESSONS = st.lists(st.tuples(st.integers(0, 200_000), st.booleans()), max_size=60)


def learned(lessons: list[tuple[int, bool]], key: OutputKey = KEY) -> OutputLengthEstimator:
    estimator = OutputLengthEstimator()
    for tokens, finished in lessons:
        estimator.learn(key, tokens, finished)
    return estimator


def flat(sketch: SurvivalSketch) -> list[float]:
    ended, reached = sketch.counts()
    return ended + reached


def test_edges_are_one_token_then_ten_percent_wide() -> None:
    assert len(EDGES) == BINS
    assert EDGES[:39] == tuple(range(1, 40))
    assert all(1.07 < high / low < 1.13 for low, high in itertools.pairwise(EDGES[39:]))
    assert EDGES[-1] > 131_072


@pytest.mark.parametrize(
    ("shape", "median"),
    [
        (PLAIN, 300),
        (AnswerShape(json=True), 300),
        (AnswerShape(tools=True), 120),
        (AnswerShape(tools=True, reasoning="none"), 120),
        (AnswerShape(reasoning="low"), 1500),
        (AnswerShape(tools=True, reasoning="on"), 1500),
    ],
)
def test_prior_by_shape(shape: AnswerShape, median: int) -> None:
    key = OutputKey("m", "c", "m", shape)
    assert OutputLengthEstimator().quantile(0.5, key) == pytest.approx(median, rel=0.05)


def test_prior_mean_is_the_log_normal_one() -> None:
    assert OutputLengthEstimator().mean(KEY) == pytest.approx(300 * math.exp(1.1**2 / 2), rel=0.05)


def test_learns_a_distribution() -> None:
    rng = random.Random(1)
    estimator = learned([(1 + int(rng.lognormvariate(7.0, 0.5)), True) for _ in range(2000)])
    for q, z in ((0.1, -1.2816), (0.5, 0.0), (0.9, 1.2816)):
        assert estimator.quantile(q, KEY) == pytest.approx(math.exp(7.0 + 0.5 * z), rel=0.12)
    assert estimator.mean(KEY) == pytest.approx(math.exp(7.0 + 0.125), rel=0.12)


def test_a_limit_is_not_learned_as_the_natural_length() -> None:
    rng = random.Random(2)
    lengths = [1 + int(rng.lognormvariate(6.5, 0.8)) for _ in range(2000)]
    capped = learned([(min(length, 512), length <= 512) for length in lengths])
    naive = learned([(min(length, 512), True) for length in lengths])
    assert naive.quantile(0.9, KEY) < 620
    assert capped.quantile(0.3, KEY) == pytest.approx(math.exp(6.5 - 0.8 * 0.524), rel=0.12)
    assert capped.quantile(0.9, KEY) > 1200
    assert capped.quantile(0.9, KEY, cap=512) == 512


def test_the_tail_lengthens() -> None:
    estimator = OutputLengthEstimator()
    further = [estimator.quantile(0.9, KEY, generated) - generated for generated in (0, 1000, 4000)]
    assert further == sorted(further)
    assert estimator.mean(KEY, 4000) > estimator.mean(KEY, 1000) > 0


def test_caps() -> None:
    estimator = OutputLengthEstimator()
    assert estimator.quantile(0.99, KEY, cap=100) == 100
    assert 0 < estimator.mean(KEY, generated=90, cap=100) <= 10
    assert estimator.mean(KEY, generated=100, cap=100) == 0
    assert estimator.mean(KEY, cap=1) == pytest.approx(1.0, abs=0.01)


def test_a_new_client_answers_as_the_model_does() -> None:
    estimator = learned([(50, True)] * 300, OutputKey("m", "old"))
    assert estimator.quantile(0.5, OutputKey("m", "new")) == pytest.approx(50, rel=0.2)
    assert estimator.quantile(0.5, OutputKey("other", "old")) == pytest.approx(300, rel=0.05)


def test_shapes_are_told_apart_and_lean_on_what_the_client_and_the_model_do() -> None:
    estimator = OutputLengthEstimator()
    short, long = AnswerShape(tools=True), AnswerShape(reasoning="high")
    for _ in range(300):
        estimator.learn(OutputKey("m", "c", "m", short), 40, True)
        estimator.learn(OutputKey("m", "c", "m", long), 4000, True)
    assert estimator.quantile(0.5, OutputKey("m", "c", "m", short)) == pytest.approx(40, rel=0.1)
    assert estimator.quantile(0.5, OutputKey("m", "c", "m", long)) == pytest.approx(4000, rel=0.1)
    assert estimator.quantile(0.5, OutputKey("m", "other", "m", long)) == pytest.approx(4000, rel=0.1)
    same_client = estimator.quantile(0.5, OutputKey("m", "c", "other route", short))
    assert 40 <= same_client <= 4000


def test_quantiles_follow_a_drift() -> None:
    rng = random.Random(7)
    estimator, within = OutputLengthEstimator(), []
    for i in range(3000):
        # They halve every thousand answers: by its counts alone the median would hold 67 % of them.
        length = 1 + int(rng.lognormvariate(7.0 - i / 1500.0, 0.8))
        within.append(length <= estimator.quantile(0.5, KEY))
        estimator.learn(KEY, length, True)
    assert sum(within[500:]) / len(within[500:]) == pytest.approx(0.5, abs=0.03)


def test_no_cliff_between_cold_and_warm() -> None:
    estimator = OutputLengthEstimator()
    medians = [estimator.quantile(0.5, KEY)]
    for _ in range(200):
        estimator.learn(KEY, 4000, True)
        medians.append(estimator.quantile(0.5, KEY))
    assert medians[1] < 1.4 * medians[0]
    assert medians[-1] == pytest.approx(4000, rel=0.2)
    assert all(later > 0.98 * earlier for earlier, later in itertools.pairwise(medians))


def test_old_habits_fade_with_samples_and_with_time() -> None:
    by_samples = learned([(100, True)] * 1000 + [(2000, True)] * 1000)
    assert by_samples.quantile(0.5, KEY) > 1500
    by_time = OutputLengthEstimator()
    for _ in range(500):
        by_time.learn(KEY, 100, True, now=0.0)
    for _ in range(50):
        by_time.learn(KEY, 2000, True, now=7 * 86_400.0)
    assert by_time.quantile(0.5, KEY) > 1500


def test_a_year_of_silence_and_a_long_life_do_not_overflow() -> None:
    estimator = OutputLengthEstimator()
    for i in range(30):
        estimator.learn(KEY, 100, True, now=i * 365 * 86_400.0)
    sketch = SurvivalSketch()
    for _ in range(40_000):
        sketch.learn(100, True)
    assert math.isfinite(estimator.mean(KEY))
    assert sketch.counts()[1][0] == pytest.approx(500 / math.log(2), rel=0.01)


@settings(deadline=None)
@given(LESSONS, st.integers(0, 200_000), st.integers(1, 200_000))
def test_quantiles_are_ordered_and_beyond_what_exists(
    lessons: list[tuple[int, bool]], generated: int, room: int
) -> None:
    estimator = learned(lessons)
    quantiles = [estimator.quantile(q, KEY, generated) for q in (0.1, 0.5, 0.7, 0.9, 0.95, 0.99)]
    assert quantiles == sorted(quantiles)
    assert quantiles[0] >= generated
    assert 0 <= estimator.mean(KEY, generated, cap=generated + room) <= room
    assert estimator.mean(KEY, generated) >= 0


@settings(deadline=None)
@given(LESSONS)
def test_survival_falls_from_one(lessons: list[tuple[int, bool]]) -> None:
    sketch = SurvivalSketch()
    for tokens, finished in lessons:
        sketch.learn(tokens, finished)
    curve = SurvivalCurve(*sketch.counts())
    left = [curve.left(tokens) for tokens in (0, *EDGES, 10**6)]
    assert left[0] == 1.0
    assert all(0.0 <= later <= earlier for earlier, later in itertools.pairwise(left))


def test_prior_counts_are_one_stream() -> None:
    ended, reached = lognormal_counts(300.0, 1.1)
    assert reached[0] == 1.0
    assert sum(ended) == pytest.approx(1.0, abs=1e-6)


def test_keys_are_bounded() -> None:
    estimator = OutputLengthEstimator()
    for _ in range(30):
        estimator.learn(OutputKey("used"), 5, True)
    for i in range(MOST_KEYS):
        estimator.learn(OutputKey(f"m{i}"), 5, True)
        if i % 100 == 0:
            estimator.learn(OutputKey("used"), 5, True)
    assert len(estimator.lengths) == MOST_KEYS
    assert estimator.quantile(0.5, OutputKey("m0")) == pytest.approx(300, rel=0.05)
    assert estimator.quantile(0.5, OutputKey(f"m{MOST_KEYS - 1}")) < 300
    assert estimator.quantile(0.5, OutputKey("used")) < 10


@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans()), max_size=400))
def test_a_corrected_level_stays_a_level_and_rises_with_what_is_asked(lessons: list[tuple[float, bool]]) -> None:
    recalibration = Recalibration()
    for left, finished in lessons:
        recalibration.learn(left, finished)
    levels = [recalibration.level(q / 100.0) for q in range(101)]
    assert levels == sorted(levels)
    assert levels[0] == 0.0
    assert levels[-1] == 1.0
    assert all(level < 1.0 for level in levels[:-1])


def test_answers_cut_short_where_they_were_expected_to_move_no_level() -> None:
    recalibration = Recalibration()
    for _ in range(1000):
        recalibration.learn(1.0, finished=False)
    assert [recalibration.level(q) for q in LEVELS] == pytest.approx(LEVELS, abs=0.02)


@settings(deadline=None)
@given(LESSONS, st.floats(0.0, 1e6))
def test_a_sketch_comes_back_as_it_was_kept(lessons: list[tuple[int, bool]], away: float) -> None:
    sketch = SurvivalSketch()
    for at, (tokens, finished) in enumerate(lessons):
        sketch.learn(tokens, finished, float(at))
    again = SurvivalSketch.restored(sketch.state(100.0), 100.0)
    assert flat(again) == pytest.approx(flat(sketch))
    for each in (sketch, again):
        each.learn(300, True, 100.0 + away)
    assert flat(again) == pytest.approx(flat(sketch))


@pytest.mark.parametrize(
    "state",
    [
        SketchState((1.0,) * BINS, ()),
        SketchState((0.0,) * 500, (0.0,) * 500),
        SketchState((2.0,) * BINS, (1.0,) * BINS),
        SketchState((-1.0,) * BINS, (1.0,) * BINS),
        SketchState((math.nan,) * BINS, (1.0,) * BINS),
        SketchState((0.0,) * BINS, (math.inf,) * BINS),
        SketchState((0.0,) * BINS, (1.0,) * BINS, weight=0.0),
        SketchState((0.0,) * BINS, (1.0,) * BINS, weight=math.nan),
    ],
)
def test_no_sketch_is_made_of_what_none_can_have_held(state: SketchState) -> None:
    with pytest.raises(ValueError, match=r"sketch|answers"):
        SurvivalSketch.restored(state, 0.0)
