"""Asks exporters how the devices of one backend fare, every ten seconds, beside and apart from the engine's probes."""

from __future__ import annotations

import asyncio
import logging
from urllib.parse import urlsplit

from gateway import clock
from gateway.config.backends import TelemetrySpec
from gateway.core.health.device_reading import DeviceReading
from gateway.engines.adapter import Probe
from gateway.engines.device_pages import DevicePage, page_of, reading_of
from gateway.fleet.background import Background
from gateway.fleet.probing import ProbeFailed, Prober, Target

__all__ = ["DeviceWatch"]

log = logging.getLogger("kvgate.fleet")

INTERVAL = 10.0
_TIMEOUT = 4.0
_FAULT_S = 600.0
"""Seconds for which a card's last fault counts after it was first seen."""


class DeviceWatch:
    """One backend's devices. `reading` is the last one; it says of itself when it was made."""

    def __init__(self, backend: str, spec: TelemetrySpec, prober: Prober) -> None:
        self.spec = spec
        self.reading: DeviceReading | None = None
        self.trouble: str | None = None
        """Why the last look told nothing, by the kind of exporter."""
        self._backend = backend
        self._prober = prober
        self._best_links: dict[str, float] = {}
        self._last_xids: dict[str, int] | None = None
        self._faults: dict[int, float] = {}
        self._task = Background()

    def start(self) -> None:
        """Begin."""
        self._task.start(self._run(), f"devices of {self._backend}")

    async def stop(self) -> None:
        """End; returns when nothing of it runs any more."""
        await self._task.stop()

    async def _run(self) -> None:
        while True:
            before = self.trouble
            await self.look()
            self._tell(before)
            await asyncio.sleep(INTERVAL)

    async def look(self) -> None:
        """One round over all exporters; those that don't answer are left out."""
        pages, troubles = [], []
        for kind, url in self.spec.addresses():
            parts = urlsplit(url)
            key = self._key() if kind == "agent" else None
            credential = ("Authorization", f"Bearer {key}") if key else None
            target = Target(self._backend, f"{parts.scheme}://{parts.netloc}", credential)
            probe = Probe("GET", parts.path or "/metrics")
            try:
                answer = (await self._prober.ask(target, (probe,), _TIMEOUT))[probe.key]
            except ProbeFailed as error:
                troubles.append(f"{kind}: {error}")
                continue
            if answer.status == 200:
                pages.append(answer.body)
            else:
                troubles.append(f"{kind}: status {answer.status}")
        try:
            page = await asyncio.to_thread(page_of, pages, self.spec.wanted())
        except (ValueError, OverflowError):
            self.trouble = "its page can't be read"
            return
        for link, speed in page.links.items():
            self._best_links[link] = max(speed, self._best_links.get(link, 0.0))
        troubles += [f"agent: {trouble}" for trouble in page.troubles]
        now = clock.monotonic()
        self._add_new_faults(page, now)
        reading = reading_of(page, self._best_links, now)
        if reading is not None:
            self.reading = reading
        elif pages:
            troubles.append("nothing known on the page" + (" for these labels" if self.spec.labels else ""))
        self.trouble = "; ".join(troubles) or None

    def _key(self) -> str | None:
        key = self.spec.key
        return key.reveal() if key is not None and not key.missing else None

    def _add_new_faults(self, page: DevicePage, now: float) -> None:
        """A card's last fault may be weeks old: it counts if it came while this looked."""
        if page.last_xids:
            before = self._last_xids
            if before is not None:
                self._faults |= {xid: now for card, xid in page.last_xids.items() if xid not in (0, before.get(card))}
            self._last_xids = (before or {}) | page.last_xids
        page.xids |= {xid for xid, at in self._faults.items() if now - at < _FAULT_S}

    def _tell(self, before: str | None) -> None:
        if self.trouble == before:
            return
        if self.trouble is None:
            log.info("backend %s: its device tells how it fares", self._backend)
        else:
            log.warning("backend %s: device telemetry: %s", self._backend, self.trouble)
