"""`kvgate device-agent`: tells what this box's devices do; the same file runs alone where kvgate is not installed."""

from __future__ import annotations

import argparse

from gateway import device_agent

__all__ = ["add_parser", "run"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand and its options."""
    parser = subparsers.add_parser(
        "device-agent",
        help="tell clock, heat, power, memory and links of this box",
        description="Serves what this box's devices do as a page for Prometheus; name it under "
        "`telemetry: {agent: ...}` of the backend. To a box without kvgate copy the file that --where names: it needs "
        "nothing but Python. With KVGATE_AGENT_TOKEN set, whoever asks needs that token.",
    )
    parser.add_argument("--listen", default="127.0.0.1:9836", metavar="HOST:PORT", help="where (127.0.0.1:9836)")
    parser.add_argument("--once", action="store_true", help="print the figures and end")
    parser.add_argument("--where", action="store_true", help="print the path of the file to copy, and end")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted; 0, 1 when it can't listen there."""
    if args.where:
        print(device_agent.__file__)
        return 0
    return device_agent.main(["--listen", args.listen, *(["--once"] if args.once else [])])
