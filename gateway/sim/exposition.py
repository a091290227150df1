"""/metrics of the emulated engine: the vLLM families that a gateway reads."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from gateway.sim.engine_model import EngineModel

__all__ = ["CONTENT_TYPE", "expose"]

CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"


def expose(engine: EngineModel, model: str) -> bytes:
    """The exposition text of `engine`, labelled as engine 0 of a server that serves `model`."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(engine, {"engine": "0", "model_name": model}))
    return generate_latest(registry)


class _Families(Collector):
    def __init__(self, engine: EngineModel, labels: dict[str, str]) -> None:
        self._engine = engine
        self._labels = labels

    def collect(self) -> Iterator[Metric]:
        scheduler, counters, profile = self._engine.scheduler, self._engine.counters, self._engine.profile
        yield self._gauge("num_requests_running", "Number of requests in model execution batches.", scheduler.running)
        yield self._gauge("num_requests_waiting", "Number of requests waiting to be processed.", scheduler.waiting)
        by_reason = GaugeMetricFamily(
            "vllm:num_requests_waiting_by_reason",
            "Number of waiting requests by reason.",
            labels=[*self._labels, "reason"],
        )
        by_reason.add_metric([*self._labels.values(), "capacity"], scheduler.waiting)
        by_reason.add_metric([*self._labels.values(), "deferred"], 0)
        yield by_reason
        yield self._gauge("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", scheduler.kv_usage)
        for name, text, value in (
            ("prefix_cache_queries", "Prefix cache queries, in tokens.", counters.prefix_queries),
            ("prefix_cache_hits", "Prefix cache hits, in tokens.", counters.prefix_hits),
            ("num_preemptions", "Cumulative number of preemption from the engine.", counters.preemptions),
            ("prompt_tokens", "Number of prefill tokens processed.", counters.prompt_tokens),
            ("prompt_tokens_cached", "Number of cached prompt tokens.", counters.prefix_hits),
            ("generation_tokens", "Number of generation tokens processed.", counters.generated_tokens),
        ):
            yield self._counter(name, text, value)
        success = CounterMetricFamily(
            "vllm:request_success",
            "Count of successfully processed requests.",
            labels=["engine", "finished_reason", "model_name"],
        )
        # vLLM does not count aborted requests here, though the label is there.
        reasons = {"stop": counters.stopped, "length": counters.cut_by_length, "abort": 0, "error": counters.failed}
        for reason, count in reasons.items():
            success.add_metric([self._labels["engine"], reason, self._labels["model_name"]], count)
        yield success
        concurrency = profile.num_blocks / profile.blocks_for(profile.max_model_len)
        config = {
            "block_size": str(profile.block_size),
            "enable_prefix_caching": str(profile.prefix_caching),
            "engine": "0",
            "kv_cache_max_concurrency": str(concurrency),
            "kv_cache_size_tokens": str(profile.kv_cache_size_tokens),
            "num_gpu_blocks": str(profile.num_blocks),
        }
        info = GaugeMetricFamily(
            "vllm:cache_config_info", "Information of the LLMEngine CacheConfig", labels=list(config)
        )
        info.add_metric(list(config.values()), 1)
        yield info

    def _gauge(self, name: str, text: str, value: float) -> GaugeMetricFamily:
        family = GaugeMetricFamily(f"vllm:{name}", text, labels=list(self._labels))
        family.add_metric(list(self._labels.values()), value)
        return family

    def _counter(self, name: str, text: str, value: float) -> CounterMetricFamily:
        family = CounterMetricFamily(f"vllm:{name}", text, labels=list(self._labels))
        family.add_metric(list(self._labels.values()), value)
        return family
