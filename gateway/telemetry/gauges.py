"""Gauges: read when somebody scrapes, so that a request costs nothing for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.core.degrading.causes import Cause
from gateway.core.snapshot import Health

__all__ = ["GaugeReading", "ReadingCollector"]

_HEADROOM = "Share of a backend's KV cache that may be filled; lower after preemptions."
_FOREIGN = "KV cache tokens that others than this gateway hold on a backend, as far as its reports tell."
_WAITING = "Requests that wait inside an engine and are not ours: others' traffic, or a limit that is not known here."
_PREEMPTIONS = "Preemptions that an engine reported since this gateway watches it."
_LIMIT = "Requests that may run on a backend at once, by what bounds them: slots, tpot or learned."
_MISMATCH = "How far an engine's own capacity is from the expected one, as a share of that: 0 is right, -0.5 half."


@dataclass(frozen=True, slots=True)
class GaugeReading:
    """The gateway at the moment of a scrape. By backend name, but for `queued`, which is by model.

    `reserved` and `pool` in tokens; `mismatch`: the largest difference between the engine's own figures and the
    expected ones, as a share of those, left out where nothing can be compared; `load_known`: its engine tells its own
    load, else only what is sent through this gateway counts; `foreign`: tokens of others; `waiting_inside`: requests of
    others that wait there; `limits`: requests at once, and what bounds them; `states` as `core.snapshot.Health`;
    `causes`: what is wrong with each; `lost` counts what telemetry itself had to drop, by sink.
    """

    running: Mapping[str, int] = field(default_factory=dict)
    queued: Mapping[str, int] = field(default_factory=dict)
    reserved: Mapping[str, int] = field(default_factory=dict)
    pool: Mapping[str, int] = field(default_factory=dict)
    states: Mapping[str, Health] = field(default_factory=dict)
    load_known: Mapping[str, bool] = field(default_factory=dict)
    mismatch: Mapping[str, float] = field(default_factory=dict)
    headroom: Mapping[str, float] = field(default_factory=dict)
    foreign: Mapping[str, int] = field(default_factory=dict)
    waiting_inside: Mapping[str, int] = field(default_factory=dict)
    preemptions: Mapping[str, int] = field(default_factory=dict)
    causes: Mapping[str, Cause] = field(default_factory=dict)
    limits: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    config_stale: bool = False
    lost: Mapping[str, int] = field(default_factory=dict)
    quotas: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    """By client and limit: what is left, and the whole."""


class ReadingCollector(Collector):
    """Turns the reading last put into `reading` into metric families; collected in whatever thread renders them."""

    def __init__(self) -> None:
        self.reading = GaugeReading()

    def collect(self) -> Iterator[Metric]:
        """Every gauge, with one series for each backend and model of the reading and no others."""
        now = self.reading
        for name, text, label, values in (
            ("kvgate_requests_running", "Requests running on a backend through this gateway.", "backend", now.running),
            ("kvgate_requests_queued", "Requests waiting in the gateway's queue.", "model", now.queued),
            ("kvgate_kv_reserved_tokens", "KV cache tokens reserved by running requests.", "backend", now.reserved),
            ("kvgate_kv_pool_tokens", "KV cache tokens that a backend holds; 0 when unknown.", "backend", now.pool),
            ("kvgate_capacity_mismatch_ratio", _MISMATCH, "backend", now.mismatch),
            ("kvgate_backend_load_known", "1 while an engine tells its own load.", "backend", now.load_known),
            ("kvgate_kv_headroom_ratio", _HEADROOM, "backend", now.headroom),
            ("kvgate_kv_foreign_tokens", _FOREIGN, "backend", now.foreign),
            ("kvgate_engine_foreign_waiting", _WAITING, "backend", now.waiting_inside),
        ):
            family = GaugeMetricFamily(name, text, labels=(label,))
            for key, value in values.items():
                family.add_metric((key,), value)
            yield family
        limit = GaugeMetricFamily("kvgate_backend_limit_requests", _LIMIT, labels=("backend", "by"))
        for backend, (requests, by) in now.limits.items():
            limit.add_metric((backend, by), requests)
        yield limit
        preempted = CounterMetricFamily("kvgate_engine_preemptions", _PREEMPTIONS, labels=("backend",))
        for backend, count in now.preemptions.items():
            preempted.add_metric((backend,), count)
        yield preempted
        states = "1 for the state that a backend is in."
        state = GaugeMetricFamily("kvgate_backend_state", states, labels=("backend", "state"))
        for backend, current in now.states.items():
            for health in Health:
                state.add_metric((backend, health.value), float(health is current))
        yield state
        why = "1 for what is wrong with a backend; none while nothing is."
        cause = GaugeMetricFamily("kvgate_backend_cause", why, labels=("backend", "cause"))
        for backend, named in now.causes.items():
            cause.add_metric((backend, named.value), 1.0)
        yield cause
        left = GaugeMetricFamily(
            "kvgate_quota_left", "What is left of a client's limit; below 0 when overdrawn.", labels=("client", "limit")
        )
        whole = GaugeMetricFamily("kvgate_quota_limit", "A client's limit, whole.", labels=("client", "limit"))
        for labels, (level, amount) in now.quotas.items():
            left.add_metric(labels, level)
            whole.add_metric(labels, amount)
        yield left
        yield whole
        stale = GaugeMetricFamily("kvgate_config_stale", "1 while the file on disk was refused and an older one runs.")
        stale.add_metric((), float(now.config_stale))
        yield stale
        dropped = "Lines that a log or journal had to drop."
        lost = CounterMetricFamily("kvgate_telemetry_dropped", dropped, labels=("sink",))
        for sink, count in now.lost.items():
            lost.add_metric((sink,), count)
        yield lost

    def describe(self) -> Iterator[Metric]:
        """The same families, so that the registry knows their names."""
        return self.collect()
