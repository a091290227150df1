"""Limits of one client, counted here and nowhere else."""

from __future__ import annotations

__all__ = ["RunningByClient"]


class RunningByClient:
    """Requests of each client that are queued or running now.

    Nothing is charged before `enter`, and `leave` undoes it.
    """

    __slots__ = ("_running",)

    def __init__(self) -> None:
        self._running: dict[str, int] = {}

    def enter(self, client: str, limit: int | None) -> bool:
        """Count one more request of this client; False, and nothing counted, when it has `limit` already."""
        running = self._running.get(client, 0)
        if limit is not None and running >= limit:
            return False
        self._running[client] = running + 1
        return True

    def leave(self, client: str) -> None:
        """Count one request less; KeyError when the client has none."""
        left = self._running[client] - 1
        if left:
            self._running[client] = left
        else:
            del self._running[client]

    def running(self, client: str) -> int:
        """Requests of this client now."""
        return self._running.get(client, 0)
