"""Who has been given how much of the fleet, in device seconds: what the shares of classes and keys come to."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["Received"]

_CLIENTS = 1024
"""Clients whose sums are kept, over all classes."""


class Received:
    """Device seconds since the start, by class and client: predicted when a request is sent, put right when it ended.

    Unlike the counters that decide turns, nothing is lifted here for having idled.
    """

    __slots__ = ("_by_class", "_by_client")

    def __init__(self) -> None:
        self._by_class: dict[str, float] = {}
        self._by_client: dict[tuple[str, str], float] = {}

    def add(self, klass: str, client: str, seconds: float) -> None:
        """Count what one of their requests takes, or (negative) did not take after all."""
        self._by_class[klass] = max(0.0, self._by_class.get(klass, 0.0) + seconds)
        key = (klass, client)
        known = self._by_client.pop(key, None)
        if known is None and len(self._by_client) >= _CLIENTS:
            del self._by_client[next(iter(self._by_client))]  # whoever was served longest ago
        self._by_client[key] = max(0.0, (known or 0.0) + seconds)

    @property
    def classes(self) -> Mapping[str, float]:
        """Device seconds by class."""
        return self._by_class

    @property
    def clients(self) -> Mapping[tuple[str, str], float]:
        """Device seconds by class and client, whoever was served last last."""
        return self._by_client
