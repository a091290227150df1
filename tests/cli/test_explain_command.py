from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gateway.cli.main import main
from tests.cli import records


class FakeAdminPort(BaseHTTPRequestHandler):
    """Knows one decision; `server.kind` says what sort of server it is."""

    server: FakeServer

    def do_GET(self) -> None:
        if self.server.kind == "foreign" and self.path.startswith("/admin"):
            self.answer(403, {"error": {"message": "the admin port does not answer web pages of other origins"}})
        elif self.server.kind == "admin" and self.path == "/admin/decisions/r-1":
            self.answer(200, records.eight())
        elif self.server.kind == "admin" and self.path == "/admin/queue":
            self.answer(200, {"waiting": 0, "models": {}})
        else:
            self.answer(404, {"error": {"message": "no such path"}})

    def answer(self, status: int, body: object) -> None:
        data = b"<html>" if self.server.kind == "page" else json.dumps(body).encode()
        self.send_response(200 if self.server.kind == "page" else status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


class FakeServer(ThreadingHTTPServer):
    kind = "admin"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(("127.0.0.1", 0), FakeAdminPort) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.02,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.mark.parametrize("given", ["r-1", " r-1\r\n", "x-kvgate-decision: r-1"])
def test_an_id_as_it_was_copied(given: str, server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", given, "--admin", f"{server.url}/"]) == 0
    assert "▶  spark-a  850 ms  chosen" in capsys.readouterr().out


def test_a_proxy_of_the_environment_is_not_asked(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert main(["explain", "r-1", "--json", "--admin", server.url]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(records.eight()))


def test_an_id_that_is_not_known(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "r-2", "--admin", server.url]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"kvgate explain: the gateway at {server.url} remembers no decision r-2;")
    assert "--journal FILE" in said


@pytest.mark.parametrize("kind", ["public", "page"])
def test_a_port_that_is_no_admin_port(kind: str, server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.kind = kind
    assert main(["explain", "r-1", "--admin", server.url]) == 2
    assert f"{server.url} is not a gateway's admin port" in capsys.readouterr().err


def test_an_admin_port_that_will_not_says_why(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.kind = "foreign"
    assert main(["explain", "r-1", "--admin", server.url]) == 2
    assert "does not answer web pages of other origins" in capsys.readouterr().err


def test_nobody_at_that_address(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert main(["explain", "r-1", "--admin", url]) == 2
    assert capsys.readouterr().err == (
        f"kvgate explain: no gateway answers at {url} (connection refused); is it running, and is this its admin port? "
        "See --admin\n"
    )


@pytest.mark.parametrize("url", ["127.0.0.1:9090", "file:///etc/passwd", "http://a:b/", "http://[::1/"])
def test_an_address_that_is_none(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "r-1", "--admin", url]) == 2
    assert capsys.readouterr().err.startswith("kvgate explain: ")


def test_a_journal_that_is_not_there_and_one_without_the_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "journal.jsonl"
    assert main(["explain", "r-1", "--journal", str(path)]) == 2
    assert capsys.readouterr().err == f"kvgate explain: can't read the journal {path}: no such file or directory\n"
    path.write_text('{"id": "r-9"}\n')
    assert main(["explain", "r-1", "--journal", str(path)]) == 1
    assert capsys.readouterr().err == f"kvgate explain: no decision r-1 in {path} or the older files beside it\n"
