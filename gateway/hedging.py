"""An attempt, and where it stays silent too long a second one beside it, if the policy pays for that."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import NamedTuple

from gateway.attempts import Attempts, Chronicle
from gateway.core.lease import Ended, Lease
from gateway.dispatcher import Dispatcher
from gateway.engines.adapter import Failure
from gateway.errors import GatewayError, UpstreamError
from gateway.fleet.hedges import Hedges
from gateway.relay.breaking import Breaking
from gateway.relay.downstream import Downstream
from gateway.relay.race import Race, Side
from gateway.tokens.measure import Measured
from gateway.wire.inbound import Inbound

__all__ = ["Hedging", "Ran"]


class Ran(NamedTuple):
    """Under which lease it ended, how (None: well), and what was kept to go on with."""

    lease: Lease
    failure: tuple[Failure, UpstreamError] | None
    breaking: Breaking | None


class Hedging:
    """Runs attempts. The loser of two is cancelled, and settles its lease as one whose client left."""

    def __init__(
        self,
        attempts: Attempts,
        dispatcher: Dispatcher,
        chronicle: Chronicle,
        roll: Callable[[], float] = random.random,
    ) -> None:
        self._attempts = attempts
        self._dispatcher = dispatcher
        self._chronicle = chronicle
        self._roll = roll
        self._hedges = Hedges()

    async def under(
        self, lease: Lease, measured: Measured, inbound: Inbound, down: Downstream, breaking: Breaking | None
    ) -> Ran:
        """As `Attempts.under`, by one backend or two."""
        late = self._hedges.after(lease, self._dispatcher.plan) if not down.shown else None
        if late is None:
            return Ran(lease, await self._attempts.under(lease, measured, inbound, down, breaking), breaking)
        return await self._raced(lease, measured, inbound, Race(down), breaking, late)

    async def _raced(
        self, lease: Lease, measured: Measured, inbound: Inbound, race: Race, breaking: Breaking | None, late: float
    ) -> Ran:
        runs = {self._begin(lease, measured, inbound, race, breaking): Ran(lease, None, breaking)}
        try:
            await asyncio.wait(runs, timeout=late)
            if race.winner is None and not any(task.done() for task in runs):
                beside = await self._beside(lease, measured)
                if beside is not None and (race.winner is not None or any(task.done() for task in runs)):
                    self._dispatcher.leases.settle(beside, Ended(), None)
                elif beside is not None:
                    other = Breaking() if breaking is not None else None
                    runs[self._begin(beside, measured, inbound, race, other)] = Ran(beside, None, other)
                    self._chronicle.hedged(beside)
            return await _first(runs, race)
        finally:
            for task in runs:
                task.cancel()
            await asyncio.gather(*runs, return_exceptions=True)

    def _begin(
        self, lease: Lease, measured: Measured, inbound: Inbound, race: Race, breaking: Breaking | None
    ) -> asyncio.Task[tuple[Failure, UpstreamError] | None]:
        side = race.side()
        made = self._attempts.under(lease, measured, inbound, side, breaking, lambda: side.lost)
        side.task = asyncio.create_task(made, name=f"attempt at {lease.backend}")
        return side.task

    async def _beside(self, lease: Lease, measured: Measured) -> Lease | None:
        """A lease for a second attempt, at once; None: there is none."""
        dispatcher = self._dispatcher
        waiting = sum(dispatcher.waiting().values())
        request = self._hedges.beside(lease, dispatcher.plan, dispatcher.leases.snapshot(), waiting, self._roll())
        if request is None:
            return None
        try:
            return await dispatcher.submit(request, measured.chain)
        except GatewayError:
            return None


async def _first(runs: dict[asyncio.Task[tuple[Failure, UpstreamError] | None], Ran], race: Race) -> Ran:
    """The outcome of the attempt that showed something; of none did, the last one's, by the last lease."""
    pending = set(runs)
    while True:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        won: Side | None = race.winner
        for task in done:
            if won is not None and task is not won.task:
                continue
            if won is not None or not pending:
                failure = task.result()
                ran = runs[task] if won is not None else list(runs.values())[-1]
                return ran._replace(failure=failure)
