"""What changes at the head of each prompt is taken out, where the file says so (known failure K1)."""

from __future__ import annotations

from typing import Any

from tests.shell.engine_double import says, vllm
from tests.shell.fixtures import Start
from tests.wire.test_steadying import messages

RULE = "models: [{name: m, serves: tiny, rewrite: [claude-code-attribution]}]"
PLAIN = "models: [{name: m, serves: tiny}]"


async def heads(start: Start, rest: str) -> list[Any]:
    engine = vllm(says("ok", prompt=50))
    gateway = await start({"b1": engine}, rest=rest)
    for mark in ("aaa", "bbb"):
        await gateway.ask(messages(mark), "/v1/messages")
    return [engine.asked[index].body for index in range(2)]


async def test_k1_with_the_rule_the_engine_sees_the_same_bytes(start: Start) -> None:
    one, other = await heads(start, RULE)
    assert one == other
    assert b"billing-header: cc_version" not in one
    assert b"billing-header: mine" in one


async def test_without_it_nothing_is_changed(start: Start) -> None:
    one, other = await heads(start, PLAIN)
    assert one != other


async def test_a_rule_that_nobody_can_read_is_refused(start: Start) -> None:
    gateway = await start({"b1": vllm(says("ok"))}, rest=PLAIN)
    text = gateway.file.read_text()
    for bad, said in (("[nonsense]", "no rule that is known"), ("[{match: '('}]", "no regular expression")):
        reply = await gateway.reload(text.replace("serves: tiny", f"serves: tiny, rewrite: {bad}"))
        assert reply.status == 422
        assert said in reply.body.decode()
