from __future__ import annotations

import json
import logging

import pytest

from gateway.errors import ConfigError
from gateway.telemetry.log import AccessLog, Log, log_failure, safe_trace
from gateway.telemetry.redaction import Redactor
from gateway.wire.inbound import AccessNote


class Lines:
    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    def close(self) -> None:
        pass


def boom(text: str) -> None:
    raise ValueError(text)


@pytest.mark.parametrize("format", ["json", "text"])
def test_a_trace_shows_places_and_not_what_the_exception_says(format: str) -> None:
    lines = Lines()
    with Log(level="debug", format=format, sink=lines):
        try:
            boom("MARKER prompt")
        except ValueError as exc:
            log_failure("it broke", exc, route="/v1/x")
            logging.getLogger("someone").exception("elsewhere")
    text = lines.data.decode()
    assert "MARKER" not in text
    assert text.count("in boom") == 2
    assert "it broke" in text
    assert "elsewhere" in text


def test_our_own_errors_keep_their_message_and_causes_follow() -> None:
    try:
        try:
            boom("MARKER")
        except ValueError as cause:
            raise ConfigError("line 3: unknown key") from cause
    except ConfigError as exc:
        trace = safe_trace(exc)
    assert trace[0] == "ConfigError: line 3: unknown key"
    assert "ValueError" in trace
    assert not [line for line in trace if "MARKER" in line]


def test_access_line_is_one_object_without_empty_fields() -> None:
    lines = Lines()
    with Log(sink=lines) as log:
        note = AccessNote(request_id="r-1", model="code", backend="rig", prompt_tokens=10, ttft_s=0.5)
        AccessLog(log).write("/v1/chat/completions", "POST", "agents", 200, 1.25, note)
        AccessLog(log).write("/v1/chat/completions", "POST", None, 0, 1.25, AccessNote(outcome="client_closed"))
        AccessLog(log).write("/health/live", "GET", None, 200, 0.001, AccessNote())
    first, second = (json.loads(line) for line in lines.data.splitlines())
    assert first["event"] == "request"
    assert (first["id"], first["client"], first["model"], first["backend"]) == ("r-1", "agents", "code", "rig")
    assert (first["status"], first["outcome"], first["seconds"], first["prompt_tokens"]) == (200, "completed", 1.25, 10)
    assert "reason" not in first
    assert (second["status"], second["outcome"], second["level"]) == (499, "client_closed", "info")


def test_the_root_logger_is_given_back() -> None:
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    with Log(level="error", sink=Lines()):
        assert root.level == logging.ERROR
    assert (root.level, root.handlers[:]) == before


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdSECRETabcd",
        "authorization: Basic abcdSECRETabcd",
        "wrong key sk-test-SECRET123",
        "GET /v1/models?key=SECRET123",
        '{"api_key": "SECRET123"}',
        "calling http://user:SECRET@host:8080/x",
        "calling https://host/path?token=SECRET",
        "configured-SECRET-value in a sentence",
        "password=SECRET",
    ],
)
def test_secrets_are_masked(text: str) -> None:
    masked = Redactor(["configured-SECRET-value"])(text)
    assert "SECRET" not in masked
    assert "***" in masked


def test_ordinary_lines_are_left_alone() -> None:
    text = '{"at":"2026-01-01","event":"request","model":"org/code","prompt_tokens":10,"cached_tokens":7}'
    assert Redactor(["configured"])(text) == text
    assert (
        Redactor()("backend rig at http://10.0.0.21:8080/health is down")
        == "backend rig at http://10.0.0.21:8080/health is down"
    )
