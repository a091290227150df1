"""What the runner knows of a client."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from tests.clients.installs import Install

__all__ = ["Client", "Command", "Prepare", "Room"]


@dataclass(frozen=True, slots=True)
class Room:
    """Where a client runs and whom it talks to. `base` has no path; `packages` is the folder of its install."""

    home: Path
    work: Path
    base: str
    packages: Path


@dataclass(frozen=True, slots=True)
class Command:
    """How it is started: `env` adds to the runner's sparse environment."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)


class Prepare(Protocol):
    """Writes the client's configuration and says how to start it."""

    def __call__(self, room: Room, /) -> Command: ...


@dataclass(frozen=True, slots=True)
class Client:
    """One client.

    surfaces: what it calls, in kvgate's names. asked_in: where that is not what an engine that copies
    the dialect is asked in. flavour: of an engine that speaks those. ways: folders in which the
    task is done, one for each way that it has of asking. edits: it writes files by itself, from text, and calls no
    tools. reports: it prints what it got, a line of JSON a way. side: how many requests beside the task it makes at
    most (titles, commit messages). seconds: that it may take. module: of an SDK that the running interpreter may have
    itself, which does where the pinned one is not installed.
    """

    name: str
    install: Install
    prepare: Prepare
    surfaces: frozenset[str]
    asked_in: frozenset[str] | None = None
    flavour: str = "vllm"
    ways: tuple[str, ...] = (".",)
    edits: bool = False
    reports: bool = False
    side: int = 0
    seconds: float = 120.0
    module: str = ""

    def packages(self) -> Path:
        """The folder that it runs from. Raises NotInstalled."""
        if self.install.there() or not self.there():
            return self.install.require()
        return Path(sys.prefix)

    def there(self) -> bool:
        """Whether it can run at all."""
        return self.install.there() or bool(self.module and find_spec(self.module))
