"""`kvgate`: one command, each subcommand a module of its own that is imported only when it is called."""

from __future__ import annotations

import argparse
import difflib
import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from gateway import __version__
from gateway.cli.printable import printable
from gateway.errors import GatewayError

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "serve": "run the gateway",
    "check": "say what is wrong with a file, and what the file means",
    "schema": "print the JSON Schema of the file, for editors",
    "top": "watch the fleet and its queue, live",
    "diagnose": "say what is wrong with a backend, how that is known, and what to try",
    "drain": "keep a backend from new requests while what runs there ends",
    "device-agent": "tell clock, heat, power, memory and links of a box, for the gateway elsewhere",
    "explain": "say why a request went where it went",
    "model": "say what a model's KV cache costs, line by line",
    "plan": "say which devices hold a model, how fast they serve it, and which is the smallest",
    "simulate": "play recorded traffic through a file in virtual time, and compare files",
    "replay": "make recorded decisions again, to see that they are the same, or by another file",
    "demo": "answer a real chat from real engines on this machine",
}
"""Subcommands and what they do, in the order in which people meet them."""

_OUTPUT_LOST = frozenset((errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))

_ABOUT = """\
kvgate is an admission-controlling inference gateway: one OpenAI-compatible URL in front of several
engines on unlike hardware.

  kvgate demo                           see it work, with real engines on this machine
  kvgate check config/gateway.yaml      what is wrong with a file, and what it means
  kvgate serve config/gateway.yaml      run it; SIGHUP applies a changed file
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status (0 done, 1 it said no, 2 wrong usage, 130 interrupted)."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ✓ shows a ?, and no traceback
    try:
        status = _run(words)
        sys.stdout.flush()
        return status
    except GatewayError as error:
        print(printable(f"kvgate: {error.message}"), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        # The reader of our output left (`| head`), or the disk is full; without this the interpreter complains when it
        # flushes at exit.
        if error.errno not in _OUTPUT_LOST:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:
            print(f"kvgate: the output could not be written: {os.strerror(error.errno).lower()}", file=sys.stderr)
        return 1


def _run(words: Sequence[str]) -> int:
    chosen = next((word for word in words if not word.startswith("-")), "")
    if chosen and chosen not in COMMANDS:
        near = difflib.get_close_matches(chosen, COMMANDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
        print(f"kvgate: there is no command {chosen!r}; {hint}", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser("kvgate", description=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"kvgate {__version__}")
    subparsers = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        if name == chosen:
            module = _module(name)
            if module is None:
                print(f"kvgate: {name} is not part of this installation", file=sys.stderr)
                return 2
            module.add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=summary)
    args = parser.parse_args(words)
    if not args.command:
        parser.print_help()
        return 2
    return int(args.run(args))


def _module(name: str) -> ModuleType | None:
    module = f"gateway.cli.{name.replace('-', '_')}"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name == module:
            return None
        raise
