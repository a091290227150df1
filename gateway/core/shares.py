"""Service received on three levels: of each class, of each client in it, of each of a client's sessions."""

from __future__ import annotations

from collections.abc import Callable

from gateway.core.fair_share import Counters
from gateway.core.flow import FlowKey

__all__ = ["Shares"]

_KEPT = 1024
"""Clients whose sessions' counters are kept."""


class Shares:
    """Counters of service: device seconds, or tokens while a model's seconds are not known.

    classes: service over the weight of the class. clients: by class, of each client. sessions: by class and client, of
    each session.
    """

    __slots__ = ("classes", "clients", "sessions")

    def __init__(self) -> None:
        self.classes = Counters()
        self.clients: dict[str, Counters] = {}
        self.sessions: dict[tuple[str, str], Counters] = {}

    def clients_of(self, klass: str) -> Counters:
        """The counters of a class's clients."""
        return self.clients.setdefault(klass, Counters())

    def sessions_of(self, klass: str, client: str, waits: Callable[[str, str], bool]) -> Counters:
        """The counters of a client's sessions. When too many are kept, those of clients are forgotten of whom nothing
        `waits` in that class."""
        counters = self.sessions.get((klass, client))
        if counters is None:
            if len(self.sessions) >= _KEPT:
                self.sessions = {each: kept for each, kept in self.sessions.items() if waits(*each)}
            counters = self.sessions[klass, client] = Counters()
        return counters

    def charge(self, key: FlowKey, service: float, weight: float, *, known: bool) -> None:
        """Count what a dispatched request takes; if it is only expected and not `known`, it is settled later."""
        self.classes.charge(key.klass, service / weight, known=known)
        self.clients[key.klass].charge(key.client, service, known=known)
        self.sessions[key.klass, key.client].charge(key.session, service, known=known)

    def settle(self, key: FlowKey, charged: float, took: float, weight: float) -> None:
        """Put right what was charged: the request has ended, and took so much."""
        self.classes.settle(key.klass, charged / weight, took / weight)
        if key.klass in self.clients:
            self.clients[key.klass].settle(key.client, charged, took)
        if (key.klass, key.client) in self.sessions:
            self.sessions[key.klass, key.client].settle(key.session, charged, took)
