from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from rich.console import Console

from gateway.cli.admin_client import AdminClient
from gateway.cli.main import main
from gateway.cli.top import Polls, watch
from tests.cli.top_documents import backend, documents


class Handler(BaseHTTPRequestHandler):
    server: FakeServer

    def do_GET(self) -> None:
        found = self.server.documents.get(self.path)
        data = json.dumps({"error": {"message": "not here"}} if found is None else found).encode()
        self.send_response(self.server.status if found is None else 200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


class FakeServer(ThreadingHTTPServer):
    """An admin port that says what is put into `documents`, and `status` to the rest."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.documents: dict[str, Any] = documents(backend(), waiting=2)
        self.status = 404

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.02,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_one_frame(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--once", "--admin", server.url]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"kvgate top  {server.url}")
    assert "● rig" in said
    assert "\x1b" not in said


def test_the_documents_as_they_are(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--json", "--admin", server.url]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "backends": server.documents["/admin/backends"]["backends"],
        "queue": server.documents["/admin/queue"],
    }


@pytest.mark.parametrize("how", ["--once", "--json"])
def test_one_look_at_nobody(how: str, server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.documents = {}
    assert main(["top", how, "--admin", server.url]) == 2
    assert capsys.readouterr().err == (
        f"kvgate top: {server.url} is not a gateway's admin port (`server.admin` in its file, 9090 by default)\n"
    )
    server.status = 403
    assert main(["top", how, "--admin", server.url]) == 2
    assert capsys.readouterr().err == "kvgate top: not here\n"


def test_an_address_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--admin", "127.0.0.1:9090"]) == 2
    assert "takes an http:// or https:// URL" in capsys.readouterr().err


def test_an_interval_needs_a_unit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["top", "--interval", "5"])
    assert ended.value.code == 2
    assert "write it like 30s, 500ms" in capsys.readouterr().err


def played(server: FakeServer, *steps: Callable[[], None], terminal: bool = False) -> str:
    """What is written when these things happen between one frame and the next."""
    written = io.StringIO()
    console = Console(file=written, width=80, height=30, force_terminal=terminal, highlight=False)
    left = list(steps)

    def rest() -> bool:
        if not left:
            return True
        left.pop(0)()
        return False

    moments = iter(range(100))
    watch(Polls(AdminClient(server.url, "top"), lambda: float(next(moments))), console, rest)
    return written.getvalue()


def test_frames_follow_each_other_and_rates_come_with_the_second(server: FakeServer) -> None:
    def works() -> None:
        server.documents = documents(backend(prefilled_tokens=12_000, generated_tokens=585))

    first, second = played(server, works).split("kvgate top")[1:]
    assert "tok/s in, " not in first
    assert "2.0k tok/s in, 85 out" in second


def test_a_gateway_that_goes_away_and_comes_back(server: FakeServer) -> None:
    before = server.documents

    def goes() -> None:
        server.documents = {}

    def comes() -> None:
        server.documents = before

    frames = played(server, goes, comes).split("kvgate top")[1:]
    assert ["trying again" in frame for frame in frames] == [False, True, False]
    assert all("● rig" in frame for frame in frames)


def test_a_terminal_gets_a_screen_and_is_given_back(server: FakeServer) -> None:
    written = played(server, lambda: None, terminal=True)
    assert written.count("\x1b[?1049h") == written.count("\x1b[?1049l") == 1
    assert written.rindex("\x1b[?1049l") > written.rindex("kvgate top")


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_well(which: signal.Signals, server: FakeServer) -> None:
    command = [sys.executable, "-m", "gateway.cli", "top", "--admin", server.url, "--interval", "100ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("kvgate top")
        process.send_signal(which)
        _, complaints = process.communicate(timeout=15)
    assert (process.returncode, complaints) == (0, "")
