"""Says at the end of a run which files have grown past the point where they should be split."""

from __future__ import annotations

import pytest

from tests.architecture.source import SMELL_LINES, line_count, python_files, shown


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    large = sorted((-line_count(path), shown(path)) for path in python_files() if line_count(path) > SMELL_LINES)
    if large:
        listed = ", ".join(f"{name} {-count}" for count, name in large)
        terminalreporter.write_line(f"over {SMELL_LINES} lines: {listed}")
