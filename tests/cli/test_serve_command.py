from __future__ import annotations

import io
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from gateway import clock
from gateway.cli.banner import banner
from gateway.cli.serve import SETTLE


def test_the_banner_has_addresses_backends_and_warnings() -> None:
    written = io.StringIO()
    names = [f"rig-[{number}]" for number in range(10)]
    table = banner("https://127.0.0.1:8080", "127.0.0.1:9090", names, ["gateway.yaml:3:1: [bold]careful[/bold]"])
    Console(file=written, width=80, highlight=False).print(table)
    text = " ".join(written.getvalue().split())
    assert "https://127.0.0.1:8080/v1 " in text
    assert "rig-[7] and 2 more" in text
    assert "http://127.0.0.1:9090/" in text
    assert "warning gateway.yaml:3:1: [bold]careful[/bold]" in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_well_and_by_hand_at_once(number: signal.Signals, tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(
        "server: {listen: '127.0.0.1:0', admin: '127.0.0.1:0'}\ntelemetry: {log: {format: text}}\n"
        "backends:\n  - {name: a, url: http://127.0.0.1:1, engine: vllm}\n"
    )
    command = [sys.executable, "-m", "gateway.cli", "serve", str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("listening on" in line for line in process.stderr)
        started = clock.monotonic()
        process.send_signal(number)
        rest = process.stderr.read()
        assert process.wait(30) == 0
    assert "Traceback" not in rest
    assert (clock.monotonic() - started < SETTLE) == (number is signal.SIGINT)
