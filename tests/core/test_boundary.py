"""The data boundary over the whole life of a request: chosen, failed, tried again, gone on with, files changed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.boundary import Label
from gateway.core.continuing import others, rest_of
from gateway.core.decision import Verdict
from gateway.core.failure import FailureKind
from gateway.core.plan import RetryPolicy, Route
from gateway.core.pump import pump
from gateway.core.request import Consent, Estimate, Request
from gateway.core.retrying import RetryBudget, may_retry
from gateway.core.snapshot import BackendView, Health, Snapshot
from tests.core.fleet import NOW, offer, plan, request, view

NAMES = "abcde"
ESTIMATES = {model: Estimate(800, 900, 100, 200) for model in ("m", "m-fp8", "n")}
POLICY = RetryPolicy(attempts=4, budget=1.0, burst=100.0)


def some_view(rng: Random, name: str) -> BackendView:
    offers = tuple(offer(model) for model in ESTIMATES if rng.random() < 0.6) or (offer("m"),)
    health = rng.choice([Health.UP] * 6 + [Health.DOWN, Health.OPEN, Health.TRIAL])
    running = rng.choice([0, 0, 1, 8])
    return view(name, offers=offers, health=health, clearance=rng.choice(list(Label)), running=running)


def some_route(rng: Random) -> Route:
    fallback = tuple(rng.sample(["m-fp8", "n"], rng.randint(0, 2)))
    return Route("m", "m", fallback=fallback, consent=rng.choice(list(Consent)), label=rng.choice(list(Label)))


def reloaded(rng: Random, fleet: tuple[BackendView, ...]) -> tuple[BackendView, ...]:
    """The same backends under a file with other clearances."""
    return tuple(replace(v, backend=replace(v.backend, clearance=rng.choice(list(Label)))) for v in fleet)


def after(rng: Random, asked: Request, fleet: Snapshot, backend: str, model: str) -> Request | None:
    """The request once its attempt there has failed, in one of the ways in which attempts fail."""
    chosen = next(v for v in fleet.views if v.name == backend)
    if rng.random() < 0.4:
        can = others(fleet, chosen.offer(model) or offer(model), NAMES) | {backend}
        return rest_of(asked, model, rng.randint(1, 50), can, NOW)
    kind = rng.choice([FailureKind.CONNECT, FailureKind.BROKEN, FailureKind.SERVER, FailureKind.NOT_CLEARED])
    ruling = may_retry(kind, asked, prompt_tokens=800, policy=POLICY, budget=RetryBudget(POLICY), now=NOW)
    return asked.after_failure_on(backend) if ruling else None


@settings(deadline=None, max_examples=600)
@given(st.integers(0, 2**48).map(Random))
def test_whatever_happens_to_it_only_cleared_backends_see_it(rng: Random) -> None:
    fleet, route = tuple(some_view(rng, name) for name in NAMES), some_route(rng)
    label, asked = rng.choice(list(Label)), None
    asked = request(estimates=ESTIMATES, label=label, consent=rng.choice(list(Consent)))
    bound, following = label, asked
    for _ in range(6):
        if rng.random() < 0.3:
            fleet, route = reloaded(rng, fleet), some_route(rng)
        now = Snapshot(NOW, fleet)
        (decision,) = pump(plan(route), [following], now, NOW, iter([rng.random()]))
        if decision.verdict is not Verdict.ADMIT:
            return
        assert decision.backend is not None
        assert decision.model is not None
        chosen = now.view(decision.backend)
        assert chosen is not None
        assert max(bound, route.label) <= chosen.backend.clearance
        assert decision.model in route.models
        if following.resumed or min(route.consent, following.consent) is Consent.NONE:
            assert decision.model == "m" or following.resumed
        again = after(rng, following, now, decision.backend, decision.model)
        if again is None:
            return
        assert again.label == label, "no attempt is bound by less than the one before"
        following = again
