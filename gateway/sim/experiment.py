"""One trace through several gateways and proxies, several times: the same requests and the same devices for all.

A seed draws the moments within sampled bursts, the spread of the devices' constants and the gateway's own chances, and
takes the next segment of the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway import clock
from gateway.config.compile import compile_policy
from gateway.config.endpoint import endpoints
from gateway.config.policy import Policy as Configuration
from gateway.core.boundary import Label
from gateway.errors import ConfigError
from gateway.sim.baselines import BASELINES
from gateway.sim.engine_model import EngineModel
from gateway.sim.events import Action, Arrival, Breakdown, Event, Policy
from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.gateway_request import Caller
from gateway.sim.gateway_unheld import BoundOnArrival
from gateway.sim.outcome import Outcome
from gateway.sim.summary import Goal, Summary, ideal_prefill, summary
from gateway.sim.trace_file import TraceRow
from gateway.sim.trace_traffic import played, rate_of, segment
from gateway.sim.truth import Truth, emulated
from gateway.sim.virtual import simulate
from gateway.telemetry.observer import Recorder

__all__ = ["NAMED", "Contender", "Played", "Traffic", "play", "traffic"]

EXACT, USUAL = Truth(), Goal()
HORIZON_S = 0.05
"""Seconds of pure decoding that are one event; what arrives meanwhile waits for its end."""
NAMED = (*BASELINES, "bound-on-arrival")
"""What can be compared by name: plain proxies, and the gateway without its queue."""


@dataclass(frozen=True, slots=True)
class Contender:
    """Who plays: a configuration, and by `kind` the gateway itself ("") or one of NAMED in front of its backends."""

    name: str
    configuration: Configuration
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Traffic:
    """The requests of one seed. `rows`: by request id; `rate` a second."""

    seed: int
    arrivals: Sequence[Arrival]
    rows: Mapping[str, TraceRow]
    ideal: int
    rate: float
    left_out: int


@dataclass(frozen=True, slots=True)
class Played:
    """One contender's run. `decided_s`: CPU seconds of its decisions, on this machine; the rest is the same on any."""

    contender: str
    seed: int
    summary: Summary
    outcomes: Sequence[Outcome]
    decided_s: float


class _Timed:
    """A policy, and the CPU time that it takes; `tell` hears how far the run is."""

    def __init__(self, policy: Policy, tell: Callable[[float], None]) -> None:
        self._policy = policy
        self._tell = tell
        self.seconds = 0.0

    def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
        began = clock.cpu()
        actions = list(self._policy.on_event(now, event, engines))
        self.seconds += clock.cpu() - began
        self._tell(now)
        return actions


def traffic(
    rows: Sequence[TraceRow],
    contenders: Sequence[Contender],
    *,
    seed: int = 1,
    requests: int = 500,
    start: float = 0.0,
    skip: int = 0,
    speed: float = 1.0,
    rate: float | None = None,
    longest: int | None = None,
    patience_s: float = 0.0,
    model: str | None = None,
) -> Traffic:
    """`requests` of the trace from the part `start` of it on, `skip` segments later, `speed` times as fast.

    `rate`: so many a second instead. Requests that not every contender's fleet holds, or of more than `longest` tokens,
    are left out. Raises ConfigError where none is left.
    """
    chosen = segment(rows, int(start * len(rows)) + skip * min(requests, len(rows)), requests)
    held = min(_longest(contender, model) for contender in contenders)
    longest = held if longest is None else min(held, longest)
    fitting = [row for row in chosen if row.prompt + row.output <= longest]
    if not fitting:
        raise ConfigError(
            f"no request of the {len(chosen)} chosen is as short as {longest:,} tokens, the most it may be"
        )
    pace = rate or rate_of(fitting) * speed
    if pace <= 0.0:
        raise ConfigError("the trace's requests came at one moment; say how many a second with --rate")
    arrivals = played(fitting, pace, len(fitting) / pace, longest=longest, seed=seed, patience_s=patience_s)
    rows_by_id = {f"t{number}": row for number, row in enumerate(fitting)}
    return Traffic(
        seed, arrivals, rows_by_id, ideal_prefill(each.request for each in arrivals), pace, len(chosen) - len(fitting)
    )


def play(
    contender: Contender,
    given: Traffic,
    *,
    truth: Truth = EXACT,
    goal: Goal = USUAL,
    model: str | None = None,
    breakdowns: Sequence[Breakdown] = (),
    tell: Callable[[float], None] = lambda _: None,
    recorder: Recorder | None = None,
) -> Played:
    """One run; `tell` hears the virtual seconds that have passed, `recorder` keeps what a gateway decided."""
    engines = emulated(contender.configuration, model, replace(truth, seed=given.seed))
    for breakdown in breakdowns:
        if breakdown.engine not in engines:
            raise ConfigError(f"there is no backend {breakdown.engine}; the file has {', '.join(sorted(engines))}")
    policy = _policy(contender, given, model, breakdowns, recorder)
    timed = _Timed(policy, tell)
    run = simulate(given.arrivals, engines, timed, breakdowns=breakdowns, horizon_s=HORIZON_S)
    leases = policy.granted if isinstance(policy, GatewayPolicy) else None
    return Played(
        contender.name, given.seed, summary(run, engines, given.ideal, goal, leases), run.outcomes, timed.seconds
    )


def _policy(
    contender: Contender,
    given: Traffic,
    model: str | None,
    breakdowns: Sequence[Breakdown],
    recorder: Recorder | None,
) -> Policy:
    if contender.kind in BASELINES:
        return BASELINES[contender.kind]()
    kind = BoundOnArrival if contender.kind else GatewayPolicy
    configuration = contender.configuration
    return kind(
        compile_policy(configuration),
        endpoints(configuration),
        _callers(configuration, given.rows, model),
        breakdowns=breakdowns,
        seed=given.seed,
        recorder=recorder,
    )


def _callers(
    configuration: Configuration, rows: Mapping[str, TraceRow], model: str | None
) -> Callable[[Arrival], Caller]:
    """Who asks, of a trace's row: what a journal tells where the file knows it, else the first name that is served."""
    names = set(_names(configuration))
    classes = {*configuration.classes, "default"}
    usual = model or next(_names(configuration))
    if usual not in names:
        raise ConfigError(f"nobody serves {usual}; the file has {', '.join(dict.fromkeys(_names(configuration)))}")

    def caller(arrival: Arrival) -> Caller:
        row = rows[arrival.request.id]
        asked = row.model if not model and row.model in names else usual
        klass = row.klass if row.klass in classes else "default"
        return Caller(asked, client=row.client or "client", klass=klass, label=Label.PUBLIC)

    return caller


def _names(configuration: Configuration) -> Iterator[str]:
    """Names that clients may ask for, in the file's order."""
    yield from (route.name for route in configuration.models)
    if not configuration.models:
        for backend in configuration.backends:
            yield from (one.id for one in backend.models)


def _longest(contender: Contender, model: str | None) -> int:
    """Tokens of the longest request that some engine of this fleet holds."""
    return max(engine.profile.max_model_len for engine in emulated(contender.configuration, model).values())
