from __future__ import annotations

import io

import pytest
from rich.console import Console

from gateway.cli.demo_screen import Outcome, Screen
from gateway.local.steps import STEPS

TEXT = "A story of unbelievably tokenised words and extraordinary things\n\nand a second paragraph."


def screen(width: int, terminal: bool = False) -> tuple[Screen, io.StringIO]:
    written = io.StringIO()
    console = Console(file=written, width=width, highlight=False, force_terminal=terminal, color_system=None)
    return Screen(console, 2), written


def on_paper(written: str) -> list[str]:
    """What a terminal shows: a backspace takes one step back."""
    lines = [""]
    for letter in written:
        if letter == "\n":
            lines.append("")
        elif letter == "\b":
            lines[-1] = lines[-1][:-1]
        else:
            lines[-1] += letter
    return [line.rstrip() for line in lines]


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("step", [1, 2, 3, 7, len(TEXT)])
def test_streamed_text_wraps_between_words_however_it_is_cut(terminal: bool, step: int) -> None:
    shown, written = screen(34, terminal)
    for start in range(0, len(TEXT), step):
        shown.token(TEXT[start : start + step])
    shown.result(True, "it held")
    lines = on_paper(written.getvalue())
    assert lines[:6] == [
        "  │ A story of unbelievably",
        "  │ tokenised words and",
        "  │ extraordinary things",
        "  │",
        "  │ and a second paragraph.",
        "  ✓ it held",
    ]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_word_longer_than_a_line_and_wide_letters_stay_inside(terminal: bool) -> None:
    shown, written = screen(24, terminal)
    for piece in ("x" * 15, "x" * 15, " 日本語", "のテキスト", "日本語の", "テキスト"):
        shown.token(piece)
    shown.quiet()
    console = Console(width=80)
    assert max(console.measure(line).maximum for line in on_paper(written.getvalue())) <= 24


def test_a_model_can_not_drive_the_terminal() -> None:
    shown, written = screen(80)
    shown.token("\x1b[2Jboo\x07\r\x9b31m")
    shown.result(False, "said \x1b[31m red [bold]marks[/bold]")
    assert not set("\x1b\x07\r\x9b") & set(written.getvalue())
    assert "[bold]marks[/bold]" in written.getvalue()


def test_without_a_terminal_it_is_plain_lines() -> None:
    shown, written = screen(80)
    shown.opening("What this is.")
    shown.phase("starting")
    shown.heading("First")
    shown.asked("A question?")
    shown.doing("waiting for what nobody sees")
    shown.token("An answer.")
    shown.result(True, "it held")
    shown.heading("Second")
    shown.result(False, "it did not")
    shown.summary([Outcome("First", True, 1.25), Outcome("Second", False, 10.0)])
    lines = [line.rstrip() for line in written.getvalue().splitlines()]
    assert lines[1:] == [
        "What this is.",
        "starting …",
        "",
        "1/2 First",
        "  › A question?",
        "  │ An answer.",
        "  ✓ it held",
        "",
        "2/2 Second",
        "  ✗ it did not",
        "",
        "✓  First    1.2 s",
        "✗  Second  10.0 s",
        "1 of 2 steps held, 11 s",
    ]


def test_a_terminal_shows_what_is_waited_for_and_wipes_it() -> None:
    shown, written = screen(80, terminal=True)
    shown.doing("an engine reads")
    shown.doing("it still reads")
    shown.token("Hello")
    shown.quiet()
    assert "an engine reads" in written.getvalue()
    assert written.getvalue().rstrip().endswith("│ Hello")


def test_the_summary_has_one_line_a_step_in_80_columns() -> None:
    shown, written = screen(80)
    shown.summary([Outcome(step.title, True, 100.0) for step in STEPS])
    lines = written.getvalue().splitlines()
    assert len(lines) == 1 + len(STEPS) + 1
    assert all(step.title in line for step, line in zip(STEPS, lines[1:], strict=False))
