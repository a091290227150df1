from __future__ import annotations

import logging

import pytest

from gateway.telemetry.log import AccessLog, Log
from gateway.telemetry.text_line import text_line
from gateway.wire.inbound import AccessNote
from tests.telemetry.test_log import Lines

STAMP = "2026-01-02T03:04:05.678Z"


def test_a_request_in_the_order_in_which_it_is_read() -> None:
    lines = Lines()
    note = AccessNote("req-1", "code", "rig", "completed", None, 9, 5, 0, 0.00123, 0.4321)
    with Log(format="text", sink=lines) as log:
        AccessLog(log).write("/v1/chat/completions", "POST", "agents", 200, 1.5, note)
    stamp, _, rest = lines.data.decode().partition(" ")
    assert stamp.endswith("Z")
    assert rest == (
        "info    200 POST /v1/chat/completions 1.50 s backend=rig model=code client=agents "
        "queue=1.2ms ttft=432ms prompt=9 cached=0 output=5 id=req-1\n"
    )


def test_what_went_wrong_is_said() -> None:
    fields: dict[str, object] = {
        "level": "info", "event": "request", "id": "req-1", "method": "POST", "route": "/v1/completions",
        "status": 429, "outcome": "refused", "reason": "queue_full", "seconds": 0.0021,
    }  # fmt: skip
    line = text_line(STAMP, fields)
    assert line == f"{STAMP} info    429 POST /v1/completions 2.1 ms outcome=refused reason=queue_full id=req-1"


def test_a_message_of_ours_and_one_of_a_library() -> None:
    lines = Lines()
    with Log(format="text", sink=lines):
        logging.getLogger("kvgate.fleet").warning("backend rig: unreachable")
        logging.getLogger("aiohttp.server").info("hello")
    ours, theirs = lines.data.decode().splitlines()
    assert ours.endswith("Z warning backend rig: unreachable")
    assert theirs.endswith("Z info    hello logger=aiohttp.server")


def test_further_lines_are_indented_and_belong_to_the_first() -> None:
    fields: dict[str, object] = {
        "level": "error",
        "message": "refused:\nline 2",
        "trace": ["ValueError", "  a.py:1 in f"],
    }
    assert text_line(STAMP, fields).splitlines() == [
        f"{STAMP} error   refused:",
        "    line 2",
        "    ValueError",
        "      a.py:1 in f",
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [("a b", '"a b"'), ("a=b", '"a=b"'), ("a\nb", '"a\\nb"'), ('a"b', '"a\\"b"'), ("a\x1bb", '"a\\u001bb"'), (7, "7")],
)
def test_a_value_is_one_value(value: object, shown: str) -> None:
    assert text_line(STAMP, {"level": "info", "message": "m", "field": value}) == f"{STAMP} info    m field={shown}"
