"""The fleet of a simulated gateway: its own roster, and what probes of emulated engines would have found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gateway.config.endpoint import Endpoint
from gateway.core.experience import Experience
from gateway.core.kv.engine_pool import EnginePool
from gateway.core.ledger import Ledger
from gateway.core.plan import Plan
from gateway.core.snapshot import Snapshot
from gateway.engines.adapter import Facts, FoundModel, Load
from gateway.fleet.roster import Roster
from gateway.sim.engine_model import EngineModel
from gateway.sim.events import Breakdown

__all__ = ["SimFleet"]

LOOK_EVERY = 5.0
"""Seconds between looks at an engine that works."""
LOOK_EVERY_DOWN = 1.0
"""Seconds between looks at one that doesn't."""


class SimFleet:
    """What a gateway knows of its engines, from declarations, probes and requests. Probes are those of the real one.

    An engine that crashed and hangs is taken for a dead process: its port is closed until its next breakdown. One that
    only hangs still answers probes.
    """

    def __init__(self, plan: Plan, endpoints: Mapping[str, Endpoint], breakdowns: Iterable[Breakdown] = ()) -> None:
        """`breakdowns`: those of the run, for what a probe finds."""
        self.roster = Roster()
        self.roster.apply(plan, dict(endpoints))
        self._breakdowns = sorted(breakdowns, key=lambda each: each.at_s)
        self._look_at: dict[str, float] = {}
        self._working: set[str] = set()

    def dead(self, name: str, now: float) -> bool:
        """Whether the engine's port is closed."""
        last = None
        for breakdown in self._breakdowns:
            if breakdown.at_s > now:
                break
            if breakdown.engine == name:
                last = breakdown
        return last is not None and last.crash and last.hang

    def look(self, now: float, engines: Mapping[str, EngineModel], ledger: Ledger, experience: Experience) -> None:
        """Probe every engine whose time has come."""
        for name, engine in engines.items():
            if now < self._look_at.get(name, 0.0):
                continue
            if self.dead(name, now):
                self._working.discard(name)
                self.roster.unreachable(name, "connection refused", True, now)
            elif name not in self._working:
                self._working.add(name)
                if self.roster.discovered(name, _facts(engine), now):
                    experience.forget_cache(name, self.roster[name].models)
            else:
                load = _load(engine)
                self.roster.sampled(name, load, ledger.totals(name, now), now)
                ledger.observe(name, (load.running or 0) + (load.waiting or 0), now)
            self.roster.judge(name, ledger.totals(name, now), now)
            self._look_at[name] = now + (LOOK_EVERY if name in self._working else LOOK_EVERY_DOWN)

    def look_soon(self, name: str) -> None:
        """A request just failed there: ask at once what it is now."""
        self._look_at.pop(name, None)
        self._working.discard(name)

    def snapshot(self, now: float, ledger: Ledger, factors: Callable[[str, float], tuple[float, float]]) -> Snapshot:
        """The fleet at `now`."""
        ledger.expire(now)
        return self.roster.snapshot(now, lambda name: ledger.totals(name, now), lambda name: factors(name, now))


def _facts(engine: EngineModel) -> Facts:
    profile = engine.profile
    return Facts(
        models=(FoundModel(profile.model, window=profile.max_model_len),),
        slots=profile.max_num_seqs,
        pool_tokens=profile.kv_cache_size_tokens,
        block=profile.block_size,
        pool=EnginePool(profile.num_blocks, profile.num_blocks / profile.blocks_for(profile.max_model_len)),
    )


def _load(engine: EngineModel) -> Load:
    scheduler = engine.scheduler
    return Load(
        running=scheduler.running,
        waiting=scheduler.waiting,
        kv_usage=scheduler.kv_usage,
        preemptions=float(engine.counters.preemptions),
    )
