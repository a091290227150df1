"""Where the clients are installed, and how: from PyPI and npm, outside the checkout, in versions seen working.

A folder a package set, so that unlike dependencies never meet. What is there already in the right version stays.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Install", "NotInstalled", "install_folder"]


class NotInstalled(Exception):
    """A client is not there; the message says what brings it."""


def install_folder() -> Path:
    """`KVGATE_CLIENTS`, else a folder in the user's cache."""
    named = os.environ.get("KVGATE_CLIENTS")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "kvgate-clients"


@dataclass(frozen=True, slots=True)
class Install:
    """Packages that live in one folder. `registry` is "npm" or "pypi"; `probe` is a file that shows they are there."""

    name: str
    registry: str
    packages: tuple[str, ...]
    probe: str

    def folder(self) -> Path:
        """Where it is, or would be."""
        return install_folder() / self.name

    def there(self) -> bool:
        """In exactly these versions."""
        note = self.folder() / "packages.txt"
        return (self.folder() / self.probe).exists() and note.exists() and note.read_text() == self._note()

    def require(self) -> Path:
        """The folder. Raises NotInstalled when the packages are not there."""
        if not self.there():
            raise NotInstalled(f"{' '.join(self.packages)}: python -m tests.clients --install {self.name}")
        return self.folder()

    def bring(self) -> None:
        """Install, in seconds to minutes. Raises subprocess.CalledProcessError with the installer's last words."""
        if self.there():
            return
        folder = self.folder()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if self.registry == "npm":
            quiet = ("--no-fund", "--no-audit", "--no-update-notifier", "--loglevel=error")
            self._run("npm", "install", "--prefix", str(folder), *quiet, *self.packages)
        else:
            self._run(sys.executable, "-m", "venv", str(folder))
            pip = (str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check")
            self._run(*pip, *self.packages)
        (folder / "packages.txt").write_text(self._note())

    def _note(self) -> str:
        return "\n".join(self.packages) + "\n"

    @staticmethod
    def _run(*command: str) -> None:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout[-2000:])
