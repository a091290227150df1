"""Text of strangers on a terminal: no escape reaches it, whichever command prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from gateway.cli.main import main
from gateway.cli.printable import printable
from gateway.cli.terminal import Terminal
from tests.config.gguf_bytes import gguf

HOSTILE = "a\x1b]0;title\x07b\x1b[31mc\x9b2Jd\u202ee\r[bold]f[/]"
COMMANDS = "\x1b\x07\x9b\u202e\r"
METADATA = {
    "llama.block_count": 2, "llama.embedding_length": 64, "llama.attention.head_count": 4, "llama.context_length": 512,
}  # fmt: skip


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")


def test_each_command_to_a_terminal_becomes_one_sign() -> None:
    assert printable("Qwen3-8B ✓ 模型 é\n\tnext") == "Qwen3-8B ✓ 模型 é\n\tnext"
    assert printable("a\x1b[0mb\x00c\x7fd\u202e") == "a\ufffd[0mb\ufffdc\ufffdd\ufffd"


def test_texts_and_tables_are_made_printable(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("name")
    table.add_row(Text(HOSTILE))
    Terminal().print(table)
    Terminal().print(Text(HOSTILE))
    Terminal(stderr=True).print(Text(HOSTILE))
    captured = capsys.readouterr()
    assert not set(COMMANDS) & set(captured.out + captured.err)
    assert captured.out.count("a\ufffd]0;title") == 2


def test_own_colours_stay(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    Terminal().print(Text("red", "red"))
    assert "\x1b[31mred\x1b[0m" in capsys.readouterr().out


def test_a_files_own_name_and_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf({"general.architecture": "llama", "general.name": HOSTILE, **METADATA}, []))
    assert main(("model", str(path))) == 0
    out = capsys.readouterr().out
    assert "a\ufffd]0;title" in out
    assert not set(COMMANDS) & set(out)
    path.write_bytes(gguf({"general.architecture": HOSTILE, **METADATA}, []))
    assert main(("model", str(path))) == 1
    err = capsys.readouterr().err
    assert ".block_count is missing" in err
    assert not set(COMMANDS) & set(err)
