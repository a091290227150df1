"""What was found while a file was checked, and where things stand in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path as FilePath

from gateway.config.problems import Path, Problem
from gateway.config.source import Source

__all__ = ["Findings"]


@dataclass(slots=True)
class Findings:
    """Problems stop a file from being used; warnings don't. `unresolved`: paths whose reference led nowhere."""

    source: Source
    base: FilePath
    """Where relative paths start."""
    lenient: bool = False
    """Files and variables of another machine may be absent."""
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    unresolved: set[Path] = field(default_factory=set)

    def error(self, path: Path, message: str, hint: str = "") -> None:
        """Add a problem at a path."""
        self.problems.append(self.source.problem(path, message, hint))

    def warn(self, path: Path, message: str, hint: str = "") -> None:
        """Add a warning at a path."""
        self.warnings.append(self.source.problem(path, message, hint))
