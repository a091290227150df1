from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from gateway.core.decision import Decision, Verdict
from gateway.core.failure import FailureKind
from gateway.core.lease import Ended, Lease
from gateway.core.ledger import Totals
from gateway.core.plan import QueueLimits, RetryPolicy
from gateway.core.quota import ClientLimits
from gateway.core.reasons import Reason
from gateway.engines.adapter import Load
from gateway.errors import ContextTooLong, GatewayError, OverQuota, Saturated, StoreError, Unavailable
from tests.core.fleet import request
from tests.shell.dispatch_rig import Rig, plan_of, turns

DONE = Ended(completed=True, finished=True, prompt_tokens=1000, output_tokens=20)

Make = Callable[..., Rig]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Makes rigs whose dispatchers run; they must be empty in the end."""
    rigs: list[Rig] = []

    def maker(*names: str, **more: object) -> Rig:
        rig = Rig(*names, **more)
        rig.dispatcher.start()
        rigs.append(rig)
        return rig

    yield maker
    for rig in rigs:
        assert rig.nothing_left
        await rig.dispatcher.stop()


def end(rig: Rig, *leases: Lease, how: Ended = DONE) -> None:
    for lease in leases:
        rig.dispatcher.leases.settle(lease, how, None)


async def test_a_free_backend_is_leased_at_once_and_given_back_once(make: Make) -> None:
    rig = make()
    lease = await rig.submit(request())
    assert (lease.backend, rig.running) == ("a", 1)
    end(rig, lease, lease)
    assert rig.running == 0
    assert [decision.reason for decision in rig.seen.decisions] == [Reason.ADMITTED]


async def test_requests_over_the_slots_wait_in_order_of_arrival(make: Make) -> None:
    rig = make()
    first, second, third = (rig.submit(request(f"r{n}", waited=-0.001 * n)) for n in range(3))
    lease = await first
    await turns()
    assert not second.done()
    assert rig.dispatcher.waiting() == {"m": 2}
    end(rig, lease)
    lease = await second
    await turns()
    assert not third.done()
    end(rig, lease)
    end(rig, await third)


async def test_who_leaves_the_queue_leaves_no_trace_and_the_next_moves_up(make: Make) -> None:
    rig = make()
    lease = await rig.submit(request("r0"))
    left, stays = rig.submit(request("r1")), rig.submit(request("r2"))
    await turns()
    left.cancel()
    await turns()
    assert left.cancelled()
    assert rig.dispatcher.waiting() == {"m": 1}
    end(rig, lease)
    lease = await stays
    assert [decision.request for decision in rig.seen.decisions] == ["r0", "r2"]
    end(rig, lease)


async def test_who_leaves_before_the_dispatcher_has_looked_is_never_decided_upon(make: Make) -> None:
    rig = make()
    await turns()
    task = rig.submit(request())
    asyncio.get_running_loop().call_soon(task.cancel)
    await turns()
    assert task.cancelled()
    assert rig.store.asked == 0


async def test_who_leaves_while_the_store_is_asked_gives_the_lease_back(make: Make) -> None:
    rig = make()
    rig.store.gate = asyncio.Event()
    task = rig.submit(request())
    await rig.store.reached.wait()
    task.cancel()
    await turns()
    assert task.cancelled()
    rig.store.gate.set()
    await turns()
    assert rig.store.asked == 1
    assert rig.nothing_left


async def test_who_leaves_in_the_moment_of_the_grant_gives_the_lease_back(make: Make) -> None:
    rig = make()
    task = rig.submit(request())

    def leave(_decision: Decision) -> None:
        """Queued before the waking of the waiter: the cancellation finds the answer already there."""
        asyncio.get_running_loop().call_soon(task.cancel)

    rig.seen.on_decided = leave
    with pytest.raises(asyncio.CancelledError):
        await task
    assert rig.seen.decisions[0].reason is Reason.ADMITTED
    assert rig.nothing_left


async def test_a_cancelled_waiter_does_not_keep_the_place_from_the_next(make: Make) -> None:
    rig = make()
    rig.store.gate = asyncio.Event()
    leaves, follows = rig.submit(request("r0")), rig.submit(request("r1"))
    await rig.store.reached.wait()
    leaves.cancel()
    rig.store.gate.set()
    end(rig, await asyncio.wait_for(follows, 1))


async def test_a_refused_reservation_is_decided_again_in_the_same_turn(make: Make) -> None:
    rig = make()
    rig.store.refusals = 2
    end(rig, await asyncio.wait_for(rig.submit(request()), 0.08))  # a tick would take longer
    assert rig.store.asked == 3


async def test_a_store_that_goes_on_refusing_is_asked_a_bounded_number_of_times_a_turn(make: Make) -> None:
    rig = make()
    rig.store.refusals = 1_000_000
    task = rig.submit(request(wait=5.0))
    await turns()
    assert rig.store.asked == 3
    assert not task.done()
    rig.pass_time(6.0)
    with pytest.raises(Saturated) as refusal:
        await task
    assert refusal.value.reason is Reason.QUEUE_TIMEOUT


async def test_a_store_that_fails_is_told_to_the_client_and_the_next_request_is_served(make: Make) -> None:
    rig = make()
    rig.store.error = StoreError("the shared state does not answer")
    with pytest.raises(StoreError):
        await asyncio.wait_for(rig.submit(request("r0")), 1)
    end(rig, await asyncio.wait_for(rig.submit(request("r1")), 1))


async def test_a_fault_in_a_turn_ends_no_more_than_the_requests_of_that_turn(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    rig = make()
    rig.store.error = ZeroDivisionError()
    with pytest.raises(GatewayError) as refusal:
        await asyncio.wait_for(rig.submit(request("r0")), 1)
    assert refusal.value.status == 500
    assert "decid" in caplog.text
    end(rig, await asyncio.wait_for(rig.submit(request("r1")), 1))


async def test_a_full_queue_turns_the_next_away_at_once_with_a_time_to_come_back(make: Make) -> None:
    rig = make(queue=QueueLimits(length=1))
    lease, waits = await rig.submit(request("r0")), rig.submit(request("r1"))
    await turns()
    with pytest.raises(Saturated) as refusal:
        await rig.submit(request("r2"))
    assert refusal.value.reason is Reason.QUEUE_FULL
    assert refusal.value.retry_after is not None
    assert 1 <= refusal.value.retry_after <= 59
    end(rig, lease)
    end(rig, await waits)


async def test_a_full_queue_is_emptied_first_when_room_came_in_the_same_moment(make: Make) -> None:
    rig = make(queue=QueueLimits(length=1))
    lease, waits = await rig.submit(request("r0")), rig.submit(request("r1"))
    await turns()
    end(rig, lease)  # in the same turn as the next arrival
    arrives = rig.submit(request("r2"))
    end(rig, await waits)
    end(rig, await arrives)


async def test_without_a_queue_a_free_backend_still_serves_and_a_busy_one_refuses(make: Make) -> None:
    rig = make(queue=QueueLimits(length=0))
    lease = await asyncio.wait_for(rig.submit(request("r0")), 1)
    with pytest.raises(Saturated) as refusal:
        await asyncio.wait_for(rig.submit(request("r1")), 1)
    assert refusal.value.reason is Reason.QUEUE_FULL
    end(rig, lease)
    end(rig, await asyncio.wait_for(rig.submit(request("r2")), 1))


async def test_many_arrivals_in_one_turn_are_all_answered_one_way_or_the_other(make: Make) -> None:
    rig = make("a", "b", slots=3, queue=QueueLimits(length=4))
    tasks = [rig.submit(request(f"r{n}")) for n in range(20)]
    await turns(60)
    answered = [task for task in tasks if task.done()]
    assert sum(task.exception() is None for task in answered) == 6
    assert sum(isinstance(task.exception(), Saturated) for task in answered) == 10
    assert rig.dispatcher.waiting() == {"m": 4}
    end(rig, *(task.result() for task in answered if task.exception() is None))
    end(rig, *[await task for task in tasks if task not in answered])


async def test_random_arrivals_cancels_and_refusals_leave_the_ledger_empty(make: Make) -> None:
    rig = make("a", "b", slots=2)
    for round_ in range(150):
        rig.store.refusals = round_ % 3
        task = rig.submit(request(f"r{round_}"))
        await turns(round_ % 7)
        if round_ % 2:
            task.cancel()
        await turns(8)
        if not task.cancelled() and task.done():
            end(rig, task.result())
        else:
            task.cancel()
            await turns(2)
    assert rig.nothing_left


async def test_time_in_the_queue_ends_at_its_limit(make: Make) -> None:
    rig = make(queue=QueueLimits(length=5, wait=10.0))
    lease, waits = await rig.submit(request("r0")), rig.submit(request("r1", wait=10.0))
    await turns()
    rig.pass_time(9.0)
    await turns()
    assert not waits.done()
    rig.pass_time(1.5)
    with pytest.raises(Saturated) as refusal:
        await waits
    assert refusal.value.code == "queue_timeout"
    end(rig, lease)


async def test_a_tick_notices_that_time_is_up_without_any_event(make: Make) -> None:
    rig = make()
    lease, waits = await rig.submit(request("r0")), rig.submit(request("r1", wait=1.0))
    await turns()
    rig.clock.now += 2.0
    with pytest.raises(Saturated):
        await asyncio.wait_for(waits, 1)
    end(rig, lease)


async def test_a_new_plan_with_more_room_lets_those_who_wait_in(make: Make) -> None:
    rig = make(slots=1)
    lease, waits = await rig.submit(request("r0")), rig.submit(request("r1"))
    await turns()
    plan = plan_of("a", version=1)
    rig.declare(plan, slots=2)
    rig.dispatcher.replan(plan)
    end(rig, await asyncio.wait_for(waits, 1), lease)


async def test_a_new_plan_with_less_room_kills_nobody_and_starts_nothing_until_enough_have_ended(make: Make) -> None:
    rig = make(slots=3)
    leases = [await rig.submit(request(f"r{n}")) for n in range(3)]
    plan = plan_of("a", version=1)
    rig.declare(plan, slots=1)
    rig.dispatcher.replan(plan)
    waits = rig.submit(request("r3"))
    for left in (2, 1):
        end(rig, leases[left])
        await turns()
        assert rig.running == left
        assert not waits.done()
    end(rig, leases[0])
    end(rig, await asyncio.wait_for(waits, 1))


async def test_a_removed_backend_is_forgotten_when_its_last_request_has_ended(make: Make) -> None:
    rig = make("a", "b")
    lease = await rig.submit(request("r0", tried=frozenset("b")))
    plan = plan_of("b", version=1)
    rig.declare(plan)
    rig.dispatcher.replan(plan)
    assert rig.drained == []
    assert rig.roster.get("a") is not None
    end(rig, await rig.submit(request("r1")))
    assert rig.seen.decisions[-1].backend == "b"
    end(rig, lease)
    assert rig.drained == ["a"]
    assert rig.roster.get("a") is None


async def test_a_route_that_a_new_plan_lacks_is_refused_to_those_who_wait_for_it(make: Make) -> None:
    rig = make()
    lease, waits = await rig.submit(request("r0")), rig.submit(request("r1"))
    await turns()
    plan = replace(plan_of("a", version=1), routes={"other": rig.dispatcher.plan.routes["m"]})
    rig.dispatcher.replan(plan)
    with pytest.raises(GatewayError) as refusal:
        await asyncio.wait_for(waits, 1)
    assert refusal.value.reason is Reason.UNKNOWN_MODEL
    assert refusal.value.status == 404
    end(rig, lease)


async def test_stopping_tells_those_who_wait_and_those_who_come_later(make: Make) -> None:
    rig = make()
    lease, waits = await rig.submit(request("r0")), rig.submit(request("r1"))
    await turns()
    await rig.dispatcher.stop()
    with pytest.raises(Unavailable) as refusal:
        await waits
    assert refusal.value.reason is Reason.SHUTTING_DOWN
    with pytest.raises(Unavailable):
        await rig.submit(request("r2"))
    end(rig, lease)


async def test_a_failed_attempt_goes_elsewhere_and_has_the_backend_looked_at(make: Make) -> None:
    rig = make("a", "b")
    lease = await rig.submit(request("r0"))
    failed = Ended(failure=FailureKind.CONNECT)
    end(rig, lease, how=failed)
    assert rig.looked_at == [lease.backend]
    following = rig.dispatcher.leases.retry(lease, FailureKind.CONNECT)
    assert following is not None
    other = await rig.submit(following)
    assert {lease.backend, other.backend} == {"a", "b"}
    end(rig, other, how=failed)
    following = rig.dispatcher.leases.retry(other, FailureKind.CONNECT)
    assert following is not None
    with pytest.raises(Unavailable):
        await rig.submit(following)


async def test_what_the_caller_did_wrong_is_not_tried_again_and_the_backend_not_looked_at(make: Make) -> None:
    rig = make("a", "b")
    lease = await rig.submit(request("r0"))
    end(rig, lease, how=Ended(failure=FailureKind.CLIENT))
    assert rig.dispatcher.leases.retry(lease, FailureKind.CLIENT) is None
    assert rig.looked_at == []


async def test_a_long_answer_extends_its_reservation_as_it_grows(make: Make) -> None:
    rig = make(slots=4)
    lease = await rig.submit(request("r0", output=100))
    before = rig.dispatcher.leases.totals("a").reserved
    rig.dispatcher.leases.first_token(lease)
    rig.dispatcher.leases.progress(lease, 64)
    assert rig.dispatcher.leases.totals("a").reserved == before
    rig.dispatcher.leases.progress(lease, 95)
    assert rig.dispatcher.leases.totals("a").reserved > before
    end(rig, lease)
    assert rig.dispatcher.leases.totals("a").reserved == 0


async def test_an_abandoned_request_keeps_its_place_until_the_engine_can_have_let_go(make: Make) -> None:
    rig = make()
    lease, waits = await rig.submit(request("r0")), rig.submit(request("r1"))
    rig.dispatcher.leases.settle(lease, Ended(), None, linger=2.0)
    await turns()
    assert rig.running == 1
    assert not waits.done()
    rig.pass_time(2.1)
    end(rig, await asyncio.wait_for(waits, 1))


async def test_an_engine_that_says_it_let_go_frees_the_place_sooner(make: Make) -> None:
    rig = make()
    lease, waits = await rig.submit(request("r0")), rig.submit(request("r1"))
    rig.dispatcher.leases.settle(lease, Ended(), None, linger=30.0)
    await turns()
    rig.pass_time(0.3)
    rig.dispatcher.leases.observed("a", 0, rig.clock.now)
    rig.dispatcher.fleet_changed()
    end(rig, await asyncio.wait_for(waits, 1))


async def test_an_engine_that_goes_on_with_a_prefill_keeps_its_place_until_it_says_otherwise(make: Make) -> None:
    rig = make()
    rig.roster.sampled("a", Load(running=0), Totals(), rig.clock.now)
    lease, waits = await rig.submit(request("r0")), rig.submit(request("r1"))
    rig.dispatcher.leases.settle(lease, Ended(), None, linger=0.1)
    assert rig.sample_in == [("a", 0.1)]
    rig.pass_time(5.0)
    rig.dispatcher.leases.observed("a", 1, rig.clock.now)
    await turns()
    assert not waits.done()
    rig.dispatcher.leases.observed("a", 0, rig.clock.now)
    rig.dispatcher.fleet_changed()
    end(rig, await asyncio.wait_for(waits, 1))


async def test_an_engine_that_never_says_it_let_go_is_believed_for_a_bounded_time(make: Make) -> None:
    rig = make()
    rig.roster.sampled("a", Load(running=0), Totals(), rig.clock.now)
    lease, waits = await rig.submit(request("r0")), rig.submit(request("r1"))
    rig.dispatcher.leases.settle(lease, Ended(), None, linger=0.1)
    rig.pass_time(10.1)
    end(rig, await asyncio.wait_for(waits, 1))


async def test_what_decodes_waits_for_the_engines_word_too_where_that_comes_soon(make: Make) -> None:
    rig = make()
    rig.roster.sampled("a", Load(running=0), Totals(), rig.clock.now)
    lease, waits = await rig.submit(request("r0")), rig.submit(request("r1"))
    rig.dispatcher.leases.settle(lease, Ended(shown=True, ttft=0.1), None, linger=0.2)
    rig.pass_time(8.0)
    rig.dispatcher.leases.observed("a", 1, rig.clock.now)
    await turns()
    assert not waits.done()
    rig.dispatcher.leases.observed("a", 0, rig.clock.now)
    rig.dispatcher.fleet_changed()
    end(rig, await asyncio.wait_for(waits, 1))


@pytest.mark.parametrize("tells", [True, False])
async def test_how_long_an_engine_is_given_after_an_abort_may_be_set(make: Make, tells: bool) -> None:
    rig = make()
    if tells:
        rig.roster.sampled("a", Load(running=0), Totals(), rig.clock.now)
    member = rig.roster["a"]
    member.endpoint = replace(member.endpoint, timeouts=replace(member.endpoint.timeouts, abort=30.0))
    lease, waits = await rig.submit(request("r0")), rig.submit(request("r1"))
    rig.dispatcher.leases.settle(lease, Ended(), None, linger=0.1)
    rig.pass_time(29.0)
    await turns()
    assert not waits.done()
    rig.pass_time(1.1)
    end(rig, await asyncio.wait_for(waits, 1))


async def test_a_removed_backend_is_not_kept_for_what_lingers_in_it(make: Make) -> None:
    rig = make("a", "b")
    lease = await rig.submit(request("r0", tried=frozenset("b")))
    plan = plan_of("b", version=1)
    rig.declare(plan)
    rig.dispatcher.replan(plan)
    rig.dispatcher.leases.settle(lease, Ended(), None, linger=5.0)
    assert rig.drained == ["a"]


async def test_a_clients_own_limit_makes_it_wait_while_others_pass(make: Make) -> None:
    rig = make(slots=4, clients={"x": ClientLimits(running=1)})
    lease = await rig.submit(request("r0", client="x"))
    waits = rig.submit(request("r1", client="x", wait=5.0))
    end(rig, await asyncio.wait_for(rig.submit(request("r2", client="y")), 1))
    assert not waits.done()
    rig.pass_time(6.0)
    with pytest.raises(OverQuota):
        await waits
    end(rig, lease)


async def test_a_first_token_after_the_end_counts_for_nothing(make: Make) -> None:
    rig = make()
    lease = await rig.submit(request())
    end(rig, lease)
    rig.dispatcher.leases.first_token(lease)
    rig.dispatcher.leases.progress(lease, 5)
    assert rig.dispatcher.leases.totals("a").decoding == 0


async def test_only_who_had_waited_is_shed_and_others_are_refused(make: Make) -> None:
    rig = make(slots=1)
    lease = await rig.submit(request("runs"))
    too_long = rig.submit(request("long", prompt=90_000))
    waits = rig.submit(request("waits"))
    with pytest.raises(ContextTooLong):
        await too_long
    await turns()
    rig.pass_time(61.0)
    with pytest.raises(Saturated):
        await waits
    end(rig, lease)
    assert [(d.request, d.verdict) for d in rig.seen.decisions] == [
        ("runs", Verdict.ADMIT),
        ("long", Verdict.REJECT),
        ("waits", Verdict.SHED),
    ]


async def test_who_waits_for_an_engine_that_then_goes_away_is_shed(make: Make) -> None:
    rig = make(slots=1)
    lease = await rig.submit(request("runs"))
    waits = rig.submit(request("waits"))
    await turns()
    rig.roster.unreachable("a", "connection refused", True, rig.clock.now)
    rig.dispatcher.fleet_changed()
    with pytest.raises(Unavailable):
        await waits
    end(rig, lease)
    assert rig.seen.decisions[-1].verdict is Verdict.SHED


async def test_a_full_queue_tells_when_it_will_have_drained(make: Make) -> None:
    rig = make(slots=2, queue=QueueLimits(length=4, wait=60.0))
    running = [await rig.submit(request(f"r{n}", output=20)) for n in range(2)]
    waiting = [rig.submit(request(f"w{n}", output=20)) for n in range(4)]
    await turns()

    async def told(client: str) -> int:
        with pytest.raises(Saturated) as refused:
            await rig.submit(request(f"told {client}", output=20, client=client))
        return int(refused.value.retry_after or 0)

    # Nothing has ended yet: what the speeds promise.
    assert 1 <= await told("early") <= 5
    for _ in range(8):
        # Each takes ten seconds in fact, and so does the next.
        rig.pass_time(5.0)
        end(rig, running.pop(0))
        running.append(await waiting.pop(0))
        waiting.append(rig.submit(request(f"x{rig.clock.now}", output=20)))
        await turns()
    assert 12 <= await told("later") <= 40
    for task in waiting:
        task.cancel()
    end(rig, *running)
    await turns()


async def test_who_comes_back_when_told_has_a_place_before_those_who_came_meanwhile(make: Make) -> None:
    rig = make(slots=1, queue=QueueLimits(length=2, wait=600.0))
    running = [await rig.submit(request("r0", output=20))]
    waiting = [rig.submit(request(f"w{n}", output=20)) for n in range(2)]
    await turns()
    with pytest.raises(Saturated) as refused:
        await rig.submit(request("told", client="back", output=20))
    again = refused.value.retry_after
    assert again is not None
    early = rig.submit(request("too early", client="back", output=20))
    await turns()
    assert isinstance(early.exception(), Saturated), "its time has not come"
    rig.pass_time(again)
    back = rig.submit(request("back", client="back", output=20))
    other = rig.submit(request("other", client="else", output=20))
    await turns()
    assert isinstance(other.exception(), Saturated), "the queue is as full as before"
    assert not back.done()
    end(rig, running.pop())
    assert (await back).request.id == "back"
    assert not any(task.done() for task in waiting)
    for task in waiting:
        task.cancel()
    end(rig, await back)
    await turns()


async def test_what_waits_is_bounded_in_seconds(make: Make) -> None:
    rig = make(slots=1, queue=QueueLimits(length=100, wait=600.0, work=0.5))
    running = await rig.submit(request("r0", output=200))
    tasks = [rig.submit(request(f"w{n}", output=200, client=f"c{n}")) for n in range(10)]
    await turns()
    turned_away = [task for task in tasks if task.done()]
    assert 0 < len(turned_away) < 10
    assert all(isinstance(task.exception(), Saturated) for task in turned_away)
    for task in tasks:
        task.cancel()
    end(rig, running)
    await turns()


async def test_who_stood_before_it_is_known_on_admission(make: Make) -> None:
    rig = make(slots=1, queue=QueueLimits(length=100, wait=600.0))
    running = await rig.submit(request("r0", output=200))
    assert running.ahead is None
    tasks = [rig.submit(request(f"w{n}", output=200)) for n in range(3)]
    await turns()
    ends = [running]
    for number, task in enumerate(tasks):
        end(rig, ends[-1])
        lease = await task
        ends.append(lease)
        if number:
            assert lease.ahead is not None
            assert lease.ahead.requests == number
            assert lease.ahead.seconds > 0.0
    end(rig, ends[-1])
    await turns()


async def test_the_engine_s_own_count_of_a_prompt_gives_back_what_it_does_not_need(make: Make) -> None:
    rig = make(slots=4)
    leases = rig.dispatcher.leases
    lease = await rig.submit(request("r0", prompt=4000, high=4400, output=100))
    before = leases.totals("a").reserved
    leases.first_token(lease)
    leases.counted(lease, 3000, 1, None)
    assert leases.totals("a").reserved == before - 1400 // lease.block * lease.block
    assert leases.totals("a").resident == 3000
    leases.counted(lease, 2000, 2, None)
    assert leases.totals("a").resident == 3000, "once"
    leases.progress(lease, 64)
    leases.counted(lease, 3000, 300, None)
    leases.progress(lease, 128)
    assert lease.generated == 300, "it counts more tokens than events"
    other = await rig.submit(request("r1", prompt=4000, high=4400, output=100))
    reserved = leases.totals("a").reserved
    for odd in (None, 0, 10, 10**6):
        leases.counted(other, odd, None, None)
    assert leases.totals("a").reserved == reserved
    end(rig, lease, other)
    assert leases.totals("a").reserved == 0


async def test_a_long_prompt_is_read_again_after_silence_only_where_its_engine_is_gone(make: Make) -> None:
    rig = make("a", "b", retry=RetryPolicy(size_limit=100))
    lease = await rig.submit(request("r0", prompt=1000))
    leases = rig.dispatcher.leases
    end(rig, lease, how=Ended(failure=FailureKind.FIRST_TOKEN))
    assert leases.retry(lease, FailureKind.FIRST_TOKEN) is None
    leases.roster.unreachable(lease.backend, "connection refused", True, rig.clock.now)
    assert leases.retry(lease, FailureKind.FIRST_TOKEN) is not None


async def test_only_first_attempts_earn_retries(make: Make) -> None:
    rig = make("a", "b", retry=RetryPolicy(budget=1.0, burst=1.0))
    budget = rig.dispatcher.leases._budget
    lease = await rig.submit(request("r0"))
    end(rig, lease, how=Ended(failure=FailureKind.SERVER))
    following = rig.dispatcher.leases.retry(lease, FailureKind.SERVER)
    assert following is not None
    end(rig, await rig.submit(following), how=Ended(failure=FailureKind.SERVER))
    assert not budget.take(rig.clock.now)
