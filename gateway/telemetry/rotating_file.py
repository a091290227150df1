"""A file of lines that is put aside when it grows, and not kept for ever."""

from __future__ import annotations

from io import FileIO
from pathlib import Path

from gateway import clock

__all__ = ["RotatingFile"]


class RotatingFile:
    """`path`, and up to `count` older ones as `path.1` (newest) and on, each at most `size` bytes.

    Older ones untouched for `keep` seconds go at the next rotation. Readable by its owner only. A sink of
    `telemetry.line_writer`. OSError when the directory can't be made or the file not written.
    """

    def __init__(self, path: Path, *, size: int = 64 * 1024 * 1024, count: int = 8, keep: float | None = None) -> None:
        self._path = path
        self._size = size
        self._count = count
        self._keep = keep
        self._written = 0
        self._file: FileIO | None = None

    def write(self, data: bytes) -> None:
        """Append whole lines; a file that would grow over `size` is put aside first."""
        file = self._file if self._file is not None else self._open()
        if self._written and self._written + len(data) > self._size:
            self._rotate()
            file = self._open()
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]
        self._written += len(data)

    def close(self) -> None:
        """Close the file; a later write opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> FileIO:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.touch(mode=0o600)
        # Unbuffered: what a full disk refuses must not be tried again, and fail again, when the file is closed.
        self._file = self._path.open("ab", buffering=0)
        self._written = self._file.tell()
        return self._file

    def _aside(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _rotate(self) -> None:
        self.close()
        self._aside(self._count).unlink(missing_ok=True)
        for number in range(self._count - 1, 0, -1):
            older = self._aside(number)
            if older.exists():
                older.rename(self._aside(number + 1))
        if self._count:
            self._path.rename(self._aside(1))
        else:
            self._path.unlink()
        self._expire()

    def _expire(self) -> None:
        if self._keep is None:
            return
        oldest = clock.wall() - self._keep
        for number in range(2, self._count + 1):
            older = self._aside(number)
            if older.exists() and older.stat().st_mtime < oldest:
                older.unlink()
