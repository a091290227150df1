"""Real clients do a task with tools through kvgate: `python -m tests.clients [NAME...] [--install DIR]`.

Each one that is named (else all) runs headless behind each set-up; a table says what came of it. With `--install`,
what is missing is installed first. Exits with 1 if a client failed or is not there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.clients.agents import AGENTS
from tests.clients.client import Client
from tests.clients.running import Outcome, run
from tests.clients.sdks import SDKS
from tests.clients.setups import SETUPS, flavour, reach

CLIENTS = (*SDKS, *AGENTS)


def chosen(names: Sequence[str]) -> list[Client]:
    """The clients whose names contain one of `names`; all of them when there are none. Exits for a name of nobody."""
    for name in names:
        if not any(name in client.name for client in CLIENTS):
            sys.exit(f"no client is called {name}; there are: {', '.join(client.name for client in CLIENTS)}")
    return [client for client in CLIENTS if not names or any(name in client.name for name in names)]


async def run_all(clients: Sequence[Client], setups: Sequence[str], folder: Path, console: Console) -> list[Outcome]:
    """Every client behind every set-up, one after the other: a gateway serves all that share its engine."""
    outcomes = []
    for setup in setups:
        for kind in dict.fromkeys(flavour(setup, client) for client in clients):
            async with reach(setup, kind, folder / setup / kind) as reached:
                for client in clients:
                    if flavour(setup, client) != kind:
                        continue
                    room = folder / setup / kind / client.name
                    outcome = await run(client, reached, room)
                    outcomes.append(outcome)
                    verdict = "[green]done[/]" if outcome.passed else "[red]failed[/]"
                    console.print(f"{client.name}, {setup}: {verdict} in {outcome.seconds:.1f} s", highlight=False)
                    for fault in outcome.faults:
                        console.print(f"  {fault}", style="red", markup=False, highlight=False)
                    if not outcome.passed:
                        console.print(outcome.output[-1500:], style="dim", markup=False, highlight=False)
    return outcomes


def table(outcomes: Sequence[Outcome]) -> Table:
    """One row a client and set-up."""
    shown = Table(title="kvgate: real clients", title_justify="left")
    for heading in ("client", "set-up", "result", "requests at the engine"):
        shown.add_column(heading)
    shown.add_column("seconds", justify="right")
    for outcome in outcomes:
        asked = ", ".join(f"{count} {name}" for name, count in sorted(outcome.surfaces.items()))
        verdict = "[green]done[/]" if outcome.passed else f"[red]{len(outcome.faults)} faults[/]"
        shown.add_row(outcome.client, outcome.setup, verdict, asked, f"{outcome.seconds:.1f}")
    return shown


def main(argv: Sequence[str] | None = None) -> int:
    """Run; the exit status of the program."""
    flags = argparse.ArgumentParser(prog="python -m tests.clients", description=__doc__)
    flags.add_argument("name", nargs="*", help="part of a client's name")
    flags.add_argument("--install", nargs="?", const="", metavar="DIR", help="install what is missing, into DIR")
    flags.add_argument("--only-install", action="store_true", help="run nothing")
    flags.add_argument("--setup", action="append", choices=SETUPS, help="only this one; may be repeated")
    flags.add_argument("--keep", metavar="DIR", help="leave what the clients wrote there")
    flags.add_argument("--json", action="store_true", help="the outcomes as JSON on standard output")
    given = flags.parse_args(argv)

    console = Console(stderr=given.json)
    clients = chosen(given.name)
    if given.install is not None:
        if given.install:
            os.environ["KVGATE_CLIENTS"] = str(Path(given.install).absolute())
        for install in dict.fromkeys(client.install for client in clients):
            console.print(f"{'found' if install.there() else 'installing'}: {' '.join(install.packages)}")
            try:
                install.bring()
            except subprocess.CalledProcessError as error:
                console.print(error.output, style="red", markup=False)
                return 1
        if given.only_install:
            return 0
    missing = [client for client in clients if not client.there()]
    for client in missing:
        console.print(f"{client.name} is not installed: add --install", style="red")
    setups = given.setup or [setup for setup in SETUPS if setup != "direct"]
    with tempfile.TemporaryDirectory(prefix="kvgate-clients-") as temporary:
        folder = Path(given.keep or temporary)
        outcomes = asyncio.run(run_all([client for client in clients if client.there()], setups, folder, console))
    console.print(table(outcomes))
    if given.json:
        fields = ("client", "setup", "seconds", "status", "surfaces", "faults")
        print(json.dumps([{name: getattr(outcome, name) for name in fields} for outcome in outcomes], indent=2))
    return 1 if missing or not all(outcome.passed for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
