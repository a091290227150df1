"""H6: an engine that is fast, healthy and answers with one character over and over gets no more of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.shell.engine_double import says, vllm
from tests.shell.fixtures import Start


@pytest.mark.parametrize("text", [["!"] * 300, ["////"] * 300])
async def test_h6_after_three_such_answers_in_a_row_it_rests_and_is_named(start: Start, text: Sequence[str]) -> None:
    engine, other = vllm(says(*text)), vllm(says("ok"))
    gateway = await start({"b1": engine, "b2": other})
    for number in range(40):
        reply = await (await gateway.begin_chat(f"question {number}", stream=True)).reply()
        assert reply.status == 200
        if gateway.health("b1") == "open":
            break
    assert len(engine.asked) == 3
    assert gateway.health("b1") == "open"
    before = len(engine.asked)
    for number in range(5):
        assert (await gateway.chat(f"another {number}")).status == 200
    assert len(engine.asked) == before
    verdict = gateway.app.roster.judge("b1", gateway.app.leases.totals("b1"), 0.0)
    assert (verdict.cause, verdict.evidence) == (
        "garbage", ("several answers in a row were one character, hundreds of times",),
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [["0"] * 600, ["-"] * 600, [" "] * 600, ["!"] * 150, [*["!"] * 250, *["word "] * 300]],
    ids=["zeros", "a rule", "blanks", "not for long", "an outburst"],
)
async def test_h6_what_may_be_an_answer_is_one(start: Start, text: Sequence[str]) -> None:
    engine = vllm(says(*text))
    gateway = await start({"b1": engine, "b2": vllm(says("ok"))})
    for number in range(12):
        assert (await (await gateway.begin_chat(f"question {number}", stream=True)).reply()).complete
    assert gateway.health("b1") == "up"
    assert engine.asked
