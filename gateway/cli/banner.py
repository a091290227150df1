"""What `kvgate serve` says to a person at its start; a log collector gets the same in its log line."""

from __future__ import annotations

import sys

from rich.console import Console

from gateway.config.load import Loaded
from gateway.edge.app import Application

__all__ = ["show_banner"]


def show_banner(app: Application, loaded: Loaded) -> None:
    """Print addresses, backends and warnings, on a terminal only."""
    if not sys.stderr.isatty():
        return
    console = Console(stderr=True)
    server = loaded.settings.server
    scheme = "https" if server.tls is not None else "http"
    names = ", ".join(backend.name for backend in app.dispatcher.plan.backends)
    console.print(f"[bold cyan]kvgate[/] serves [bold]{scheme}://{app.address}/v1[/] from {names}")
    console.print(f"admin  http://{app.admin_address}/  (metrics, backends, decisions)", highlight=False)
    for warning in loaded.warnings:
        console.print(f"[yellow]warning[/] {warning}", highlight=False)
