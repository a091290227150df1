"""Requests to engines and their answers on the way to clients; see README.md beside this."""

from __future__ import annotations

from gateway.relay.call import Call
from gateway.relay.collect import Whole, relay_whole
from gateway.relay.downstream import Downstream
from gateway.relay.limits import Hooks, Limits
from gateway.relay.meter import Meter
from gateway.relay.passthrough import relay_bytes
from gateway.relay.stream import relay_stream
from gateway.relay.upstream import Pool
from gateway.relay.wheel import Timer, TimerWheel

__all__ = [
    "Call",
    "Downstream",
    "Hooks",
    "Limits",
    "Meter",
    "Pool",
    "Timer",
    "TimerWheel",
    "Whole",
    "relay_bytes",
    "relay_stream",
    "relay_whole",
]
