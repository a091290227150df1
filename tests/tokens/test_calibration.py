"""Predicted answer lengths hold on recorded traffic, and limits do not teach wrong ones."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.tokens.calibration import CENSORED_AT, TRACES, calibrate, load, recovered_median
from tests.tokens.calibration_plot import plot

NAMES = sorted(path.stem for path in TRACES.glob("*.csv"))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", NAMES)
def test_predicted_quantiles_hold_within_three_points(name: str) -> None:
    found = calibrate(name, load(TRACES / f"{name}.csv"))
    assert found.answers == 3000
    assert found.off((0.5, 0.7, 0.9, 0.95)) < 3.0, found.shares


@pytest.mark.timeout(60)
def test_what_is_still_to_come_is_predicted_as_well() -> None:
    name = "mooncake-conversation"
    found = calibrate(name, load(TRACES / f"{name}.csv"), grown=400)
    assert found.answers > 1000
    assert found.off((0.5, 0.7, 0.9, 0.95)) < 3.0, found.shares


@pytest.mark.parametrize("name", NAMES)
def test_answers_cut_at_a_limit_leave_the_median_where_it_is(name: str) -> None:
    found, true, _ = recovered_median([row.tokens for row in load(TRACES / f"{name}.csv")], CENSORED_AT)
    assert found == pytest.approx(true, rel=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_a_median_above_the_limit_of_most_is_found_from_the_others(seed: int) -> None:
    rng = random.Random(seed)
    lengths = [1 + int(rng.lognormvariate(6.7, 0.9)) for _ in range(4000)]
    found, true, naive = recovered_median(lengths, CENSORED_AT, share=0.7, seed=seed)
    assert true > 1.3 * CENSORED_AT
    assert found == pytest.approx(true, rel=0.1)
    assert naive < 0.7 * true


@pytest.mark.parametrize("sigma", [0.6, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_a_median_above_the_limit_of_all_is_found_by_drawing_on_what_is_below(sigma: float, seed: int) -> None:
    rng = random.Random(seed)
    lengths = [1 + int(rng.lognormvariate(6.5, sigma)) for _ in range(3000)]
    found, true, naive = recovered_median(lengths, CENSORED_AT, seed=seed)
    assert true > 1.2 * CENSORED_AT
    assert found == pytest.approx(true, rel=0.1)
    assert naive <= 1.1 * CENSORED_AT


def test_the_plot_shows_every_curve() -> None:
    picture = ET.fromstring(plot({"one & other": {0.5: 0.5, 0.9: 0.88}, "two": {0.5: 0.6}}))
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "one & other" in texts
    assert "two" in texts
    # Three points, and one more a curve in the legend.
    assert len([*picture.iter("{http://www.w3.org/2000/svg}circle")]) == 5


def test_the_command_takes_a_trace_and_prints_figures(tmp_path: Path) -> None:
    rows = [json.dumps({"timestamp_ms": 100 * i, "output_tokens": 50 + i % 7}) for i in range(200)]
    (tmp_path / "small.jsonl").write_text("\n".join(rows))
    command = [sys.executable, "-m", "tests.tokens.calibration", "--json", "--plot", str(tmp_path / "plot.svg")]
    done = subprocess.run([*command, str(tmp_path / "small.jsonl")], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["calibration"][0]["name"] == "small"
    assert found["median when cut at 512"]["small"]["found"] == pytest.approx(53, abs=1)
    assert (tmp_path / "plot.svg").read_text().startswith("<svg")
