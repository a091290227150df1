"""What the admin port tells of a gateway, against what its engines are really doing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.cli import top
from gateway.cli.main import main
from tests.shell.engine_double import EngineDouble, llama_cpp, says, vllm, vllm_metrics
from tests.shell.fixtures import Start
from tests.shell.running import Running

SECRET_TEXT = "a private sentence about whales"
KEYS = """\
auth:
  keys:
    - {name: ana, key: sk-test-ana-00000001}
    - {name: bob, key: sk-test-bob-00000001, class: batch, limits: {running: 1}}
classes:
  batch: {weight: 1}
"""


async def row_of(gateway: Running, name: str = "b1") -> dict[str, Any]:
    rows = {row["name"]: row for row in (await gateway.admin("/admin/backends"))["backends"]}
    found: dict[str, Any] = rows[name]
    return found


async def queue_of(gateway: Running) -> dict[str, Any]:
    found: dict[str, Any] = await gateway.admin("/admin/queue")
    return found


def held(done: asyncio.Event, slots: int = 1) -> EngineDouble:
    """llama.cpp that says one word at once and the rest when it may."""
    return llama_cpp(says("a", "b", until=done, prompt=9), model="tiny", slots=slots)


async def waits(gateway: Running, number: int) -> None:
    await gateway.until(lambda: gateway.queued == number)


async def looked_at(gateway: Running) -> None:
    """Until the first of those that wait was found no place."""
    await gateway.until(lambda: gateway.app.dispatcher.in_order(1)[0][1] is not None)


async def test_nothing_runs_and_nothing_waits(start: Start) -> None:
    gateway = await start({"b1": vllm()})
    await gateway.until(lambda: gateway.app.roster["b1"].observer.sampled_at is not None)
    row, queue = await row_of(gateway), await queue_of(gateway)
    assert (row["running"], row["lingering"], row["kv_reserved_tokens"], row["leases"]) == (0, 0, 0, [])
    assert (row["prefill_backlog_seconds"], row["resident_tokens"], row["waiting_for"]) == (0, 0, {})
    assert row["kv_free_tokens"] == int(row["kv_pool_tokens"] * row["kv_headroom"])
    assert (row["health"], row["error"], row["limited_by"]) == ("up", None, "slots")
    assert row["health_since_seconds"] >= 0
    assert row["sample_age_seconds"] < 5
    assert row["engine_reports"] == {"running": 0, "waiting": 0, "kv_usage": 0.0}
    assert queue == {
        "waiting": 0, "models": {}, "requests": [], "requests_left_out": 0, "classes": [], "clients": [],
        "diverging": [],
    }  # fmt: skip


async def test_who_runs_who_waits_and_why(start: Start) -> None:
    done = asyncio.Event()
    engine = held(done)
    gateway = await start({"b1": engine}, rest=KEYS)
    ana, bob = ({"authorization": f"Bearer sk-test-{name}-00000001"} for name in ("ana", "bob"))
    body = {"model": "tiny", "messages": [{"role": "user", "content": SECRET_TEXT}], "stream": True}
    await gateway.send(body, **ana)
    await engine.asked_for(1)
    await gateway.send(body | {"prompt_cache_key": "whale-session"}, **ana)
    await gateway.send(body, **bob)
    await waits(gateway, 2)
    await looked_at(gateway)

    row, queue = await row_of(gateway), await queue_of(gateway)
    (lease,) = row["leases"]
    assert (row["running"], row["slots"]) == (1, 1)
    assert (lease["client"], lease["model"], lease["attempt"], lease["sequences"]) == ("ana", "tiny", 0, 1)
    assert row["kv_reserved_tokens"] == lease["reserved_tokens"] > lease["prompt_tokens"] > 0
    assert row["kv_free_tokens"] + row["kv_reserved_tokens"] <= row["kv_pool_tokens"]
    assert row["waiting_for"] == {"slots_full": 2}

    assert queue["waiting"] == queue["models"]["tiny"]["requests"] == 2
    assert queue["models"]["tiny"]["seconds_to_drain"] > 0
    first, second = queue["requests"]
    assert queue["models"]["tiny"]["tokens"] == sum(
        each["prompt_tokens"] + each["output_tokens"] for each in queue["requests"]
    )
    assert queue["models"]["tiny"]["oldest_seconds"] == max(each["waited_seconds"] for each in queue["requests"])
    assert (first["reason"], first["backends"]) == ("queued", {"b1": "slots_full"})
    assert (second["reason"], second["backends"]) in ((None, {}), ("queued", {"b1": "slots_full"}))
    for each in queue["requests"]:
        assert each["waited_seconds"] + each["deadline_in_seconds"] == pytest.approx(60.0, abs=0.1)
        assert (each["attempt"], each["promised"], each["tier"]) == (0, False, "A")
    asked = {each["client"]: each for each in (first, second)}
    assert len(asked["ana"]["session"]) == 8
    assert asked["bob"]["session"] is None
    shares = {each["client"]: each for each in queue["clients"]}
    assert (shares["ana"]["running"], shares["ana"]["waiting"], shares["ana"]["share"]) == (1, 1, 1.0)
    assert (shares["bob"]["running"], shares["bob"]["waiting"], shares["bob"]["device_seconds"]) == (0, 1, 0.0)
    assert {each["class"]: (each["weight"], each["waiting"]) for each in queue["classes"]} == {
        "default": (4.0, 1),
        "batch": (1.0, 1),
    }
    said = json.dumps([row, queue])
    assert not [word for word in ("whale", "private", "sk-test") if word in said]

    done.set()
    await gateway.idle()
    queue, row = await queue_of(gateway), await row_of(gateway)
    assert (queue["waiting"], queue["models"], queue["requests"]) == (0, {}, [])
    assert {each["client"]: (each["waiting"], each["running"]) for each in queue["clients"]} == {
        "ana": (0, 0),
        "bob": (0, 0),
    }
    assert sum(each["share"] for each in queue["clients"]) == pytest.approx(1.0, abs=0.001)
    assert (row["requests_ended"], row["prefilled_tokens"] > 0, row["generated_tokens"]) == (3, True, 6)
    assert row["kv_reserved_tokens"] == row["running"] == 0


async def test_a_lease_moves_from_prefill_to_decode(start: Start) -> None:
    done = asyncio.Event()
    engine = vllm(says("only", until=done))
    gateway = await start({"b1": engine})
    await gateway.begin_chat(stream=True)
    await engine.asked_for(1)
    (lease,) = (await row_of(gateway))["leases"]
    assert (lease["phase"], lease["generated_tokens"]) == ("prefill", 0)
    engine.now_plays(says("one", "two", until=done))
    await gateway.begin_chat(stream=True)
    await gateway.until(lambda: any(lease.answered_at is not None for lease in gateway.app.leases.open))
    phases = [lease["phase"] for lease in (await row_of(gateway))["leases"]]
    assert phases == ["prefill", "decode"]
    assert (await row_of(gateway))["decoding"] == 1
    done.set()
    await gateway.idle()


async def test_a_limit_of_ones_own_is_told_apart_from_full_backends(start: Start) -> None:
    done = asyncio.Event()
    engine = held(done, slots=4)
    gateway = await start({"b1": engine}, rest=KEYS)
    for number in range(2):
        body = {"model": "tiny", "messages": [{"role": "user", "content": f"{number}"}]}
        await gateway.send(body, authorization="Bearer sk-test-bob-00000001")
    await waits(gateway, 1)
    (waiting,) = (await queue_of(gateway))["requests"]
    assert (waiting["reason"], waiting["why"]) == ("over_quota", "a limit of this key is reached")
    done.set()
    await gateway.idle()


async def test_what_others_do_on_an_engine_is_shown(start: Start) -> None:
    engine = vllm()
    engine.pages["/metrics"] = vllm_metrics(running=3, usage=0.5)
    gateway = await start({"b1": engine})
    await gateway.until(lambda: gateway.app.roster["b1"].observer.foreign_running == 3)
    row = await row_of(gateway)
    assert (row["foreign_running"], row["engine_reports"]["running"]) == (3, 3)
    assert row["engine_reports"]["kv_usage"] == 0.5
    assert row["slots"] == row["engine_slots"] - 3
    assert row["kv_free_tokens"] <= row["kv_pool_tokens"] * row["kv_headroom"] - row["kv_foreign_tokens"]


async def test_lists_are_bounded_and_say_what_they_leave_out(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.edge.app.LISTED", 2)
    monkeypatch.setattr("gateway.edge.backend_view.LEASES", 1)
    done = asyncio.Event()
    engine = held(done, slots=3)
    gateway = await start({"b1": engine})
    for number in range(7):
        await gateway.begin_chat(f"number {number}")
    await waits(gateway, 4)
    queue, row = await queue_of(gateway), await row_of(gateway)
    assert (queue["waiting"], len(queue["requests"]), queue["requests_left_out"]) == (4, 2, 2)
    assert (row["running"], len(row["leases"]), row["leases_left_out"]) == (3, 1, 2)
    assert queue["clients"][0]["waiting"] == 4
    done.set()
    await gateway.idle()


async def test_a_backend_that_is_down_says_since_when_and_why(start: Start) -> None:
    engine = vllm()
    gateway = await start({"b1": engine, "b2": vllm()})
    assert engine._server is not None
    engine._server.close()
    await gateway.until(lambda: str(gateway.health("b1")) == "down")
    row = await row_of(gateway)
    assert row["health"] == "down"
    assert 0 <= row["health_since_seconds"] < 5
    assert row["error"]
    await gateway.until(lambda: gateway.app.roster["b1"].condition.verdict.evidence != ())
    cause = (await row_of(gateway))["cause"]
    assert (cause["name"], cause["sentence"]) == ("dead", "it is dead, or its device has fallen off the bus")
    assert cause["evidence"][0].startswith("it has not answered for ")
    assert 0 <= cause["since_seconds"] < 5
    assert await gateway.value('kvgate_backend_cause{backend="b1",cause="dead"}') == 1
    assert (await row_of(gateway, "b2"))["cause"] is None


async def test_the_terminal_shows_the_same(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    assert top.__name__ == "gateway.cli.top"  # imported here: the loop may not read files
    done = asyncio.Event()
    engine = held(done)
    gateway = await start({"b1": engine})
    for number in range(3):
        await gateway.begin_chat(f"{number}")
    await waits(gateway, 2)
    await looked_at(gateway)
    admin = f"http://127.0.0.1:{gateway.admin_port}"
    assert await asyncio.to_thread(main, ["top", "--once", "--admin", admin]) == 0
    said = capsys.readouterr().out
    assert "1 of 1 backends work   1 running   2 waiting" in said
    assert "slots full: b1" in said
    assert "keeps waiting: slots full 2" in said
    assert await asyncio.to_thread(main, ["top", "--json", "--admin", admin]) == 0
    assert json.loads(capsys.readouterr().out)["queue"]["waiting"] == 2
    done.set()
    await gateway.idle()
