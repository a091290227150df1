"""What of a request has no counterpart in another dialect, by the paths that an error message names."""

from __future__ import annotations

__all__ = ["Lost"]

_MOST = 16


class Lost:
    """Collects the paths for `Translated.lost`; a handful is enough for an error message."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def add(self, path: str) -> None:
        """Take note of one."""
        if len(self.paths) < _MOST:
            self.paths.append(path)
