"""What an engine tells of its usage while it still answers."""

from __future__ import annotations

from itertools import pairwise

from gateway.relay import Hooks
from gateway.wire.usage import Usage
from tests.relay.conftest import MakeRig
from tests.relay.fake_engine import DONE, FINISH, ROLE, sse, token


def counted(number: int) -> bytes:
    """A chunk with running usage, as vLLM sends it for `continuous_usage_stats`."""
    usage = b'"usage":{"prompt_tokens":700,"completion_tokens":%d,"total_tokens":%d}' % (3 * number, 700 + 3 * number)
    return token(str(number)).replace(b'{"id":"c"', b'{"id":"c",' + usage)


async def test_running_usage_is_told_at_the_first_token_and_before_each_progress(make_rig: MakeRig) -> None:
    rig = await make_rig(sse(ROLE, *[counted(n) for n in range(1, 201)], FINISH, DONE))
    told: list[tuple[str, int]] = []

    def count(usage: Usage) -> None:
        assert usage.prompt_tokens == 700
        told.append(("counted", usage.completion_tokens or 0))

    rig.hooks = Hooks(lambda: told.append(("first", 0)), lambda tokens: told.append(("progress", tokens)), count)
    await rig.stream()
    assert [kind for kind, _ in told[:2]] == ["first", "counted"]
    for (before, tokens), (kind, events) in pairwise(told):
        if kind == "progress":
            assert (before, tokens) == ("counted", 3 * events)
    assert any(kind == "progress" for kind, _ in told)


async def test_an_engine_that_tells_in_the_end_alone_is_not_asked_before(make_rig: MakeRig) -> None:
    rig = await make_rig(sse(ROLE, *[token(str(n)) for n in range(200)], FINISH, DONE))
    told: list[Usage] = []
    rig.hooks = Hooks(counted=told.append)
    await rig.stream()
    assert told == []
