"""An emulated engine on loopback in real time, speaking vLLM's API and metrics."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from gateway import clock
from gateway.sim.driver import Driver
from gateway.sim.engine_model import Counters, EngineModel, Slowdown
from gateway.sim.fault import Fault
from gateway.sim.profile import EngineProfile, engine_profile
from gateway.sim.routes import make_app
from gateway.sim.service import Service

__all__ = ["EmulatedEngine", "EngineStats", "start_emulated"]

KEEP_ALIVE_S = 5.0
"""Idle connections are closed after this, as uvicorn does."""


@dataclass(frozen=True, slots=True)
class EngineStats:
    """What an engine has done so far."""

    counters: Counters
    """A copy."""
    running: int
    waiting: int
    kv_usage: float
    """Share of the KV blocks in use, 0 to 1."""
    lateness_s: float
    """The most that the machine was late for an iteration's end, seconds of real time."""


class EmulatedEngine:
    """A server on loopback; `await` it or enter it to start."""

    def __init__(self, service: Service, *, host: str, port: int, admin: bool) -> None:
        """See `start_emulated`."""
        self.service = service
        self._host = host
        self._port = port
        self._admin = admin
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None

    @property
    def url(self) -> str:
        """Base address, without a slash at the end; the port is known once the server runs."""
        return f"http://{self._host}:{self._port}"

    @property
    def stats(self) -> EngineStats:
        """A snapshot."""
        driver = self.service.driver
        engine, scheduler = driver.engine, driver.engine.scheduler
        return EngineStats(
            counters=replace(engine.counters),
            running=scheduler.running,
            waiting=scheduler.waiting,
            kv_usage=scheduler.kv_usage,
            lateness_s=driver.lateness_s,
        )

    async def start(self) -> Self:
        """Listen; without effect when running. OSError when the port is taken."""
        if self._runner is None:
            self._runner = web.AppRunner(
                make_app(self.service, self.break_down if self._admin else None),
                handler_cancellation=True,
                access_log=None,
                keepalive_timeout=KEEP_ALIVE_S,
                shutdown_timeout=1.0,
            )
            await self._runner.setup()
            await self._listen()
        return self

    async def stop(self) -> None:
        """Reset what is open and close the port; without effect when not running."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            self.service.driver.close()
            self._reset_connections(runner)
            await runner.cleanup()
            self._site = None

    async def break_down(self, fault: Fault) -> None:
        """Be ill from now on as `fault` says; `Fault()` makes well again, after a crash with an empty cache."""
        service = self.service
        service.fault = fault
        if fault.crash:
            service.driver.close()
            service.driver = Driver(EngineModel(service.profile))
        service.driver.engine.slowdown = Slowdown(decode=fault.slow_decode, prefill=fault.slow_prefill)
        service.driver.hang(fault.hang)
        if fault.crash or fault.refuse:
            await self._close_port()
        else:
            await self._listen()
        if fault.crash and self._runner is not None:
            self._reset_connections(self._runner)

    async def _listen(self) -> None:
        if self._runner is None or self._site is not None:
            return
        self._site = web.TCPSite(self._runner, self._host, self._port)
        await self._site.start()
        self._port = self._runner.addresses[0][1]

    async def _close_port(self) -> None:
        if self._site is not None:
            site, self._site = self._site, None
            await site.stop()

    @staticmethod
    def _reset_connections(runner: web.AppRunner) -> None:
        if runner.server is not None:
            for connection in list(runner.server.connections):
                if connection.transport is not None:
                    connection.transport.abort()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.start().__await__()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


def start_emulated(
    profile: str | EngineProfile,
    *,
    model: str | None = None,
    speed: float = 1.0,
    host: str = "127.0.0.1",
    port: int = 0,
    answer_tokens: int | None = None,
    max_queued_requests: int | None = None,
    admin: bool = False,
) -> EmulatedEngine:
    """An emulated engine, to be awaited (then `stop()` it) or entered with `async with`.

    `profile` is a device's name, on which `model` (default Qwen3-30B-A3B) runs, or a profile of one's own, for which
    `model` is merely the name. `speed` makes the hardware that many times faster. `answer_tokens` is the length at
    which the emulated model stops by itself; without it that depends on the prompt. `max_queued_requests` is vLLM's
    --max-num-queued-reqs: beyond it, running requests included, the answer is 503. `admin` adds POST /sim/fault.
    KeyError for an unknown name, ValueError where the model does not fit the device or `speed` is not positive.
    """
    if speed <= 0.0:
        raise ValueError("speed must be positive")
    if isinstance(profile, str):
        profile = engine_profile(profile) if model is None else engine_profile(profile, model)
    profile = profile.scaled(speed)
    service = Service(
        profile=profile,
        model=model or profile.model,
        driver=Driver(EngineModel(profile)),
        started_at=int(clock.wall()),
        answer_tokens=answer_tokens,
        max_queued_requests=max_queued_requests,
    )
    return EmulatedEngine(service, host=host, port=port, admin=admin)
