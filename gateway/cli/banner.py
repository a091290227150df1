"""What `kvgate serve` says to a person at its start; a log collector gets the same in its log line."""

from __future__ import annotations

import sys

from rich.table import Table
from rich.text import Text

from gateway import __version__
from gateway.cli.terminal import Terminal
from gateway.config.load import Loaded
from gateway.edge.app import Application

__all__ = ["banner", "show_banner"]

_NAMES = 8
"""Backends that are named; more are counted."""


def show_banner(app: Application, loaded: Loaded) -> None:
    """Print addresses, backends and warnings, on a terminal only."""
    if not sys.stderr.isatty():
        return
    scheme = "https" if loaded.settings.server.tls is not None else "http"
    names = [backend.name for backend in app.dispatcher.plan.backends]
    warnings = [str(warning) for warning in loaded.warnings]
    Terminal(stderr=True).print(banner(f"{scheme}://{app.address}", app.admin_address, names, warnings))


def banner(url: str, admin: str, backends: list[str], warnings: list[str]) -> Table:
    """The banner: the public URL without a path, `host:port` of the admin port, backends, warnings of the file."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    more = f" and {len(backends) - _NAMES} more" if len(backends) > _NAMES else ""
    table.add_row(Text(f"kvgate {__version__}", "bold cyan"), Text(f"{url}/v1", "bold"))
    table.add_row("backends", Text(f"{', '.join(backends[:_NAMES])}{more}"))
    table.add_row("admin", Text(f"http://{admin}/  (status page; /metrics; kvgate explain)"))
    for warning in warnings:
        table.add_row(Text("warning", "yellow"), Text(warning))
    return table
