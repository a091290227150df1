"""Prometheus metrics: one method an event, label children kept, gauges read at scrape time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics import MetricWrapperBase, disable_created_metrics

from gateway.core.reasons import Reason
from gateway.telemetry.gauges import GaugeReading, ReadingCollector
from gateway.telemetry.names import FAILURE_KINDS, OTHER, OUTCOMES, KnownNames

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

M = TypeVar("M", Counter, Histogram)

# Seconds. Prefill takes milliseconds to minutes, a token milliseconds to a second.
_TTFT = (0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 6.0, 12.0, 25.0, 50.0, 100.0, 200.0)
_TPOT = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.4, 1.0)
_QUEUE = (0.001, 0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0)
_DECIDE = (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05)
_REASONS = frozenset(str(reason) for reason in Reason)


class _Family(Generic[M]):
    """One metric and its children by label values; looking one up is a dict access, not a lock and a hash of names."""

    __slots__ = ("_children", "_labels", "metric")

    def __init__(self, metric: M) -> None:
        self.metric: M = metric
        self._labels: tuple[str, ...] = _label_names(metric)
        self._children: dict[tuple[str, ...], M] = {}

    def at(self, *values: str) -> M:
        child = self._children.get(values)
        if child is None:
            child = self._children[values] = self.metric.labels(*values)
        return child

    def keep(self, known: KnownNames) -> None:
        """Drop the series of models and backends that are no longer known."""
        allowed = {"model": known.models | {OTHER}, "backend": known.backends | {OTHER, ""}}
        for values in list(self._children):
            named = zip(self._labels, values, strict=True)
            if any(label in allowed and value not in allowed[label] for label, value in named):
                del self._children[values]
                self.metric.remove(*values)


def _label_names(metric: MetricWrapperBase) -> tuple[str, ...]:
    return tuple(metric._labelnames)


class Metrics:
    """Everything that is counted. Methods are called on the event loop; `render` may be called in a thread.

    `read` gives the gauges at a scrape. Names outside the sets given to `know` become "other".
    """

    def __init__(self, read: Callable[[], GaugeReading] = GaugeReading) -> None:
        # A creation time beside every counter would double the series; the library's switch is for the whole process.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._read = read
        self._known = KnownNames()
        self._registry = CollectorRegistry(auto_describe=True)
        self._gauges = ReadingCollector()
        self._registry.register(self._gauges)
        one, mb = ("backend",), ("model", "backend")
        self._requests = self._counter("kvgate_requests", "Requests by how they ended.", (*mb, "outcome"))
        self._failures = self._counter("kvgate_backend_failures", "Failed attempts on a backend.", (*one, "kind"))
        self._truncated = self._counter("kvgate_prompt_truncated", "Prompts that a backend cut short.", one)
        self._tokens = self._counter("kvgate_tokens", "Tokens: prompt, cached (part of it), completion.", (*mb, "kind"))
        self._prefix = self._counter("kvgate_prefix_tokens", "Tokens predicted and found in cache.", (*one, "kind"))
        parted = "Turns whose prompt was another from some byte on than the last one of its conversation."
        self._parted = self._counter("kvgate_prefix_diverged", parted, ("model",))
        self._closed = self._counter("kvgate_client_closed", "Clients that left, and when.", ("model", "stage"))
        self._refusals = self._counter("kvgate_refusals", "Requests turned down.", ("reason",))
        self._counts = self._counter("kvgate_exact_counts", "Prompts to be counted, by whom.", ("by", "outcome"))
        self._retries = self._counter("kvgate_retries", "Attempts after a failed one, by its backend.", one)
        self._hedged = self._counter("kvgate_hedged", "Second attempts beside late ones, by where they went.", one)
        self._resumed = self._counter("kvgate_resumed", "Answers that broke off there and went on elsewhere.", one)
        self._ttft = self._histogram("kvgate_ttft_seconds", "From sending to the first token.", mb, _TTFT)
        self._tpot = self._histogram("kvgate_tpot_seconds", "Mean time per output token after the first.", mb, _TPOT)
        self._queued = self._histogram("kvgate_queue_seconds", "From arrival to being sent.", mb, _QUEUE)
        turn = "One turn of deciding."
        self._decide = Histogram("kvgate_decide_seconds", turn, buckets=_DECIDE, registry=self._registry)

    def _counter(self, name: str, text: str, labels: tuple[str, ...]) -> _Family[Counter]:
        return _Family(Counter(name, text, labels, registry=self._registry))

    def _histogram(
        self, name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]
    ) -> _Family[Histogram]:
        return _Family(Histogram(name, text, labels, buckets=buckets, registry=self._registry))

    def know(self, models: Iterable[str], backends: Iterable[str]) -> None:
        """Take another set of names, as after a reload or discovery; series of the ones that went are dropped."""
        self._known = KnownNames(models, backends)
        for family in (self._requests, self._failures, self._truncated, self._tokens, self._prefix, self._closed):
            family.keep(self._known)
        self._retries.keep(self._known)
        self._parted.keep(self._known)
        self._resumed.keep(self._known)
        self._hedged.keep(self._known)
        for histogram in (self._ttft, self._tpot, self._queued):
            histogram.keep(self._known)

    def decided(self, seconds: float) -> None:
        """One turn of the decision loop took this long."""
        self._decide.observe(seconds)

    def admitted(self, model: str, backend: str, *, queue_s: float, predicted_cached: int = 0) -> None:
        """A request was sent to a backend after `queue_s`, with this many of its tokens expected in the cache."""
        known = self._known
        at = known.backend(backend)
        self._queued.at(known.model(model), at).observe(queue_s)
        if predicted_cached:
            self._prefix.at(at, "predicted").inc(predicted_cached)

    def settled(
        self,
        model: str,
        backend: str | None,
        outcome: str,
        *,
        ttft_s: float | None = None,
        tpot_s: float | None = None,
        prompt_tokens: int | None = None,
        completion_tokens: int | None = None,
        cached_tokens: int | None = None,
    ) -> None:
        """A request ended, once. Seconds and tokens where they are known; None gives no sample."""
        model, at = self._known.model(model), self._known.backend(backend)
        self._requests.at(model, at, outcome if outcome in OUTCOMES else OTHER).inc()
        if ttft_s is not None:
            self._ttft.at(model, at).observe(ttft_s)
        if tpot_s is not None:
            self._tpot.at(model, at).observe(tpot_s)
        if prompt_tokens:
            self._tokens.at(model, at, "prompt").inc(prompt_tokens)
        if completion_tokens:
            self._tokens.at(model, at, "completion").inc(completion_tokens)
        if cached_tokens:
            self._tokens.at(model, at, "cached").inc(cached_tokens)
            self._prefix.at(at, "cached").inc(cached_tokens)

    def refused(self, model: str | None, reason: str) -> None:
        """A request was turned down before any backend saw it; counts as its end, too."""
        self._refusals.at(reason if reason in _REASONS else OTHER).inc()
        self._requests.at(self._known.model(model), "", "refused").inc()

    def failed(self, backend: str, kind: str) -> None:
        """An attempt on a backend failed; the request may still succeed elsewhere."""
        self._failures.at(self._known.backend(backend), kind if kind in FAILURE_KINDS else OTHER).inc()

    def retried(self, backend: str) -> None:
        """Another attempt follows one that failed on this backend."""
        self._retries.at(self._known.backend(backend)).inc()

    def parted(self, model: str) -> None:
        """A prompt parted from the last one of its conversation, so that nothing after that is cached."""
        self._parted.at(self._known.model(model)).inc()

    def hedged(self, backend: str) -> None:
        """Count a second attempt, beside one that is late."""
        self._hedged.at(self._known.backend(backend)).inc()

    def resumed(self, backend: str) -> None:
        """An answer that broke off on this backend goes on in another."""
        self._resumed.at(self._known.backend(backend)).inc()

    def client_closed(self, model: str, stage: str) -> None:
        """A client left: while "queued", in "prefill", or in the "stream"."""
        self._closed.at(self._known.model(model), stage if stage in ("queued", "prefill", "stream") else OTHER).inc()

    def counted(self, by: str, outcome: str) -> None:
        """A prompt was to be counted by a "local" tokenizer or an "engine"; the outcome as `tokens.exact` has it."""
        self._counts.at(by, outcome).inc()

    def truncated(self, backend: str) -> None:
        """A backend reported far fewer prompt tokens than were sent."""
        self._truncated.at(self._known.backend(backend)).inc()

    def read(self) -> None:
        """Take the gauges; on the event loop, right before `render`."""
        self._gauges.reading = self._read()

    def render(self) -> bytes:
        """The text exposition format. Takes milliseconds with many series, so off the event loop."""
        return generate_latest(self._registry)
