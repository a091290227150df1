"""The upstreams of all backends, by name: made from endpoints, kept over a reload where nothing about them changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from gateway.config.endpoint import Endpoint
from gateway.engines.registry import engine
from gateway.relay.errand import Upstream
from gateway.relay.limits import Limits
from gateway.relay.upstream import Pool
from gateway.relay.wheel import TimerWheel

__all__ = ["Switchboard"]


class Switchboard(Mapping[str, Upstream]):
    """Upstreams by backend name. One pool of connections each, so that a silent engine can use up only its own."""

    def __init__(self, wheel: TimerWheel, keepalive_s: float = 15.0, answer_bytes: int = 64 << 20) -> None:
        self._wheel = wheel
        self._answer_bytes = answer_bytes
        self._keepalive_s = keepalive_s
        self._upstreams: dict[str, Upstream] = {}
        self._endpoints: dict[str, Endpoint] = {}
        self._retired: list[Pool] = []

    def __getitem__(self, name: str) -> Upstream:
        return self._upstreams[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._upstreams)

    def __len__(self) -> int:
        return len(self._upstreams)

    def apply(self, endpoints: Iterable[Endpoint]) -> None:
        """Connect to these; one that listens elsewhere now gets a new pool, and what runs on the old one ends there.

        One that is gone stays until `forget`, for the requests that still hold a lease on it.
        """
        for endpoint in endpoints:
            old = self._endpoints.get(endpoint.name)
            pool = None
            if old is not None and (old.url, old.timeouts) == (endpoint.url, endpoint.timeouts):
                pool = self._upstreams[endpoint.name].pool
            else:
                self._retire(endpoint.name)
            self._endpoints[endpoint.name] = endpoint
            self._upstreams[endpoint.name] = self._upstream(endpoint, pool)

    def forget(self, name: str) -> None:
        """The last request on a removed backend has ended."""
        self._retire(name)
        self._upstreams.pop(name, None)
        self._endpoints.pop(name, None)

    async def close(self) -> None:
        """Close every connection, those in use too."""
        pools = [upstream.pool for upstream in self._upstreams.values()] + self._retired
        for pool in pools:
            pool.close()
        for pool in pools:
            await pool.wait_closed()

    def _upstream(self, endpoint: Endpoint, pool: Pool | None) -> Upstream:
        timeouts = endpoint.timeouts
        return Upstream(
            name=endpoint.name,
            pool=pool if pool is not None else Pool(endpoint.url, wheel=self._wheel, connect_s=timeouts.connect),
            engine=engine(endpoint.engine),
            limits=Limits(
                first_token_s=timeouts.first_token if timeouts.first_token is not None else math.inf,
                token_gap_s=timeouts.token_gap,
                connect_s=timeouts.connect,
                keepalive_s=self._keepalive_s,
                answer_bytes=self._answer_bytes,
            ),
            key=endpoint.key.reveal() if endpoint.key is not None else None,
        )

    def _retire(self, name: str) -> None:
        old = self._upstreams.get(name)
        if old is not None:
            self._retired = [pool for pool in self._retired if pool.open_connections]
            old.pool.retire()
            self._retired.append(old.pool)
