from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from gateway.core.snapshot import Health
from gateway.telemetry.gauges import GaugeReading
from gateway.telemetry.metrics import Metrics

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape(metrics: Metrics) -> Series:
    metrics.read()
    text = metrics.render().decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def labelled(series: Series, **labels: str) -> list[str]:
    return sorted({name for name, have in series if set(labels.items()) <= set(have)})


def known() -> Metrics:
    metrics = Metrics()
    metrics.know(models=("code",), backends=("rig", "spark"))
    return metrics


def test_a_request_shows_in_every_metric_that_is_about_it() -> None:
    metrics = known()
    metrics.admitted("code", "rig", queue_s=0.3, predicted_cached=800)
    metrics.settled(
        "code", "rig", "completed", ttft_s=0.5, tpot_s=0.02, prompt_tokens=1000, completion_tokens=50, cached_tokens=750
    )
    series = scrape(metrics)
    at = (("backend", "rig"), ("model", "code"))
    assert series["kvgate_requests_total", (*at, ("outcome", "completed"))] == 1
    assert series["kvgate_tokens_total", (at[0], ("kind", "prompt"), at[1])] == 1000
    assert series["kvgate_tokens_total", (at[0], ("kind", "completion"), at[1])] == 50
    assert series["kvgate_tokens_total", (at[0], ("kind", "cached"), at[1])] == 750
    assert series["kvgate_prefix_tokens_total", (at[0], ("kind", "predicted"))] == 800
    assert series["kvgate_prefix_tokens_total", (at[0], ("kind", "cached"))] == 750
    for name, value in (("ttft", 0.5), ("tpot", 0.02), ("queue", 0.3)):
        assert series[f"kvgate_{name}_seconds_count", at] == 1
        assert series[f"kvgate_{name}_seconds_sum", at] == value


def test_no_first_token_gives_no_sample() -> None:
    metrics = known()
    metrics.settled("code", "rig", "client_closed")
    series = scrape(metrics)
    assert not [name for name, _ in series if name.startswith("kvgate_ttft")]


def test_names_from_outside_become_one_series() -> None:
    metrics = known()
    metrics.refused("gpt-0", "unknown_model")
    before = len(scrape(metrics))
    for number in range(5000):
        metrics.refused(f"gpt-{number}", "unknown_model")
        metrics.settled(f"gpt-{number}", f"host-{number}", f"outcome-{number}")
        metrics.failed(f"host-{number}", f"kind-{number}")
        metrics.refused(None, f"reason-{number}")
        metrics.client_closed(f"gpt-{number}", f"stage-{number}")
    series = scrape(metrics)
    labels = {value for _, have in series for _, value in have}
    assert not [
        value for value in labels if value.startswith(("gpt-", "host-", "kind-", "reason-", "stage-", "outcome-"))
    ]
    # requests{other, other, other}, failures, refusals{other}, client_closed
    assert len(series) - before == 4
    assert series["kvgate_refusals_total", (("reason", "unknown_model"),)] == 5001


def test_series_of_removed_backends_vanish_and_do_not_come_back() -> None:
    metrics = known()
    for backend in ("rig", "spark"):
        metrics.admitted("code", backend, queue_s=0.1, predicted_cached=1)
        metrics.settled("code", backend, "completed", ttft_s=1.0, tpot_s=0.1, prompt_tokens=1, cached_tokens=1)
        metrics.failed(backend, "connect")
        metrics.retried(backend)
        metrics.truncated(backend)
    assert len(labelled(scrape(metrics), backend="rig")) >= 8
    metrics.know(models=("code",), backends=("spark",))
    series = scrape(metrics)
    assert labelled(series, backend="rig") == []
    assert len(labelled(series, backend="spark")) >= 8
    metrics.settled("code", "rig", "completed")
    assert labelled(scrape(metrics), backend="rig") == []


def test_gauges_are_read_at_the_scrape_and_read_zero() -> None:
    running = {"rig": 2}
    states = {"rig": Health.UP}
    metrics = Metrics(
        lambda: GaugeReading(
            running=dict(running), queued={"code": 3}, reserved={"rig": 4096}, pool={"rig": 8192}, states=dict(states),
            config_stale=bool(running["rig"]), lost={"journal": 5},
        )
    )  # fmt: skip
    series = scrape(metrics)
    assert series["kvgate_requests_running", (("backend", "rig"),)] == 2
    assert series["kvgate_requests_queued", (("model", "code"),)] == 3
    assert series["kvgate_kv_reserved_tokens", (("backend", "rig"),)] == 4096
    assert series["kvgate_kv_pool_tokens", (("backend", "rig"),)] == 8192
    assert series["kvgate_telemetry_dropped_total", (("sink", "journal"),)] == 5
    assert series["kvgate_config_stale", ()] == 1
    running["rig"] = 0
    states["rig"] = Health.OPEN
    series = scrape(metrics)
    assert series["kvgate_requests_running", (("backend", "rig"),)] == 0
    assert series["kvgate_config_stale", ()] == 0
    assert series["kvgate_backend_state", (("backend", "rig"), ("state", "open"))] == 1
    assert series["kvgate_backend_state", (("backend", "rig"), ("state", "up"))] == 0


def test_two_metrics_objects_share_nothing() -> None:
    first, second = known(), known()
    first.failed("rig", "connect")
    first.decided(0.0003)
    assert scrape(second)["kvgate_decide_seconds_count", ()] == 0
    assert labelled(scrape(second), backend="rig") == []
