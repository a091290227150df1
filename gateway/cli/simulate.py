"""`kvgate simulate`: recorded traffic through a configuration, in virtual time, on emulated engines."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from gateway.cli.arguments import reads
from gateway.cli.plan_traffic import parse_rate
from gateway.cli.simulate_faults import parse_fault
from gateway.cli.simulate_json import as_json
from gateway.cli.simulate_plot import FORMATS, draw
from gateway.cli.simulate_view import Setting, show
from gateway.cli.terminal import Terminal
from gateway.config.load import load
from gateway.config.policy import Policy
from gateway.config.sizes import Unreadable, parse_duration, parse_number, parse_share, parse_tokens
from gateway.errors import ConfigError
from gateway.sim.events import Breakdown
from gateway.sim.experiment import NAMED, Contender, Played, Traffic, play, traffic
from gateway.sim.summary import Goal
from gateway.sim.trace_file import read_trace
from gateway.sim.truth import Truth
from gateway.telemetry.recording import Recording
from gateway.telemetry.rotating_file import RotatingFile

__all__ = ["add_parser", "run"]

_ANY = 1 << 62
_WRITTEN_S = 600.0
"""Seconds that the rest of a recording may take to be written."""

_EXAMPLES = """\
  kvgate simulate --trace mooncake.jsonl --config config/gateway.yaml --rate 1.2/s
  kvgate simulate --trace decisions.jsonl --config config/gateway.yaml --against config/new.yaml --seeds 5
  kvgate simulate --trace azure.csv --config config/gateway.yaml --baseline all --plot report.html
  kvgate simulate --trace mooncake.jsonl --config config/gateway.yaml --fault spark=hang@60s

The devices are emulated by the catalogue, off by a factor that chance draws for each (--noise): the gateway knows what
the file and the engines' probes tell it, and learns the rest, as it would of real ones. The same command prints the
same bytes; the CPU time, which is this machine's, goes to stderr.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `simulate` to the command line."""
    parser = subparsers.add_parser(
        "simulate",
        help="play recorded traffic through a file in virtual time, and compare files",
        description="Plays a recorded trace through the gateway's own decision code, in virtual time, over engines "
        "emulated by the catalogue: what a configuration would have done, beside another one or plain proxies.",
        epilog=f"examples:\n{_EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--trace", type=Path, required=True, metavar="FILE",
                        help="Mooncake JSON lines, Azure or BurstGPT CSV, or this gateway's journal")  # fmt: skip
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the gateway's file")
    parser.add_argument("--against", type=Path, action="append", default=[], metavar="FILE",
                        help="another file, for the same traffic; again for more")  # fmt: skip
    parser.add_argument("--baseline", type=_baselines, default=(), metavar="NAME,...",
                        help=f"plain policies on the first file's backends: {', '.join(NAMED)}, or all")  # fmt: skip
    load_of = parser.add_argument_group("traffic")
    load_of.add_argument("--requests", type=_count, default=500, metavar="N", help="requests of a run (500)")
    load_of.add_argument("--segment", type=reads(parse_share), default=0.0, metavar="SHARE",
                         help="begin at this part of the trace (0%%); each seed takes the next segment")  # fmt: skip
    pace = load_of.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=_factor, default=1.0, metavar="X", help="arrivals X times as fast (1)")
    pace.add_argument("--rate", type=reads(parse_rate), metavar="N/s", help="so many requests: 1.2/s, 30/min")
    load_of.add_argument("--longest", type=reads(parse_tokens), metavar="TOKENS", help="leave longer requests out")
    load_of.add_argument("--model", metavar="NAME", help="what they ask for; left out: by the journal, or the first")
    load_of.add_argument("--patience", type=reads(parse_duration), default=0.0, metavar="TIME",
                         help="after which a client leaves that has not got its whole answer")  # fmt: skip
    load_of.add_argument("--seed", type=int, default=1, metavar="N", help="the first seed (1)")
    load_of.add_argument("--seeds", type=_count, default=1, metavar="N", help="runs, for the noise between them (1)")
    fleet = parser.add_argument_group("emulated fleet")
    fleet.add_argument("--noise", type=reads(parse_share), default=0.2, metavar="SHARE",
                       help="spread of each device's constants around the catalogue's (20%%)")  # fmt: skip
    fleet.add_argument("--factor", type=_named_factor, action="append", default=[], metavar="NAME=X",
                       help="this backend takes X times as long as the catalogue says")  # fmt: skip
    fleet.add_argument("--fault", type=parse_fault, action="append", default=[], metavar="NAME=WHAT@TIME",
                       help="slow:3, hang, crash, dead or well, from then on: spark=slow:3@2m")  # fmt: skip
    goals = parser.add_argument_group("goals of a good answer")
    goals.add_argument("--ttft", type=reads(parse_duration), default=3.0, metavar="TIME",
                       help="first token, and a second more for every 2,000 tokens of prompt (3s)")  # fmt: skip
    goals.add_argument("--tpot", type=reads(parse_duration), default=0.1, metavar="TIME",
                       help="mean time per output token (100ms)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.add_argument("--record", type=Path, metavar="FILE",
                        help="what the first file's gateway decides in the first run, for `kvgate replay`")  # fmt: skip
    parser.add_argument("--plot", type=_picture, metavar="FILE", help=f"draw it too: {', '.join(FORMATS)}")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Play; 0 when all was played. Raises ConfigError for files that can't be used."""
    rows = read_trace(args.trace)
    contenders = _contenders(args)
    screen = Terminal(stderr=True)
    truth, goal = Truth(dict(args.factor), args.noise), Goal(ttft_s=args.ttft, tpot_s=args.tpot)
    faults: Sequence[Breakdown] = args.fault
    given = [
        traffic(
            rows, contenders, seed=args.seed + number, requests=args.requests, start=args.segment, skip=number,
            speed=args.speed, rate=args.rate, longest=args.longest, patience_s=args.patience, model=args.model,
        )
        for number in range(args.seeds)
    ]  # fmt: skip
    runs: list[Played] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    recording = _recording(args.record)
    try:
        with Progress(*columns, console=screen, transient=True) as progress:
            for one in given:
                for each in contenders:
                    kept = None if runs else recording
                    runs.append(_play(progress, each, one, truth, goal, args.model, faults, kept))
    finally:
        if recording is not None:
            recording.close(_WRITTEN_S)
    cpu = sum(run.decided_s for run in runs)
    asked = sum(run.summary.requests for run in runs)
    screen.print(f"decisions took {cpu / asked * 1000:.2f} ms of CPU a request, everything counted", style="dim")
    setting = Setting(args.trace, goal, truth, given, faults)
    if args.json:
        print(json.dumps(as_json(setting, runs), indent=2))
    else:
        show(Terminal(), setting, runs)
    if args.plot is not None:
        draw(args.plot, setting, runs)
        screen.print(f"drawn in {args.plot}", style="dim")
    return 0


def _play(
    progress: Progress,
    contender: Contender,
    given: Traffic,
    truth: Truth,
    goal: Goal,
    model: str | None,
    faults: Sequence[Breakdown],
    recorder: Recording | None,
) -> Played:
    task = progress.add_task(f"{contender.name}, seed {given.seed}", total=given.arrivals[-1].at_s)
    played = play(
        contender, given, truth=truth, goal=goal, model=model, breakdowns=faults, recorder=recorder,
        tell=lambda now: progress.update(task, completed=now),
    )  # fmt: skip
    progress.remove_task(task)
    return played


def _recording(path: Path | None) -> Recording | None:
    """A new file, of any size."""
    if path is None:
        return None
    try:
        path.write_bytes(b"")
    except OSError as error:
        raise ConfigError(f"can't write {path}: {(error.strerror or str(error)).lower()}") from None
    return Recording(RotatingFile(path, size=_ANY), queued=_ANY)


def _contenders(args: argparse.Namespace) -> list[Contender]:
    first = Contender(args.config.stem, _read(args.config))
    found = [first]
    for path in args.against:
        name = path.stem if path.stem not in {one.name for one in found} else str(path)
        found.append(Contender(name, _read(path)))
    names = {one.name for one in found}
    if len(names) < len(found):
        raise ConfigError("the same file is given twice: there is nothing to compare")
    return found + [Contender(name, first.configuration, name) for name in args.baseline]


def _read(path: Path) -> Policy:
    return load(path, lenient=True).policy


def _baselines(text: str) -> tuple[str, ...]:
    if text == "all":
        return NAMED
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in NAMED:
            raise argparse.ArgumentTypeError(f"there is no baseline {name!r}: {', '.join(NAMED)}, or all")
    return names


def _picture(text: str) -> Path:
    path = Path(text)
    if path.suffix not in FORMATS:
        raise argparse.ArgumentTypeError(f"{text!r} must end with {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    return path


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def _factor(text: str) -> float:
    try:
        number = parse_number(text.removesuffix("x"))
    except Unreadable as error:
        raise argparse.ArgumentTypeError(f"{text!r} {error}: {error.hint}") from None
    if not 0.0 < number <= 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} must be over 0")
    return number


def _named_factor(text: str) -> tuple[str, float]:
    name, equals, number = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not a factor: write it like spark=1.4")
    return name, _factor(number)
