"""Ask one engine a set of questions over HTTP and hand back what it said; reading the answers is the adapter's work."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import aiohttp

from gateway.engines.adapter import Answer, Probe

__all__ = ["ProbeFailed", "Prober", "Target"]

ANSWER_LIMIT = 4 << 20
"""Bytes of one probe's answer; a metrics page is 70 kB."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where an engine listens, and the header with the key that it wants; the key never shows in a repr."""

    name: str
    url: str
    credential: tuple[str, str] | None = None

    def __repr__(self) -> str:
        return f"Target({self.name})"


class ProbeFailed(Exception):
    """The engine did not answer. `refused` tells a closed port from silence."""

    def __init__(self, message: str, *, refused: bool) -> None:
        super().__init__(message)
        self.refused = refused


class Prober:
    """One HTTP session for all probes.

    Kept apart from the relay's connections so that a hung probe costs no request.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, target: Target, probes: Iterable[Probe], timeout: float) -> Mapping[str, Answer]:
        """Return the answers by the probes' keys.

        Any HTTP answer counts; raises ProbeFailed when none came within `timeout` seconds.
        """
        headers = {"Accept-Encoding": "identity"}
        if target.credential is not None:
            name, value = target.credential
            headers[name] = value
        answers: dict[str, Answer] = {}
        for probe in probes:
            answers[probe.key] = await self._one(target, probe, headers, timeout)
        return answers

    async def _one(self, target: Target, probe: Probe, headers: Mapping[str, str], timeout: float) -> Answer:
        url = target.url.rstrip("/") + probe.path
        headers = {**headers, **dict(probe.headers)}
        if probe.body:
            headers["Content-Type"] = "application/json"
        try:
            async with (
                asyncio.timeout(timeout),
                self._open().request(
                    probe.method, url, headers=headers, data=probe.body or None, allow_redirects=False
                ) as reply,
            ):
                body = await _bounded(reply)
                return Answer(reply.status, {k.lower(): v for k, v in reply.headers.items()}, body)
        except TimeoutError:
            raise ProbeFailed(f"no answer within {timeout:g} s", refused=False) from None
        except (aiohttp.ClientConnectorError, ConnectionRefusedError) as error:
            raise ProbeFailed(_plain(error), refused=True) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ProbeFailed(_plain(error), refused=isinstance(error, aiohttp.ServerDisconnectedError)) from None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            # Fresh connections: an engine's idle limit (5 s) is about the probe interval, and a reuse race would look
            # like a failure.
            connector = aiohttp.TCPConnector(limit=0, force_close=True)
            self._session = aiohttp.ClientSession(connector=connector, auto_decompress=True, trust_env=False)
        return self._session

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()


async def _bounded(reply: aiohttp.ClientResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in reply.content.iter_any():
        size += len(part)
        if size > ANSWER_LIMIT:
            raise ValueError(f"answer over {ANSWER_LIMIT} bytes")
        parts.append(part)
    return b"".join(parts)


_WORDS: tuple[tuple[type[BaseException], str], ...] = (
    (aiohttp.ClientConnectorDNSError, "its host name is not known"),
    (aiohttp.ClientConnectorCertificateError, "its certificate is not trusted"),
    (aiohttp.ClientSSLError, "TLS can't be agreed upon"),
    (TimeoutError, "no answer in time"),
    (aiohttp.ServerDisconnectedError, "it closed the connection"),
    (aiohttp.ClientConnectionError, "no connection"),
    (aiohttp.ClientPayloadError, "its answer was cut"),
    (aiohttp.ClientResponseError, "its answer is no HTTP"),
)
"""The first that fits, for errors of which the system has no name."""


def _plain(error: BaseException) -> str:
    """Name an error without the URL that it may hold."""
    os_error = getattr(error, "os_error", error)
    number = getattr(os_error, "errno", None)
    # Not the error's own text: it may name the address.
    if isinstance(number, int) and number > 0:
        return os.strerror(number)
    return next((words for kind, words in _WORDS if isinstance(error, kind)), type(error).__name__)
