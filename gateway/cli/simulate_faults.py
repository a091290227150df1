"""Faults of emulated engines as the command line writes them: `spark=slow:3@2m`."""

from __future__ import annotations

import argparse
import re

from gateway.config.sizes import Unreadable, parse_duration
from gateway.sim.engine_model import Slowdown
from gateway.sim.events import Breakdown

__all__ = ["parse_fault"]

_WRITTEN = re.compile(r"([^=@]+)=(slow:([0-9.]+)|hang|crash|dead|well)@(\S+)")


def parse_fault(text: str) -> Breakdown:
    """The state of a backend from a moment on. Raises argparse's error with the way to write it.

    slow:X takes X times as long; hang answers probes and nothing else; crash loses cache and requests and goes on; dead
    is a crash after which its port is closed; well ends any of them.
    """
    found = _WRITTEN.fullmatch(text)
    try:
        if found is None:
            raise Unreadable("is not a fault", "write it like spark=slow:3@2m, spark=hang@60s or spark=well@90s")
        at, factor = parse_duration(found[4]), float(found[3] or 1.0)
        if factor < 1.0:
            raise Unreadable("makes it no slower", "a factor over 1, like slow:3")
    except (Unreadable, ValueError) as error:
        hint = error.hint if isinstance(error, Unreadable) else "a factor is a number, like slow:3"
        raise argparse.ArgumentTypeError(f"{text!r} {error}: {hint}") from None
    what = found[2]
    return Breakdown(
        at, found[1], Slowdown(factor, factor), hang=what in ("hang", "dead"), crash=what in ("crash", "dead")
    )
