"""The last screen of `kvgate demo`: lines to paste, and where to look."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

__all__ = ["Farewell", "own_command", "shown_path"]

_CURL = """\
curl -N {url}/v1/chat/completions \\
  -H 'Content-Type: application/json' -d '{{
    "model": "{model}", "stream": true, "max_tokens": 60,
    "messages": [{{"role": "user", "content": "What is a vacuum tube?"}}]}}'"""

_SDK = """\
from openai import OpenAI  # pip install openai
client = OpenAI(base_url="{url}/v1", api_key="unused")
answer = client.chat.completions.create(
    model="{model}", max_tokens=60,
    messages=[{{"role": "user", "content": "What is a vacuum tube?"}}])
print(answer.choices[0].message.content)"""


@dataclass(frozen=True, slots=True)
class Farewell:
    """What can be tried by hand. URLs without a trailing slash; `decision` is an id that the gateway remembers."""

    url: str
    admin: str
    model: str
    other_model: str
    decision: str
    file: Path

    @property
    def curl(self) -> str:
        """A command line for any shell."""
        return _CURL.format(url=self.url, model=self.model)

    @property
    def sdk(self) -> str:
        """A program for the openai package."""
        return _SDK.format(url=self.url, model=self.model)

    @property
    def explain(self) -> str:
        """A command line that explains a decision of the tour."""
        return f"{own_command()} explain {self.decision or 'ID'} --admin {self.admin}"

    def show(self, console: Console) -> None:
        """Print it all; no line is broken and none ends in blanks, so every one can be pasted."""
        _section(console, "It stays up. Try it:")
        _code(console, self.curl, "bash")
        _section(console, "The same with the OpenAI SDK:")
        _code(console, self.sdk, "python")
        _section(console, "Look inside:")
        _code(console, self.explain, "bash")
        rows = (
            ("status", f"{self.admin}/"),
            ("metrics", f"{self.admin}/metrics"),
            ("models", f"{self.url}/v1/models  ({self.model}, {self.other_model})"),
            ("its file", str(self.file)),
        )
        for name, value in rows:
            _line(console, Text.assemble((f"{name:<10}", "dim"), value))
        console.print()
        _line(console, Text("Ctrl-C stops everything.", "bold"))


def own_command() -> str:
    """How this program was called, as it can be typed again from here."""
    called = Path(sys.argv[0])
    if called.name != "kvgate":
        return f"{shown_path(Path(sys.executable))} -m gateway.cli"
    found = shutil.which("kvgate")
    if found is not None and Path(found).resolve() == called.resolve():
        return "kvgate"
    return shown_path(called)


def shown_path(path: Path) -> str:
    """A program's path as a person here would type it: relative if it is below the current folder."""
    here = Path.cwd()
    absolute = here / path
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(absolute)


def _section(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, "bold cyan"))


def _code(console: Console, code: str, language: str) -> None:
    highlighted = Syntax("", language, theme="ansi_dark", background_color="default").highlight(code)
    highlighted.rstrip()
    _line(console, highlighted)


def _line(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True, highlight=False)
