"""Limits of clients in the dispatcher, on a clock that the test moves."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable

import pytest

from gateway.core.failure import FailureKind
from gateway.core.lease import Ended, Lease
from gateway.core.plan import QueueLimits
from gateway.core.prefix.chain import fingerprint
from gateway.core.quota import Amounts, ClientLimits, Quota, Shortfall
from gateway.core.token_bucket import Rate
from gateway.errors import ContextTooLong, OverQuota, StoreError
from tests.core.fleet import NOW, request
from tests.shell.dispatch_rig import Rig, plan_of, turns

NAMES = ("a", "b", "c", "d", "e", "f")
Make = Callable[..., Rig]
BUCKET = {"x": ClientLimits(rates={Quota.TOKENS: Rate(12_000, 120)})}
"""Full: ten requests of 1,000 and 200 tokens; 100 tokens come back each second."""


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Makes rigs whose dispatchers run; they must be empty in the end."""
    rigs: list[Rig] = []

    def maker(**more: object) -> Rig:
        more.setdefault("clients", BUCKET)
        rig = Rig(*NAMES, slots=100, **more)
        rig.dispatcher.start()
        rigs.append(rig)
        return rig

    yield maker
    for rig in rigs:
        assert rig.nothing_left
        await rig.dispatcher.stop()


def of_x(rig: Rig, name: str, prompt: int = 1000, **more: object) -> asyncio.Task[Lease]:
    asked = request(name, client="x", prompt=prompt, waited=NOW - rig.clock.now, **more)
    return asyncio.create_task(rig.dispatcher.submit(asked, fingerprint([name.encode()])))


def left(rig: Rig, quota: Quota = Quota.TOKENS) -> float:
    standing = rig.leases.quotas.standing("x")
    assert standing is not None
    return standing[1].left[quota]


def done(rig: Rig, *leases: Lease, prompt: int = 1000, output: int = 200) -> None:
    for lease in leases:
        ended = Ended(completed=True, finished=True, prompt_tokens=prompt, output_tokens=output, ttft=0.1)
        rig.leases.settle(lease, ended, None)


async def test_a_grant_is_charged_what_is_expected_and_put_right_once(make: Make) -> None:
    rig = make()
    lease = await of_x(rig, "r")
    assert left(rig) == 10_800
    done(rig, lease, prompt=900, output=50)
    assert left(rig) == 11_050
    done(rig, lease, prompt=0, output=0)
    assert left(rig) == 11_050


async def test_over_the_bucket_it_waits_until_there_is_enough(make: Make) -> None:
    rig = make()
    first = await of_x(rig, "first", prompt=11_800)
    waits = of_x(rig, "waits")
    await turns()
    assert rig.dispatcher.waiting() == {"m": 1}
    rig.pass_time(11.0)
    await turns()
    assert not waits.done()
    rig.pass_time(1.0)
    lease = await asyncio.wait_for(waits, 1)
    assert lease.queued == pytest.approx(12.0)
    done(rig, first, prompt=11_800)
    done(rig, lease)


async def test_others_pass_by_one_that_waits_for_its_bucket(make: Make) -> None:
    rig = make()
    first = await of_x(rig, "first", prompt=11_800)
    waits = [of_x(rig, f"waits {n}") for n in range(4)]
    other = await asyncio.wait_for(rig.submit(request("other", client="y")), 1)
    assert not any(each.done() for each in waits)
    for each in waits:
        each.cancel()
    await turns()
    done(rig, first, other)


async def test_x6_what_would_wait_too_long_is_refused_at_once_and_costs_nothing(make: Make) -> None:
    rig = make()
    first = await of_x(rig, "first", prompt=11_800)
    for number in range(50):
        with pytest.raises(OverQuota) as caught:
            await asyncio.wait_for(of_x(rig, f"r{number}", prompt=7800), 1)  # 80 s, and the queue is left after 60
        assert caught.value.retry_after >= 80
    assert left(rig) == 0
    assert caught.value.code == "over_quota"
    assert "(limit tokens); 0 are left, and this request needs 8,000" in caught.value.message
    done(rig, first, prompt=11_800)


async def test_a_refused_one_that_comes_when_it_was_told_to_is_served(make: Make) -> None:
    rig = make()
    first = await of_x(rig, "first", prompt=11_800)
    with pytest.raises(OverQuota) as caught:
        await of_x(rig, "again", prompt=7800)
    rig.pass_time(caught.value.retry_after)
    lease = await asyncio.wait_for(of_x(rig, "again", prompt=7800), 1)
    assert lease.queued == 0
    done(rig, first, prompt=11_800)
    done(rig, lease, prompt=7800)


async def test_of_many_those_wait_that_come_in_time_and_the_rest_are_told_so_at_once(make: Make) -> None:
    rig = make()
    tasks = [of_x(rig, f"r{n}") for n in range(30)]
    await turns(80)
    assert sum(task.done() and task.exception() is None for task in tasks) == 10
    assert rig.dispatcher.waiting() == {"m": 5}  # 60 s of refill
    refused = [task.exception() for task in tasks if task.done() and task.exception() is not None]
    assert sorted(error.retry_after for error in refused if isinstance(error, OverQuota)) == [
        pytest.approx(72 + 12 * n, abs=1) for n in range(15)
    ]
    for _ in range(60):
        rig.pass_time(1.0)
        await turns()
    assert not rig.dispatcher.waiting()
    done(rig, *(task.result() for task in tasks if task.exception() is None))


async def test_what_can_never_be_served_is_not_told_to_wait_for_its_limits(make: Make) -> None:
    rig = make()
    first = await of_x(rig, "first", prompt=11_800)
    with pytest.raises(ContextTooLong):
        await asyncio.wait_for(of_x(rig, "long", prompt=90_000), 1)
    done(rig, first, prompt=11_800)


async def test_a_request_larger_than_the_bucket_is_served_from_a_full_one(make: Make) -> None:
    rig = make()
    lease = await asyncio.wait_for(of_x(rig, "large", prompt=20_000), 1)
    assert left(rig) == -8200
    done(rig, lease, prompt=20_000)


async def test_x6_nothing_is_charged_to_who_leaves_the_queue(make: Make) -> None:
    rig = make()
    first = await of_x(rig, "first", prompt=11_800)
    waits = [of_x(rig, f"waits {n}") for n in range(4)]
    await turns()
    for each in waits:
        each.cancel()
    await turns()
    assert left(rig) == 0
    done(rig, first, prompt=0, output=0)
    assert left(rig) == 12_000


async def test_x6_each_attempt_is_charged_once_and_a_failed_one_costs_nothing(make: Make) -> None:
    rig = make()
    lease = await of_x(rig, "r")
    rig.leases.settle(lease, Ended(failure=FailureKind.SERVER), None)
    assert left(rig) == 12_000
    following = rig.leases.retry(lease, FailureKind.SERVER)
    assert following is not None
    second = await rig.submit(following)
    assert left(rig) == 10_800
    done(rig, second, prompt=1000, output=10)
    assert left(rig) == 10_990


async def test_x6_a_reservation_that_is_refused_is_not_charged(make: Make) -> None:
    rig = make()
    rig.store.refusals = 2
    lease = await asyncio.wait_for(of_x(rig, "r"), 1)
    assert left(rig) == 10_800
    done(rig, lease, prompt=0, output=0)
    assert left(rig) == 12_000


async def test_a_store_that_says_no_to_a_charge_or_fails_keeps_no_reservation(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when another gateway was first, or the shared store is away."""
    rig = make()
    real = rig.store.charge
    answers: list[Exception | Shortfall] = [StoreError("away"), Shortfall(Quota.TOKENS, 0, 1, 1, 1.0, 1.0)]

    async def charge(
        lease: str, client: str, needs: Amounts, cost: Amounts, limits: ClientLimits, now: float
    ) -> Shortfall | None:
        if not answers:
            return await real(lease, client, needs, cost, limits, now)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(rig.store, "charge", charge)
    with pytest.raises(StoreError):
        await of_x(rig, "away")
    assert (rig.running, left(rig)) == (0, 12_000)
    lease = await asyncio.wait_for(of_x(rig, "second"), 1)
    assert (rig.running, answers) == (1, [])
    done(rig, lease)


async def test_g3_other_limits_hold_at_once_for_who_waits(make: Make) -> None:
    rig = make()
    first = await of_x(rig, "first", prompt=11_800)
    waits = of_x(rig, "waits")
    await turns()
    assert not waits.done()
    more = {"x": ClientLimits(rates={Quota.TOKENS: Rate(24_000, 120)})}
    rig.dispatcher.replan(plan_of(*NAMES, clients=more, version=1))
    lease = await asyncio.wait_for(waits, 1)
    assert left(rig) == 24_000 - 12_000 - 1200
    done(rig, first, prompt=11_800)
    done(rig, lease)


async def test_g3_a_lowered_number_of_running_requests_is_kept_as_they_end(make: Make) -> None:
    rig = make(clients={"x": ClientLimits(running=8)})
    leases = [await of_x(rig, f"r{n}") for n in range(8)]
    rig.dispatcher.replan(plan_of(*NAMES, clients={"x": ClientLimits(running=2)}, version=1))
    late = of_x(rig, "late")
    for lease in leases[:6]:
        done(rig, lease)
        await turns()
        assert not late.done()
    done(rig, leases[6])
    done(rig, await asyncio.wait_for(late, 1), leases[7])


async def test_requests_are_counted_when_they_are_sent(make: Make) -> None:
    rig = make(clients={"x": ClientLimits(rates={Quota.REQUESTS: Rate(2, 60)})}, queue=QueueLimits(wait=20.0))
    leases = [await of_x(rig, f"r{n}") for n in range(2)]
    with pytest.raises(OverQuota) as caught:
        await asyncio.wait_for(of_x(rig, "third", wait=20.0), 1)
    assert caught.value.retry_after == 30
    rig.leases.settle(leases[0], Ended(failure=FailureKind.SERVER), None)
    done(rig, leases[1], await asyncio.wait_for(of_x(rig, "fourth"), 1))
    assert left(rig, Quota.REQUESTS) == 0


async def test_kv_seconds_hold_back_the_next_once_they_are_spent(make: Make) -> None:
    limits = ClientLimits(rates={Quota.KV_SECONDS: Rate(10_000, 1000)})
    rig = make(clients={"x": limits})
    lease = await of_x(rig, "r")
    expected = left(rig, Quota.KV_SECONDS)
    assert expected < 10_000
    rig.clock.now += 30.0
    done(rig, lease)
    footprint = lease.decision.footprint
    assert footprint is not None
    after = left(rig, Quota.KV_SECONDS)
    assert after == pytest.approx(min(10_000, expected + 300) + (10_000 - expected) - 30 * footprint.kv, rel=0.02)
    assert after < 0
    with pytest.raises(OverQuota, match="limit kv_seconds"):
        await asyncio.wait_for(of_x(rig, "next"), 1)
    rig.pass_time(-after / 10 + 1)
    done(rig, await asyncio.wait_for(of_x(rig, "then"), 1))


@pytest.mark.parametrize("seed", range(12))
async def test_x6_after_any_mix_of_ends_what_is_missing_is_what_was_used(make: Make, seed: int) -> None:
    """On a clock that stands still nothing comes back by itself, so the account must be right to the token."""
    chance, whole = random.Random(seed), 1_000_000
    limits = ClientLimits(running=5, rates={Quota.TOKENS: Rate(whole, 3600), Quota.REQUESTS: Rate(1000, 3600)})
    rig = make(clients={"x": limits}, queue=QueueLimits(length=100))
    tasks = [of_x(rig, f"r{n}", prompt=chance.randint(10, 3000)) for n in range(60)]
    await turns(100)
    tokens, requests = 0, 0
    while tasks:
        assert sum(task.done() for task in tasks) <= 5
        task = tasks.pop(chance.randrange(len(tasks)))
        if not task.done():
            task.cancel()  # in the queue
        elif chance.random() < 0.3:
            rig.leases.settle(task.result(), Ended(failure=chance.choice(list(FailureKind))), None)
        else:
            prompt, output = chance.randint(1, 4000), chance.randint(0, 900)
            ended = Ended(chance.random() < 0.5, shown=True, ttft=0.1, prompt_tokens=prompt, output_tokens=output)
            for _ in range(2):
                rig.leases.settle(task.result(), ended, None)
            tokens, requests = tokens + prompt + output, requests + 1
        await turns()
    assert requests > 3
    assert left(rig) == pytest.approx(whole - tokens, abs=0.01)
    assert left(rig, Quota.REQUESTS) == pytest.approx(1000 - requests, abs=1e-6)
