"""Command line: every subcommand is a file of its own."""

from __future__ import annotations

from gateway.cli.main import main

__all__ = ["main"]
