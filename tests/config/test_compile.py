"""A policy as a plan: nothing lost, nothing invented."""

from __future__ import annotations

import pytest

from gateway.config.compile import UNKNOWN_DEVICE, backend, compile_policy, device
from gateway.config.endpoint import Timeouts, endpoint
from gateway.config.load import load
from gateway.core.boundary import Label
from gateway.core.plan import Breaker, ClassPolicy, Plan, QueueLimits, RetryPolicy, Route, RoutingCosts
from gateway.core.request import Consent
from tests.config.fleet import spec

TEXT = """\
backends:
  - {name: a, url: http://10.0.0.1, engine: vllm, device: dgx-spark, queued_prefill: 3s,
     devices: {count: 2, tensor_parallel: 2}}
  - {name: b, url: https://llm.example.com, engine: openai, location: off-prem, clearance: internal}
models:
  - name: code
    serves: m
    fallback: [n]
    consent: quant
    context: shortest
    output: {default: 100, ceiling: 200, fit: refuse}
    class: fast
    data: confidential
    slo: {ttft: 5s, tpot: 80ms}
  - {name: chat, serves: n}
classes: {fast: {weight: 8, kv_ceiling: 50%, sheddable: false}}
routing: {harm: 0.5, move_penalty: {share: 20%, floor: 1s}}
admission: {reserve: worst_case}
queue: {length: 5, wait: 6s, aging: 7s}
health: {breaker: {failures: 2, open: 3s, trials: 4}}
retry: {attempts: 1, budget: 20%}
"""


def test_everything_arrives() -> None:
    plan = compile_policy(load(TEXT).policy, version=7)
    assert plan.routes["code"] == Route(
        "code", "m", ("n",), Consent.QUANT, "shortest", 100, 200, "refuse", "fast", Label.CONFIDENTIAL, 5.0, 0.08
    )
    assert plan.routes["chat"] == Route("chat", "n", label=Label.INTERNAL)
    assert plan.classes == {"fast": ClassPolicy("fast", 8.0, 0.5, False), "default": ClassPolicy("default")}
    assert plan.queue == QueueLimits(5, 6.0, 7.0)
    assert plan.costs == RoutingCosts(harm=0.5, move_share=0.2, move_floor=1.0)
    assert plan.retry == RetryPolicy(attempts=1, budget=0.2)
    assert plan.breaker == Breaker(2, 3.0, cap=24.0, trials=4)
    assert (plan.reserve, plan.version, plan.default_label) == ("worst_case", 7, Label.INTERNAL)


def test_backends_carry_device_and_boundary() -> None:
    a, b = compile_policy(load(TEXT).policy).backends
    assert (a.device.id, a.device.memory, a.device.count, a.device.tensor_parallel) == (
        "dgx-spark",
        256_000_000_000,
        2,
        2,
    )
    assert (a.queued_prefill, a.clearance, a.off_premises, a.headroom) == (3.0, Label.RESTRICTED, False, 0.80)
    assert (b.clearance, b.off_premises, b.device.id, b.device.known) == (Label.INTERNAL, True, "hosted", False)


def test_the_defaults_of_the_file_are_the_defaults_of_the_core() -> None:
    plan = compile_policy(load("backends: [{name: a, url: http://10.0.0.1, engine: vllm}]").policy)
    assert plan == Plan(backends=plan.backends, default_label=Label.INTERNAL)


@pytest.mark.parametrize(
    ("fields", "clearance"),
    [
        ("engine: openai", Label.RESTRICTED),
        ("engine: openai, clearance: internal", Label.INTERNAL),
        ("engine: openai, location: off-prem", Label.PUBLIC),
        ("engine: openai, location: off-prem, clearance: internal", Label.INTERNAL),
    ],
)
def test_what_leaves_the_house_sees_only_public_data_unless_told(fields: str, clearance: Label) -> None:
    assert backend(spec(fields)).clearance is clearance


def test_a_device_by_its_numbers() -> None:
    own = device(spec("engine: vllm, device: {memory: 96GiB, bandwidth: 1792GB/s, fp16: 250T}"))
    assert (own.memory, own.bandwidth, own.flops, own.known) == (96 * 1024**3, 1792e9, 250e12, True)
    better = device(spec("engine: vllm, device: {id: rtx-3090, memory: 23GiB}"))
    assert (better.id, better.memory, better.bandwidth) == ("rtx-3090", 23 * 1024**3, 936e9)
    assert device(spec("engine: vllm")) == UNKNOWN_DEVICE


def test_an_endpoint_has_what_the_shell_needs() -> None:
    made = endpoint(
        spec(
            "engine: vllm, key: sk-1, running: 9, timeouts: {connect: 1s, first_token: 40s}, abilities: {tools: false}"
        )
    )
    assert (made.name, made.url, made.engine, made.running) == ("b", "http://10.0.0.1:8000", "vllm", 9)
    assert made.timeouts == Timeouts(connect=1.0, first_token=40.0, token_gap=60.0)
    assert made.abilities == {"tools": False}
    assert made.key is not None
    assert made.key.reveal() == "sk-1"
    assert "sk-1" not in repr(made)
