"""Rules that no value breaks alone: names, boundary, formats, room, server. Each is a sentence a person understands."""

from __future__ import annotations

from gateway.config.document import Config
from gateway.config.rules.boundary import boundary
from gateway.config.rules.cache_format import cache_format
from gateway.config.rules.findings import Findings
from gateway.config.rules.names import names
from gateway.config.rules.own_entries import own_entries
from gateway.config.rules.room import room
from gateway.config.rules.server import server

__all__ = ["Findings", "judge"]


def judge(config: Config, findings: Findings, sound: frozenset[str]) -> None:
    """Add what the rules find. `sound` names the sections that were read whole: only those are judged as a fleet."""
    server(config, findings, sound)
    own_entries(config, findings)
    names(config, findings, sound)
    if {"backends", "models"} <= sound:
        boundary(config, findings)
        cache_format(config, findings)
        room(config, findings)
