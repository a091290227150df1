"""The fleet as it is known now.

A member for each backend, read as a snapshot, written by probes and by what requests met.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from gateway.config.endpoint import Endpoint
from gateway.core.concurrency import objectives
from gateway.core.decision import Decision
from gateway.core.degrading.causes import FINE, Cause
from gateway.core.degrading.judging import Verdict
from gateway.core.degrading.phase import Phase
from gateway.core.failure import FailureKind
from gateway.core.health.breaker import BreakerState
from gateway.core.health.states import Probed
from gateway.core.ledger import Totals
from gateway.core.plan import Plan
from gateway.core.snapshot import Health, Snapshot
from gateway.engines.adapter import Facts, Load
from gateway.fleet.member import Member, tells_nothing
from gateway.fleet.signs_of import signs_of

__all__ = ["Member", "Roster"]

LONGEST_REST = 55.0
"""Seconds; an engine that asks for a longer rest is asked again by then. Clients are told less than a minute, since
SDKs ignore more, and should not come back in vain."""
SOLE_LIFE = 600.0
"""Seconds after which it is forgotten that some requests may use that backend only."""
PROGRESS_LIFE = 10.0
"""Seconds since its last token during which an engine that doesn't answer a probe counts as busy, not as down."""


class Roster:
    """All members by name; a removed one stays, draining, until its last request has ended."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self.wrong: Mapping[str, Cause] = {}
        """What is wrong with members, by name; replaced, never changed."""

    def __iter__(self) -> Iterator[Member]:
        return iter(tuple(self._members.values()))

    def __getitem__(self, name: str) -> Member:
        return self._members[name]

    def get(self, name: str) -> Member | None:
        """The member of that name, None when it is gone."""
        return self._members.get(name)

    def off_premises(self) -> frozenset[str]:
        """Names of the members that are not in the house."""
        return frozenset(name for name, member in self._members.items() if member.backend.off_premises)

    # --- policy

    def apply(self, plan: Plan, endpoints: dict[str, Endpoint]) -> tuple[str, ...]:
        """Take a plan's backends; returns the names that are new or listen elsewhere now, so must be looked at afresh.

        Members that the plan lacks drain. A kept one keeps what was found out about it, read again under the new
        declarations.
        """
        fresh = []
        wanted = {backend.name: backend for backend in plan.backends}
        wants = objectives(plan)
        for name, member in self._members.items():
            member.draining = name not in wanted
        for name, backend in wanted.items():
            endpoint = endpoints[name]
            old = self._members.get(name)
            if old is None or (old.endpoint.url, old.endpoint.engine) != (endpoint.url, endpoint.engine):
                fresh.append(name)
                self._members[name] = Member.declared(backend, endpoint, plan)
            else:
                old.backend, old.endpoint = backend, endpoint
                old.breaker.policy = plan.breaker
                old.objectives = wants
                old.merge()
        return tuple(fresh)

    def cordon(self, name: str, on: bool) -> bool:
        """Keep a member from new requests, or let it have them again; False where there is none of that name.

        A removed one has no way back but the file.
        """
        member = self._members.get(name)
        if member is None or (member.draining and not on):
            return False
        member.cordoned = on
        return True

    def drained(self, totals: Callable[[str], Totals]) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Names, with model ids, of removed members on which nothing runs any more; this call forgets them."""
        gone = [name for name, member in self._members.items() if member.draining and not totals(name).running]
        if gone:
            self.wrong = {name: cause for name, cause in self.wrong.items() if name not in gone}
        return tuple((name, self._members.pop(name).models) for name in gone)

    # --- probes

    def discovered(self, name: str, facts: Facts, now: float | None = None) -> bool:
        """An engine said what it is; True when it was down or loading before, so that its cache must be empty."""
        member = self._members[name]
        returned = member.probed in (Probed.DOWN, Probed.LOADING)
        member.probed, member.facts, member.error = Probed.UP, facts, None
        if returned:
            member.observer.restarted()
        member.merge()
        if returned and now is not None:
            member.condition.restarted(member.observer.headroom, now)
        return returned

    def sampled(self, name: str, load: Load, totals: Totals, now: float, asked: float | None = None) -> None:
        """An engine said how it fares, asked at `asked`; what it holds beyond what was ours since then is others'."""
        member = self._members[name]
        member.probed, member.error = Probed.UP, None
        seen = member.observer.preemptions
        member.sample(load, totals, now if asked is None else asked, now)
        if load.preemptions is not None:
            member.condition.preempted(member.observer.preemptions - seen, now)

    def reported(self, name: str, load: Load, at: float, now: float) -> None:
        """The head of an answer, which came at `at`, told of the engine's load."""
        member = self._members.get(name)
        if member is not None:
            member.observer.reply(load, member.capacity.pool_tokens, at, now)

    def paced(self, name: str, residuals: Sequence[tuple[Phase, float]], running: int, now: float) -> None:
        """It took so many times the predicted seconds while so many sequences of ours ran there."""
        member = self._members.get(name)
        if member is not None and residuals:
            member.gradient.learn(residuals[-1][1], running)
            for phase, ratio in residuals:
                member.condition.paced(phase, ratio, now)

    def judge(self, name: str, totals: Totals, now: float) -> Verdict:
        """What is wrong with it, by all that is seen of it now."""
        member = self._members[name]
        peers = (self._members[peer] for peer in self._peers(member))
        verdict = member.condition.judged(signs_of(member, peers, totals, now), now)
        if self.wrong.get(name, Cause.NONE) is not verdict.cause:
            others = {other: cause for other, cause in self.wrong.items() if other != name and other in self._members}
            self.wrong = others if verdict.cause in FINE else {**others, name: verdict.cause}
        return verdict

    def tells_running(self, name: str, now: float) -> bool:
        """Whether its engine tells how many requests it runs, and did so lately."""
        load = self._told(name, now)
        return load is not None and load.running is not None

    def tells_load(self, name: str, now: float) -> bool:
        """Whether its engine tells anything about its load, and did so lately."""
        load = self._told(name, now)
        return load is not None and not tells_nothing(load)

    def others_running(self, name: str, now: float) -> int:
        """Requests of others that its engine has, running or waiting, by what it told lately; 0 where it didn't."""
        member = self._members.get(name)
        if member is None or member.told(now) is None:
            return 0
        return member.observer.foreign_running + member.observer.foreign_waiting

    def _told(self, name: str, now: float) -> Load | None:
        member = self._members.get(name)
        return member.told(now) if member is not None else None

    def loading(self, name: str) -> None:
        """An engine is there and loads its model."""
        member = self._members[name]
        member.probed, member.error = Probed.LOADING, "loading its model"

    def restarted(self, name: str) -> None:
        """An engine was started anew unseen: nothing new is sent there until it has said again what it is."""
        member = self._members[name]
        member.probed, member.error = Probed.LOADING, "was started anew"
        member.observer.restarted()

    def unreachable(self, name: str, error: str, refused: bool, now: float) -> bool:
        """An engine did not answer.

        True when that takes it out: a closed port always, silence only if nothing moves there.
        """
        member = self._members[name]
        busy = member.progressed_at is not None and now - member.progressed_at < PROGRESS_LIFE
        if busy and not refused:
            return False
        member.probed, member.error = Probed.DOWN, error
        return True

    # --- requests

    def held(self, name: str, totals: Totals, now: float) -> None:
        """So much is held there by our leases from now on."""
        member = self._members.get(name)
        if member is not None:
            member.observer.held(totals, now)
            if totals.running <= totals.lingering:
                member.busy_since = None
            elif member.busy_since is None:
                member.busy_since = member.awaited_until = now

    def granted(self, decision: Decision, name: str, totals: Totals, now: float) -> None:
        """A lease was entered there; `totals` include it."""
        self.held(name, totals, now)
        member = self._members[name]
        member.busy_with = decision.model
        member.awaited_until = max(member.awaited_until, now + (decision.predicted_ttft or 0.0))
        if not decision.alternatives:
            self.sole(name, now)

    def progressed(self, name: str, now: float) -> None:
        """A request got tokens from there."""
        member = self._members.get(name)
        if member is not None:
            member.progressed_at = now

    def succeeded(self, name: str, now: float) -> None:
        """An attempt there ended well."""
        member = self._members.get(name)
        if member is not None:
            member.breaker.succeeded(now)

    def failed(
        self,
        name: str,
        kind: FailureKind,
        now: float,
        rest: float | None = None,
        alternatives: Collection[str] | None = None,
    ) -> None:
        """An attempt there failed; a busy engine may have asked for `rest` seconds without new requests.

        `alternatives` are the other backends that may serve that request; None: all that serve the same models.
        """
        member = self._members.get(name)
        if member is None:
            return
        if kind is FailureKind.LOADING:
            self.loading(name)
        if kind is FailureKind.MEMORY:
            member.observer.headroom.preempted(now)
            member.condition.ran_out(now)
        if kind is FailureKind.BUSY and rest:
            member.breaker.rest_until(now + min(rest, LONGEST_REST), now)
        if alternatives is None:
            alternatives = self._peers(member)
        last = not any(self._works(other, now) for other in alternatives)
        sole = member.sole_at is not None and now - member.sole_at < SOLE_LIFE
        member.breaker.failed(kind, now, last=last, sole=sole)

    def sole(self, name: str, now: float) -> None:
        """A request goes there that no other backend may serve."""
        self._members[name].sole_at = now

    def died(self, name: str, sent_at: float, now: float) -> bool:
        """Whether a connection that broke there just now, after `sent_at`, went down together with the whole engine.

        So it is said of all that ran when the first one broke, and not of what is sent to it after that, until a token
        has come from there again.
        """
        member = self._members.get(name)
        if member is None:
            return True
        died = member.died_at
        if died is None or (sent_at > died and member.progressed_at is not None and member.progressed_at > died):
            member.died_at = died = now
        return sent_at <= died

    def reached(self, name: str, now: float, *, restarted: bool = False) -> None:
        """It answered a probe; `restarted` after it had been down or loading."""
        member = self._members[name]
        if restarted:
            member.died_at = None
        member.breaker.reached(now, restarted=restarted)

    def is_down(self, name: str) -> bool:
        """Whether no probe reaches it by now, or it is gone: what it was sent is lost."""
        member = self._members.get(name)
        return member is None or member.probed is Probed.DOWN

    def is_suspect(self, name: str) -> bool:
        """Whether failures took it out, though probes reach it: a question may tell more."""
        member = self._members.get(name)
        if member is None or member.draining or member.probed is not Probed.UP:
            return False
        return member.breaker.cause is not None

    def asks(self, name: str, until: float) -> None:
        """A question of our own to it is open, until then at most."""
        self._members[name].breaker.asks(until)

    def asked(self, name: str, answered: bool | None, now: float) -> None:
        """It answered that question, or didn't; None: it could not be asked."""
        member = self._members.get(name)
        if member is not None:
            member.breaker.asked(answered, now)

    def rests(self, name: str, now: float) -> bool:
        """Whether it gets nothing new before a known moment."""
        member = self._members.get(name)
        return member is not None and member.breaker.state(now) is BreakerState.OPEN

    def _peers(self, member: Member) -> list[str]:
        """Names of the other members that serve one of its models."""
        models = set(member.models)
        return [other.backend.name for other in self if other is not member and models.intersection(other.models)]

    def _works(self, name: str, now: float) -> bool:
        member = self._members.get(name)
        if member is None:
            return False
        health, _ = member.health_at(now)
        return health in (Health.UP, Health.TRIAL)

    # --- reading

    def snapshot(
        self, now: float, totals: Callable[[str], Totals], factors: Callable[[str], tuple[float, float]]
    ) -> Snapshot:
        """The fleet at `now`: what members are, and what the ledger says runs there."""
        return Snapshot(now, tuple(m.view(now, totals(m.backend.name), factors(m.backend.name)) for m in self))
