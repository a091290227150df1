"""Every check of the project, in order of price: `python -m tests [--fast] [pytest arguments]`.

Prints a table of the steps with their seconds, then pytest's own summary once more as the last line. Exits with 1 if
any step failed, after all of them have run.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parent.parent
SCRIPTS = Path(sysconfig.get_path("scripts"))
FAST = ("core", "cases", "wire", "architecture")
NODE_CLIENTS = ("openai", "anthropic", "codex", "claude")
"""Half a minute to install, and quick to run; `python -m tests.clients --install` brings the others too."""
ALONE = ("bench", "real")
"""What measures time, or keeps both cores busy by itself."""
WORKERS = min(4, os.cpu_count() or 1)
SUMMARY = re.compile(r"^(=+ )?\d+ (passed|failed|skipped|error|deselected).* in [\d.]+s|^(=+ )?no tests ran")


@dataclass(frozen=True, slots=True)
class Step:
    """One command with its outcome."""

    name: str
    status: int
    seconds: float
    last_line: str

    @property
    def passed(self) -> bool:
        return self.status == 0


def run(name: str, command: Sequence[str | Path]) -> Step:
    """Run `command` from the root of the checkout, with its output copied line by line as it comes."""
    print(f"\n── {name}", flush=True)
    started = time.monotonic()
    # The colour of a terminal is lost behind a pipe; pytest and ruff are asked for it when a person looks on.
    colour = {"FORCE_COLOR": "1"} if sys.stdout.isatty() else {}
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=ROOT,
        env=os.environ | colour,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    last = ""
    with process.stdout as lines:
        for line in lines:
            print(line, end="", flush=True)
            plain = re.sub(r"\x1b\[[0-9;]*m", "", line).strip()
            if SUMMARY.match(plain):
                last = plain.strip("= ")
    return Step(name, process.wait(), time.monotonic() - started, last)


def static_steps() -> list[Step]:
    """Lint, format, types, imports."""
    return [
        run("ruff check", [SCRIPTS / "ruff", "check", "gateway", "tests"]),
        run("ruff format", [SCRIPTS / "ruff", "format", "--check", "gateway", "tests"]),
        run("mypy --strict", [SCRIPTS / "mypy", "--strict"]),
        run("lint-imports", [SCRIPTS / "lint-imports", "--no-logo"]),
    ]


def node_clients() -> Step:
    """Install the clients that npm brings.

    Their tests are skipped where that fails: a registry out of reach is no fault of the project's.
    """
    command = [sys.executable, "-m", "tests.clients", "--install", "--only-install", *NODE_CLIENTS]
    step = run("clients from npm", command)
    return step if step.passed else replace(step, status=0, last_line="not installed: their tests are skipped")


def tests(chosen: Sequence[str], passed_on: Sequence[str]) -> list[Step]:
    """The tests asked for in one go; or all of them, those that measure time after the others and one by one."""
    pytest = [sys.executable, "-m", "pytest", "--durations=10"]
    if chosen or passed_on:
        return [run("pytest", [*pytest, *chosen, *passed_on])]
    alone = [f"tests/{layer}" for layer in ALONE if (ROOT / "tests" / layer).is_dir()]
    beside = ["-n", str(WORKERS), "--dist", "loadfile", *(f"--ignore={each}" for each in alone)]
    return [run("pytest", [*pytest, *beside]), run("pytest, alone", [*pytest, *alone])]


def together(summaries: Sequence[str]) -> str:
    """One summary of several runs of pytest."""
    counts: dict[str, int] = {}
    seconds = 0.0
    for summary in summaries:
        for number, what in re.findall(r"(\d+) ([a-z]+)", summary):
            counts[what] = counts.get(what, 0) + int(number)
        seconds += sum(float(took) for took in re.findall(r" in ([\d.]+)s", summary))
    return f"{', '.join(f'{number} {what}' for what, number in counts.items())} in {seconds:.2f}s"


def show(steps: Sequence[Step]) -> None:
    """The table of the steps, and what is worth knowing of each."""
    table = Table(title="kvgate: checks", title_justify="left")
    for heading, justify in (("step", "left"), ("result", "left"), ("seconds", "right"), ("summary", "left")):
        table.add_column(heading, justify="right" if justify == "right" else "left")
    for step in steps:
        verdict = "[green]passed[/]" if step.passed else f"[red]failed ({step.status})[/]"
        table.add_row(step.name, verdict, f"{step.seconds:.1f}", step.last_line)
    table.add_row("all", "", f"{sum(step.seconds for step in steps):.1f}", "")
    print(flush=True)
    Console().print(table)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the checks; the exit status of the program."""
    flags = argparse.ArgumentParser(prog="python -m tests", description=__doc__)
    flags.add_argument("--fast", action="store_true", help=f"of the tests only {', '.join(FAST)}")
    flags.add_argument("--only-tests", action="store_true", help="no linters, no type checker")
    given, passed_on = flags.parse_known_args(argv)

    steps = [] if given.only_tests else static_steps()
    chosen = [f"tests/{layer}" for layer in FAST if (ROOT / "tests" / layer).is_dir()] if given.fast else []
    if not given.fast and shutil.which("npm"):
        steps.append(node_clients())
    tested = tests(chosen, passed_on)
    steps += tested
    show(steps)
    failed = [step.name for step in steps if not step.passed]
    if failed:
        print(f"failed: {', '.join(failed)}")
    dumb = next((step for step in tested if not step.last_line), None)
    if dumb is not None:
        print(f"{dumb.name} ended with status {dumb.status} and no summary")
    elif len(tested) == 1:
        print(tested[0].last_line)
    else:
        print(together([step.last_line for step in tested]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
