"""A prompt that changes near its start at every turn is told of, by message and byte, and never by its text."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from gateway.cli.top_view import Frame, View
from gateway.telemetry.explanation import explain_text
from tests.shell.engine_double import says, vllm
from tests.shell.fixtures import Start

RULES = "Answer as a keeper of lighthouses would. " * 200


def shown(what: Any) -> str:
    console = Console(width=400, record=True, file=None, quiet=False)
    with console.capture() as captured:
        console.print(what)
    return captured.get()


def turn(number: int, *, clock: bool) -> dict[str, Any]:
    system = f"It is 10:{number:02}, said SECRET.\n{RULES}" if clock else RULES
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "Is the lamp lit? " * 50}]
    for earlier in range(number):
        messages += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": f"And at {earlier}?"}]
    return {"model": "tiny", "messages": messages}


async def test_k1_k2_a_clock_at_the_head_is_named(start: Start) -> None:
    gateway = await start({"b1": vllm(says("ok", prompt=2500)), "b2": vllm(says("ok", prompt=2500))})
    replies = [await gateway.ask(turn(number, clock=True), **{"x-session-id": "lamp"}) for number in range(4)]
    assert len({reply.headers["x-kvgate-backend"] for reply in replies}) == 1  # known failure K2
    assert await gateway.value('kvgate_prefix_diverged_total{model="tiny"}') == 3
    queue = await gateway.admin("/admin/queue")
    (row,) = queue["diverging"]
    assert (row["from_byte"], row["to_byte"], row["message"], row["turns"]) == (0, 512, 0, 3)
    record = await gateway.admin(f"/admin/decisions/{replies[-1].headers['x-kvgate-decision']}")
    assert record["settled"]["parts"]["message"] == 0
    told = "the prompt differs in message 0, between bytes 0 and 512, 3 turns in a row"
    assert told in shown(explain_text(record))
    assert told in shown(View(Frame("http://here", "10:00", [], queue)))
    warned = [line for line in await gateway.log_lines() if "change near their start" in line.get("message", "")]
    assert len(warned) == 1
    assert not any("SECRET" in str(each) for each in (queue, record, warned))


async def test_a_conversation_that_goes_on_is_not(start: Start) -> None:
    gateway = await start({"b1": vllm(says("ok", prompt=2500))})
    for number in range(3):
        await gateway.ask(turn(number, clock=False), **{"x-session-id": "lamp"})
    assert (await gateway.admin("/admin/queue"))["diverging"] == []
