"""The composition root: everything is made here, from one loaded file, and taken apart here."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from ssl import SSLContext
from typing import Any

from aiohttp import web

from gateway import clock
from gateway.apart import Apart
from gateway.config.compile import compile_policy
from gateway.config.endpoint import endpoints
from gateway.config.load import Loaded
from gateway.config.mismatch import worst
from gateway.config.settings import host_and_port
from gateway.config.tokenizers import tokenizer_files
from gateway.core.experience import Experience
from gateway.core.plan import Plan
from gateway.dispatcher import Dispatcher
from gateway.edge.admin import AdminPort
from gateway.edge.allocator import give_back_large
from gateway.edge.auth import Keyring
from gateway.edge.backend_view import backend_rows, waiting_for
from gateway.edge.chronicle import Chronicle
from gateway.edge.cors import Cors
from gateway.edge.fleet_view import model_entry
from gateway.edge.handler import Handler
from gateway.edge.keys import keys_of
from gateway.edge.limits import EdgeLimits
from gateway.edge.public import Public
from gateway.edge.queue_view import LISTED, queue_document
from gateway.edge.remembering import Remembering
from gateway.edge.server import EdgeServer
from gateway.edge.session_view import diverging_rows
from gateway.edge.tls import server_context
from gateway.errors import ConfigError
from gateway.fleet.leases import Leases
from gateway.fleet.roster import Roster
from gateway.fleet.watch import Watch
from gateway.pipeline import Pipeline
from gateway.relay.downstream import Downstream
from gateway.relay.switchboard import Switchboard
from gateway.relay.wheel import TimerWheel
from gateway.state.memory_store import MemoryStore
from gateway.telemetry.audit import Audit
from gateway.telemetry.gauges import GaugeReading
from gateway.telemetry.journal import Journal
from gateway.telemetry.log import AccessLog, Log
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.recording import Recording
from gateway.telemetry.rotating_file import RotatingFile
from gateway.tokens.describe import route_of, visible
from gateway.tokens.measure import Measurer
from gateway.wire.inbound import Client, Inbound
from gateway.wire.models import ModelEntry

__all__ = ["Application"]

log = logging.getLogger("kvgate")


class Application:
    """One gateway process. Implements `edge.public.Gateway` and `edge.admin.Admin` over the parts it is made of.

    `reread` reads the configuration again for a reload; it may raise ConfigError.
    """

    def __init__(self, loaded: Loaded, reread: Callable[[], Loaded], *, log: Log) -> None:
        self._loaded = loaded
        self._reread = reread
        self._log = log
        self._created = int(clock.wall())
        self._version = 1
        self._stale = False
        self._draining = False
        self._closed = False
        self._reloading = asyncio.Lock()
        self._known: tuple[frozenset[str], frozenset[str]] | None = None
        settings = loaded.settings
        plan = compile_policy(loaded.policy, self._version)
        journal = settings.telemetry.journal
        sink = RotatingFile(journal.path, size=journal.size, count=journal.keep) if journal is not None else None
        self.journal = Journal(sink=sink)
        self.metrics = Metrics(self._gauges)
        self.roster = Roster()
        audit = settings.telemetry.audit
        self.audit: Audit | None = None
        if audit is not None:
            self.audit = Audit(RotatingFile(audit.path, size=audit.size, count=audit.keep), self.roster.off_premises)
        self.chronicle = Chronicle(self.metrics, self.journal, self.audit, lambda: self.roster.wrong)
        self.leases = Leases(plan, roster=self.roster, store=MemoryStore(), experience=Experience())
        kept = settings.learned
        experience = self.leases.experience
        self.remembering = Remembering(kept.path, experience, kept.every) if kept is not None else None
        recording = settings.telemetry.recording
        self.recording: Recording | None = None
        if recording is not None:
            self.recording = Recording(RotatingFile(recording.path, size=recording.size, count=recording.keep))
        self.dispatcher = Dispatcher(plan, leases=self.leases, observer=self.chronicle, recorder=self.recording)
        self.watch = Watch(
            self.roster,
            totals=self.leases.totals,
            changed=self._fleet_changed,
            restarted=self.leases.restarted,
            observed=self.leases.observed,
            blocks=self.leases.blocks_told,
            interval=loaded.policy.health.probe,
            canary=loaded.policy.health.canary,
        )
        self.wheel = TimerWheel()
        keepalive = settings.server.keepalive
        self.switchboard = Switchboard(self.wheel, keepalive, settings.server.limits.answer)
        self.apart = Apart()
        self.measurer = Measurer(apart=self.apart)
        self.pipeline = Pipeline(
            measurer=self.measurer,
            dispatcher=self.dispatcher,
            upstreams=self.switchboard,
            chronicle=self.chronicle,
            wheel=self.wheel,
            apart=self.apart,
            keepalive_s=keepalive,
        )
        self.pipeline.counts.note = self.metrics.counted
        if self.audit is not None:
            self.pipeline.counts.shown = self.audit.counted
        self.leases.look_at, self.leases.sample_in = self.watch.look_now, self.watch.sample_in
        self.leases.drained = self._drained
        limits = settings.server.limits
        self.limits = EdgeLimits(
            body=limits.body,
            header=limits.header,
            body_read=limits.body_read,
            connections=limits.connections,
            memory=limits.memory,
        )
        cors = Cors(settings.server.origins)
        self.public = Public(self, Keyring(keys_of(loaded.policy)), self.limits, cors)
        self.handler = Handler(self.public, access=AccessLog(log), cors=cors)
        self.server = EdgeServer(self.handler, self.limits, on_parser_error=self.handler.refused_by_parser)
        self.admin_server = EdgeServer(Handler(AdminPort(self, self.metrics)), EdgeLimits(connections=256))
        self.address = settings.server.listen
        """HOST:PORT of the public port; where the file asks for port 0, the one that was given once it listens."""
        self.admin_address = settings.server.admin
        self._runners: list[web.ServerRunner] = []
        self._public_site: web.TCPSite | None = None

    # --- life

    async def start(self) -> None:
        """Dispatch, watch the fleet, then listen. Raises ConfigError when a port can't be had."""
        give_back_large()
        if self.remembering is not None:
            await self.remembering.start()
        self.dispatcher.start()
        await self._apply(self._loaded, self.dispatcher.plan)
        settings = self._loaded.settings.server
        tls = server_context(settings.tls) if settings.tls is not None else None
        _, self.admin_address = await self._listen(self.admin_server, settings.admin, None)
        self._public_site, self.address = await self._listen(self.server, settings.listen, tls)
        log.info("listening on %s, admin port on %s", self.address, self.admin_address)

    async def stop_accepting(self) -> None:
        """Close the public port; open connections finish what they are at."""
        if self._public_site is not None:
            await self._public_site.stop()
            self._public_site = None
        self.server.close_idle()

    async def close(self) -> None:
        """Take everything apart; what still runs is cut. A second call does nothing."""
        if self._closed:
            return
        self._closed = self._draining = True
        await self.stop_accepting()
        await self.watch.stop()
        await self.dispatcher.stop()
        for runner in self._runners:
            await runner.cleanup()
        await self.pipeline.close()
        await self.switchboard.close()
        self.wheel.close()
        self.measurer.close()
        self.apart.close()
        if self.remembering is not None:
            await self.remembering.stop()
        await asyncio.to_thread(self.journal.close)
        if self.audit is not None:
            await asyncio.to_thread(self.audit.close)
        if self.recording is not None:
            await asyncio.to_thread(self.recording.close)

    def not_ready(self) -> None:
        """From here on readiness says no."""
        self._draining = True

    async def _listen(self, server: EdgeServer, address: str, tls: SSLContext | None) -> tuple[web.TCPSite, str]:
        host, port = host_and_port(address)
        runner = web.ServerRunner(server, handle_signals=False)
        await runner.setup()
        self._runners.append(runner)
        site = web.TCPSite(runner, host, port, backlog=1024, ssl_context=tls, reuse_address=True)
        try:
            await site.start()
        except OSError as error:
            why = os.strerror(error.errno).lower() if error.errno else str(error)
            raise ConfigError(f"can't listen on {address}: {why}") from None
        return site, f"{address.rpartition(':')[0]}:{runner.addresses[0][1]}"

    # --- the public port

    async def serve(self, inbound: Inbound, down: Downstream) -> None:
        """Answer one generation request."""
        await self.pipeline.serve(inbound, down)

    async def stored(self, client: Client, method: str, answer: str, action: str, down: Downstream) -> None:
        """Fetch, cancel or delete an answer that a backend keeps."""
        await self.pipeline.stored.relay(client.name, method, answer, action, down)

    def models(self, client: Client) -> list[ModelEntry]:
        """The models that this client may use."""
        plan, snapshot = self.dispatcher.plan, self.leases.snapshot()
        return [model_entry(name, plan, snapshot, self._created, client) for name in visible(client, plan, snapshot)]

    def model(self, client: Client, model: str) -> ModelEntry:
        """One of them; raises UnknownModel or Forbidden."""
        plan, snapshot = self.dispatcher.plan, self.leases.snapshot()
        route = route_of(model, client, plan, snapshot)
        return model_entry(route.name, plan, snapshot, self._created, client)

    def ready(self) -> bool:
        """Configuration is loaded and the process is not going away; says nothing about backends."""
        return not self._draining

    # --- the admin port

    async def reload(self) -> dict[str, Any]:
        """Read the file again and apply all of it, or nothing; raises ConfigError."""
        async with self._reloading:
            try:
                loaded = await asyncio.to_thread(self._reread)
                keyring = Keyring(keys_of(loaded.policy))
                self._version += 1
                # In a thread too: it may read the catalogue's entry of a device for the first time.
                plan = await asyncio.to_thread(compile_policy, loaded.policy, self._version)
            except ConfigError as error:
                self._stale = True
                log.error("reload refused: %s", error.message)
                raise
            self._stale = False
            self._loaded = loaded
            self.public.keyring = keyring
            await self._apply(loaded, plan)
            log.info("reloaded: version %d, %d backends", plan.version, len(plan.backends))
            return {"version": plan.version, "backends": [backend.name for backend in plan.backends]}

    def backends(self) -> list[dict[str, Any]]:
        """Every backend as it stands now."""
        waiters = self.dispatcher.in_order(LISTED)
        return backend_rows(self.leases.snapshot(), self.leases, waiting_for(waiters))

    def drain(self, backend: str, on: bool) -> dict[str, Any] | None:
        """Keep a backend from new requests, or let it have them again; its row, None where there is none."""
        if not self.roster.cordon(backend, on):
            return None
        log.warning("backend %s: %s", backend, "kept from new requests by hand" if on else "gets requests again")
        self.leases.changed()
        return next((row for row in self.backends() if row["name"] == backend), None)

    def queue(self) -> dict[str, Any]:
        """What waits for each model, who waits and why, and who has been given how much."""
        snapshot, plan, dispatcher = self.leases.snapshot(), self.dispatcher.plan, self.dispatcher
        queued, waiters = dispatcher.queued(snapshot), dispatcher.in_order(LISTED)
        gate = self.leases.quotas.gate()
        return queue_document(
            queued,
            waiters,
            dispatcher.received.clients,
            plan,
            self.leases.open,
            snapshot,
            lambda request: gate.short(request) is not None,
        ) | {"diverging": diverging_rows(self.leases.experience.sessions)}

    def keys(self) -> list[dict[str, Any]]:
        """Every configured client: what it runs, and what is left of its limits."""
        return self.leases.quotas.rows()

    def decision(self, request_id: str) -> dict[str, Any] | None:
        """The journal's record of a request."""
        return self.journal.record(request_id)

    # --- inside

    async def _apply(self, loaded: Loaded, plan: Plan) -> None:
        found = endpoints(loaded.policy)
        self._redact(loaded)
        self.pipeline.counts.local.apply(tokenizer_files(loaded.policy))
        self.switchboard.apply(found.values())
        fresh = self.roster.apply(plan, found)
        self.watch.interval = loaded.policy.health.probe
        self.watch.canary = loaded.policy.health.canary
        self.dispatcher.replan(plan)
        await self.watch.apply(fresh)
        self._know_names()

    def _redact(self, loaded: Loaded) -> None:
        """Whatever happens, these never show in a log line."""
        keys = [spec.key.reveal() for spec in loaded.policy.backends if spec.key is not None]
        self._log.redactor.replace([*keys, *(key.secret for key in keys_of(loaded.policy))])

    def _fleet_changed(self) -> None:
        self._know_names()
        self.dispatcher.fleet_changed()

    def _know_names(self) -> None:
        """Labels come from configured and discovered names only."""
        members = tuple(self.roster)
        names = set(self.dispatcher.plan.routes)
        for member in members:
            for offer in member.offers:
                names.update((offer.model, offer.served_as, *offer.aliases))
        known = (frozenset(names), frozenset(member.backend.name for member in members))
        if known != self._known:
            self._known = known
            self.metrics.know(*known)

    def _drained(self, name: str) -> None:
        self.switchboard.forget(name)
        self._know_names()

    def _mismatches(self) -> dict[str, float]:
        found = ((member.backend.name, worst(member.mismatches)) for member in self.roster)
        return {name: largest.ratio for name, largest in found if largest is not None}

    def _gauges(self) -> GaugeReading:
        views = self.leases.snapshot().views
        models = dict.fromkeys(self.dispatcher.plan.routes, 0)
        for view in views:
            if not self.dispatcher.plan.routes:
                models.update(dict.fromkeys((offer.served_as for offer in view.offers), 0))
        observed = {member.backend.name: member.observer for member in self.roster}
        return GaugeReading(
            running={view.name: view.running for view in views},
            queued=models | self.dispatcher.waiting(),
            reserved={view.name: view.reserved for view in views},
            pool={view.name: view.pool for view in views},
            states={view.name: view.health for view in views},
            mismatch=self._mismatches(),
            load_known={view.name: self.roster.tells_load(view.name, clock.monotonic()) for view in views},
            causes={member.backend.name: member.condition.verdict.cause for member in self.roster},
            headroom={view.name: view.headroom for view in views},
            foreign={view.name: view.foreign for view in views},
            waiting_inside={name: seen.waits_inside(clock.monotonic()) for name, seen in observed.items()},
            preemptions={name: seen.preemptions for name, seen in observed.items()},
            limits={view.name: (view.slots, str(view.limited_by)) for view in views},
            config_stale=self._stale,
            lost={
                "log": self._log.dropped,
                "journal": self.journal.dropped,
                "audit": self.audit.dropped if self.audit is not None else 0,
                "recording": self.recording.dropped if self.recording is not None else 0,
            },
            quotas=self.leases.quotas.gauges(),
        )
