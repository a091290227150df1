"""The Dockerfile: linted, in step with the chart, and with a health check that tells up from down."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
INSTRUCTIONS = re.sub(r"\\\n", " ", DOCKERFILE).splitlines()


def instruction(name: str) -> list[str]:
    return [line.removeprefix(name).strip() for line in INSTRUCTIONS if line.startswith(f"{name} ")]


def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sysconfig.get_path("scripts")) / "hadolint"
    command = [str(hadolint), "--config", str(ROOT / ".hadolint.yaml"), str(ROOT / "Dockerfile")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_it_serves_as_a_number_that_is_not_root_and_the_chart_says_the_same() -> None:
    (user,) = instruction("USER")
    assert user == "10001:10001"
    deployment = (ROOT / "helm/kvgate/templates/deployment.yaml").read_text(encoding="utf-8")
    assert "runAsUser: 10001" in deployment
    assert "runAsGroup: 10001" in deployment


def test_it_starts_the_command_of_the_package_and_takes_signals_itself() -> None:
    (entry,), (command,) = instruction("ENTRYPOINT"), instruction("CMD")
    assert json.loads(entry) == ["kvgate"]
    assert json.loads(command) == ["serve", "/etc/kvgate/gateway.yaml"]
    assert instruction("STOPSIGNAL") == ["SIGTERM"]
    assert instruction("EXPOSE") == ["8080 9090"]


def test_everything_that_is_copied_exists_and_is_let_through() -> None:
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {rule[1:] for rule in rules if rule.startswith("!")}
    sources = [word for line in instruction("COPY") if not line.startswith("--from") for word in line.split()[:-1]]
    assert set(sources) == allowed
    assert all((ROOT / source).exists() for source in sources)


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False), (None, False)])
def test_the_health_check_tells_up_from_down(status: int | None, healthy: bool) -> None:
    (check,) = instruction("HEALTHCHECK")
    command = json.loads(check[check.index("[") :])

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert status is not None
            self.send_response(status if self.path == "/health/live" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Health)
    port = str(server.server_address[1])
    worker = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    if status is None:
        server.server_close()
    else:
        worker.start()
    try:
        code = command[-1].replace("8080", port)
        # A proxy in the environment must not be asked.
        result = subprocess.run(
            [sys.executable, "-c", code],
            env={"http_proxy": "http://127.0.0.1:1"},
            capture_output=True,
            timeout=30,
            check=False,
        )
    finally:
        if status is not None:
            server.shutdown()
            worker.join()
            server.server_close()
    assert command[:2] == ["python", "-c"]
    assert (result.returncode == 0) is healthy
