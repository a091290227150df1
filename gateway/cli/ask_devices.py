"""Ask the exporters of a file how its devices fare, once, all at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.config.backends import TelemetrySpec
from gateway.config.endpoint import Endpoint
from gateway.fleet.device_watch import DeviceWatch
from gateway.fleet.probing import Prober

__all__ = ["ask_devices"]


def ask_devices(endpoints: Sequence[Endpoint]) -> Mapping[str, Mapping[str, Any]]:
    """By the name of each backend with telemetry: what was found there, as in `device_reports` of /admin/backends."""
    wanted = {one.name: one.telemetry for one in endpoints if one.telemetry is not None}
    return asyncio.run(_ask_all(wanted)) if wanted else {}


async def _ask_all(wanted: Mapping[str, TelemetrySpec]) -> Mapping[str, Mapping[str, Any]]:
    prober = Prober()
    watches = [DeviceWatch(name, spec, prober) for name, spec in wanted.items()]
    try:
        await asyncio.gather(*(watch.look() for watch in watches))
    finally:
        await prober.close()
    return {
        name: (watch.reading.as_json() if watch.reading is not None else {}) | {"trouble": watch.trouble}
        for name, watch in zip(wanted, watches, strict=True)
    }
