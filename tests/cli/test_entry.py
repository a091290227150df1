from __future__ import annotations

import io
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gateway import __version__
from gateway.cli.main import COMMANDS, main
from gateway.errors import GatewayError


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    said = capsys.readouterr().out
    assert all(f"    {name}" in said and summary in " ".join(said.split()) for name, summary in COMMANDS.items())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    assert left.value.code == 0
    assert f"usage: kvgate {name}" in capsys.readouterr().out


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"kvgate {__version__}\n"


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "kvgate demo " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("serv", "did you mean serve?"),
        ("zzz", f"there are {', '.join(COMMANDS)}"),
    ],
)
def test_an_unknown_command(word: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 2
    assert capsys.readouterr().err == f"kvgate: there is no command '{word}'; {hint}\n"


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [(KeyboardInterrupt(), 130, ""), (GatewayError("no room"), 1, "kvgate: no room\n")],
)
def test_what_ends_a_command_is_no_traceback(
    raised: BaseException,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(_: object) -> int:
        raise raised

    monkeypatch.setattr("gateway.cli.schema.run", run)
    assert main(["schema"]) == status
    assert capsys.readouterr().err == said


def test_a_terminal_without_the_letters_gets_question_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))

    def run(_: object) -> int:
        print("✓ done")
        return 0

    monkeypatch.setattr("gateway.cli.schema.run", run)
    assert main(["schema"]) == 0
    sys.stdout.flush()
    assert written.getvalue() == b"? done\n"


def test_serve_with_a_bad_file_names_every_problem_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text("backends:\n  - {name: a, url: http://127.0.0.1:1, engin: vllm}\nqueue: {length: -1}\n")
    assert main(["serve", str(file)]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0].startswith(f"kvgate: {file}:2:")
    assert "did you mean engine?" in said[0]
    assert said[1].startswith(f"{file}:3:")


def test_serve_without_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(tmp_path / "none.yaml")]) == 1
    assert capsys.readouterr().err == f"kvgate: {tmp_path / 'none.yaml'}: can't be read: no such file or directory\n"


@pytest.mark.parametrize("taken", ["listen", "admin"])
def test_serve_on_a_taken_port_says_which(taken: str, tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        ports = {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0"} | {taken: address}
        file = tmp_path / "gateway.yaml"
        file.write_text(
            f"server: {{listen: '{ports['listen']}', admin: '{ports['admin']}'}}\n"
            "backends:\n  - {name: a, url: http://127.0.0.1:1, engine: vllm}\n"
        )
        done = subprocess.run(
            [sys.executable, "-m", "gateway.cli", "serve", str(file)], capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 1
    assert f"kvgate: can't listen on {address}: address already in use" in done.stderr.lower()
    assert "Traceback" not in done.stderr
