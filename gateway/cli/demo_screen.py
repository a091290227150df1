"""What `kvgate demo` shows: headings, streamed text, what is being waited for, and what was proven."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

__all__ = ["Outcome", "Screen"]

_MARGIN = "  │ "
_WIDEST = 100
"""Columns; longer lines of running text are hard to read."""
_UNPRINTABLE = re.compile(r"[^\S\n ]|[\x00-\x09\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one step went: its title, whether it held, and seconds."""

    title: str
    held: bool
    seconds: float


class Screen:
    """Shows a tour as it happens. An `Audience` for the steps; on anything but a terminal it is plain lines."""

    def __init__(self, console: Console, steps: int) -> None:
        self._console = console
        self._steps = steps
        self._done = 0
        self._progress: Progress | None = None
        self._streaming = False
        self._column = 0
        self._word = ""
        self._space = False

    @property
    def _width(self) -> int:
        return min(self._console.width, _WIDEST)

    def opening(self, text: str) -> None:
        """What this is."""
        self._console.print(Rule(Text("kvgate demo", "bold cyan"), align="left", style="cyan"))
        self._console.print(Text(text), width=self._width)

    def heading(self, title: str) -> None:
        """The next step begins."""
        self.quiet()
        self._console.print()
        self._console.print(Text.assemble((f"{self._done + 1}/{self._steps} ", "bold cyan"), (title, "bold")))

    def doing(self, what: str) -> None:
        """What is being waited for, with a clock, until something else is shown. Only a terminal shows it."""
        self._end_stream()
        if not self._console.is_terminal:
            return
        if self._progress is None:
            columns = (
                SpinnerColumn(),
                BarColumn(12, complete_style="cyan"),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
            )
            self._progress = Progress(*columns, console=self._console, transient=True)
            self._progress.add_task(what, total=self._steps, completed=self._done)
            self._progress.start()
        else:
            task = self._progress.tasks[0]
            if task.description != what:
                self._progress.update(task.id, description=what)

    def phase(self, what: str) -> None:
        """Like `doing`, but a line of its own where nothing can be overwritten."""
        if self._console.is_terminal:
            self.doing(what)
        else:
            self._console.print(f"{what} …", markup=False, highlight=False)

    def quiet(self) -> None:
        """Nothing is waited for any more, and no text streams."""
        self._end_stream()
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def asked(self, text: str) -> None:
        """What the user says."""
        self.quiet()
        self._hanging(Text("  › ", "bold"), Text(text, "bold"))

    def token(self, piece: str) -> None:
        """The next piece of a streamed answer, no word broken across lines. A terminal shows it at once."""
        if not self._streaming:
            self.quiet()
            self._streaming = True
            if self._console.is_terminal:
                self._raw(_MARGIN)
        if not self._console.is_terminal:
            self._word += piece
            return
        for part in re.split(r"([ \n])", _UNPRINTABLE.sub("", piece)):
            if part == "\n":
                self._break()
            elif part == " ":
                self._space, self._word = self._column > 0, ""
            elif part:
                self._put(part)

    def _put(self, part: str) -> None:
        """Write a part of a word; what of the word is on this line already moves to the next with it, if it must."""
        room = self._width - len(_MARGIN)
        if self._column + self._space + cell_len(part) > room and self._column > 0:
            word = self._word if cell_len(self._word) < self._column else ""
            self._console.file.write("\b \b" * cell_len(word))
            self._break()
            part = word + part
        elif self._space:
            part = f" {part}"
        self._raw(part)
        self._space = False
        self._word += part.lstrip()
        self._column += cell_len(part)

    def _break(self) -> None:
        self._raw(f"\n{_MARGIN}")
        self._column, self._word, self._space = 0, "", False

    def _raw(self, text: str) -> None:
        self._console.print(Text(text, "green"), end="", soft_wrap=True)

    def _end_stream(self) -> None:
        if not self._streaming:
            return
        if self._console.is_terminal:
            self._console.print()
        else:
            self._hanging(Text(_MARGIN), Text(_UNPRINTABLE.sub("", self._word)), Text(_MARGIN))
        self._streaming, self._column, self._word, self._space = False, 0, "", False

    def result(self, held: bool, said: str) -> None:
        """What the step proved, or why it did not hold."""
        self.quiet()
        self._done += 1
        mark = Text("  ✓ ", "bold green") if held else Text("  ✗ ", "bold red")
        self._hanging(mark, Text(_UNPRINTABLE.sub("", said), "" if held else "red"))

    def _hanging(self, mark: Text, text: Text, later: Text | None = None) -> None:
        """Lines of text, the first after its mark, the others below its first word or after `later`."""
        for line in text.wrap(self._console, self._width - len(mark), overflow="fold"):
            line.rstrip()
            self._console.print(Text.assemble(mark, line), soft_wrap=True)
            mark = later if later is not None else Text(" " * len(mark))

    def summary(self, outcomes: Sequence[Outcome]) -> None:
        """Every step in one line, and how many held."""
        self.quiet()
        held = sum(outcome.held for outcome in outcomes)
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis")
        table.add_column(justify="right", no_wrap=True)
        for outcome in outcomes:
            mark = Text("✓", "green") if outcome.held else Text("✗", "red")
            table.add_row(mark, Text(outcome.title, "" if outcome.held else "red"), f"{outcome.seconds:.1f} s")
        self._console.print()
        self._console.print(table)
        whole = sum(outcome.seconds for outcome in outcomes)
        self._console.print(
            Text(
                f"{held} of {len(outcomes)} steps held, {whole:.0f} s",
                "bold green" if held == len(outcomes) else "bold red",
            )
        )
