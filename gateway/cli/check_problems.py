"""Problems and warnings for a person: each with its place, its sentence and its way out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gateway.config.problems import Problem

__all__ = ["counted", "indented", "list_problems", "show_problems"]


def show_problems(console: Console, problems: Sequence[Problem], file: Path) -> None:
    """What keeps the file from being used."""
    console.print(f"[bold red]✗ {counted(len(problems), 'problem')}[/] in {escape(str(file))}\n")
    list_problems(console, problems, "red")


def list_problems(console: Console, problems: Iterable[Problem], colour: str) -> None:
    """Place and path in one line; below it the sentence, and the hint beside it where it fits."""
    for problem in problems:
        path = f"  {problem.path}" if problem.path else ""
        console.print(indented(Text.assemble((problem.place, "cyan"), (path, "bold")), 2))
        text = Text(problem.message, style=colour)
        hint = f"→ {problem.hint}" if problem.hint else ""
        if hint and 4 + len(problem.message) + 1 + len(hint) <= console.width:
            text.append(f" {hint}", "default")
            hint = ""
        console.print(indented(text, 4))
        if hint:
            console.print(indented(Text(hint), 4))
    console.print()


def indented(what: Text | Table, columns: int) -> Padding:
    """Something moved right, no wider than it is."""
    return Padding(what, (0, 0, 0, columns), expand=False)


def counted(number: int, noun: str) -> str:
    """`1 problem`, `2 problems`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
