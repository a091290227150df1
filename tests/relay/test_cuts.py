"""Whatever the borders of reads and HTTP chunks, the client gets the engine's bytes."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.wire.chat_stream import ChatStream
from tests.relay.conftest import Rig
from tests.relay.fake_engine import DONE, FINISH, ROLE, STREAM_HEAD, FakeEngine, raw, sse, token

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=20)
EVENTS = st.lists(st.one_of(TEXT.map(token), st.sampled_from([b": ping\n\n", ROLE])), min_size=1, max_size=12)


async def relayed(events: list[bytes], cuts: list[int], crlf: bool) -> tuple[bytes, bytes]:
    body = [event.replace(b"\n", b"\r\n") if crlf else event for event in [*events, FINISH, DONE]]
    async with FakeEngine(sse(*body, cuts=cuts)) as engine:
        rig = Rig(engine)
        try:
            await rig.stream()
            assert rig.down.ended
            assert len(rig.down.writes) <= rig.meter.chunks + 1
        finally:
            rig.pool.close()
            await rig.pool.wait_closed()
        return rig.down.body, b"".join(body)


@settings(max_examples=80, deadline=None)
@given(EVENTS, st.lists(st.integers(0, 3000), max_size=20), st.booleans())
def test_cut_anywhere(events: list[bytes], cuts: list[int], crlf: bool) -> None:
    got, sent = asyncio.run(relayed(events, cuts, crlf))
    assert got == sent


async def died_at(message: bytes, at: int) -> tuple[bytes, BaseException | None, bool, bool]:
    async with FakeEngine(raw(message[:at], then="close")) as engine:
        rig = Rig(engine)
        error: BaseException | None = None
        try:
            await rig.stream()
        except Exception as caught:
            error = caught
        finally:
            rig.pool.close()
            await rig.pool.wait_closed()
        return rig.down.body, error, rig.down.ended, rig.down.aborted


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_an_engine_that_dies_at_any_byte(data: st.DataObject) -> None:
    """The client sees whole events only, and a good end exactly when the terminal event had come."""
    events = [ROLE, token("日本"), token("x" * 50), FINISH, DONE]
    message = STREAM_HEAD + b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events) + b"0\r\n\r\n"
    at = data.draw(st.integers(0, len(message)))
    body, error, ended, aborted = asyncio.run(died_at(message, at))
    view = ChatStream("chat")
    kinds = [view.see(event + b"\n\n").kind.name for event in body.split(b"\n\n")[:-1]]
    assert body == b"" or body.endswith(b"\n\n")
    assert ended == view.terminal == (error is None)
    assert aborted == (error is not None and body != b"")
    assert kinds.count("ERROR") == aborted
    if aborted:
        assert kinds[-1] == "ERROR"
