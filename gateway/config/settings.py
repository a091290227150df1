"""What is read once, at start: where to listen, how much to accept, where to write."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from gateway.config.sizes import Bytes, Duration, Unreadable, Whole
from gateway.config.spec import Address, FilePath, Spec

__all__ = [
    "Audit",
    "Journal",
    "Learned",
    "Log",
    "Server",
    "ServerLimits",
    "Settings",
    "State",
    "Telemetry",
    "Tls",
    "host_and_port",
    "is_loopback",
]


def host_and_port(address: str) -> tuple[str, int]:
    """The host, without brackets, and the port of an address that was checked."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that host name or IP address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".").lower() == "localhost"


class Tls(Spec):
    """HTTPS on the public port."""

    cert: FilePath
    """PEM file with the certificate chain."""
    key: FilePath
    """PEM file with the private key, readable by this user alone."""


class ServerLimits(Spec):
    """What one client, and all together, may send."""

    body: Annotated[Bytes, Field(gt=0)] = 64 * 1024**2
    """Largest request body; above it the answer is 413."""
    header: Annotated[Bytes, Field(ge=1024)] = 32 * 1024
    """Largest header line of a request."""
    body_read: Annotated[Duration, Field(gt=0)] = 60.0
    """How long a body may take to arrive; above it the answer is 408."""
    connections: Annotated[Whole, Field(gt=0)] = 4096
    """Open client connections."""
    memory: Annotated[Bytes, Field(ge=16 * 1024**2)] = 2 * 1024**3
    """Bytes of request bodies and whole answers held at once, queue included, with their translations and the work on
    them. Bodies over 1 MiB wait for room until `body_read`, then the answer is 503; one at a time is always served."""
    answer: Annotated[Bytes, Field(ge=1024**2)] = 64 * 1024**2
    """Largest answer, as the engine sends it, that is held whole: for a client that asked for no stream. Above it the
    client gets 502. What passes by as it comes, like streams and embeddings, has no limit."""


def _one_worker(workers: int) -> int:
    if workers != 1:
        raise Unreadable("asks for several processes, and this version runs as one", "leave it out, or write 1")
    return workers


def _origin(text: str) -> str:
    scheme, mark, authority = text.partition("://")
    if text != "*" and (scheme not in ("http", "https") or not mark or not authority or "/" in authority):
        raise Unreadable(
            "is not an origin", "write it as browsers do, without a path: https://chat.example.org, or '*'"
        )
    return text


Origin = Annotated[
    str, StringConstraints(max_length=300), AfterValidator(_origin), Field(examples=["https://a.example"])
]


class Server(Spec):
    """Ports and limits of this process."""

    listen: Address = "127.0.0.1:8080"
    """HOST:PORT that clients use. Beyond loopback it needs `auth`."""
    admin: Address = "127.0.0.1:9090"
    """HOST:PORT of metrics, health, dashboard and admin API. It asks for no key: keep it on loopback."""
    tls: Tls | None = None
    """HTTPS on the public port; without it kvgate speaks plain HTTP."""
    keepalive: Annotated[Duration, Field(ge=0.1)] = 15.0
    """Silence after which the client of a stream gets a comment, so that neither it nor a proxy before it gives up. In
    the queue it begins after twice as long: with it the status is 200, and a refusal can only come as an event."""
    workers: Annotated[Whole, AfterValidator(_one_worker)] = 1
    """Processes; 1 in this version."""
    limits: ServerLimits = ServerLimits()
    """What clients may send."""
    origins: tuple[Origin, ...] = ()
    """Web pages of these origins may use the public port from a browser (CORS); none by default, "*" for all."""
    drain: Annotated[Duration, Field(ge=0)] = 120.0
    """How long running requests may go on after a stop was asked for."""


class State(Spec):
    """Where reservations are kept."""

    type: Literal["memory"] = "memory"
    """In this process."""


class Journal(Spec):
    """One JSON object a decision, without prompt text."""

    path: FilePath
    """File to append to."""
    size: Annotated[Bytes, Field(ge=65536)] = 64 * 1024**2
    """A file of this size is closed and a new one begun."""
    keep: Annotated[Whole, Field(ge=1)] = 8
    """How many files are kept."""


class Audit(Spec):
    """A line for each request that was sent off premises, and for each that its label kept from being sent there."""

    path: FilePath
    """File to append to."""
    size: Annotated[Bytes, Field(ge=65536)] = 64 * 1024**2
    """A file of this size is closed and a new one begun."""
    keep: Annotated[Whole, Field(ge=1)] = 64
    """How many files are kept."""


class Recording(Spec):
    """All that decisions rest on, so that they can be made again; without prompt text. 2 to 3 kB a request."""

    path: FilePath
    """File to append to."""
    size: Annotated[Bytes, Field(ge=65536)] = 256 * 1024**2
    """A file of this size is closed and a new one begun."""
    keep: Annotated[Whole, Field(ge=1)] = 4
    """How many files are kept."""


class Learned(Spec):
    """What answers taught (their lengths, speeds, trust in caches), kept over restarts; without any text of theirs."""

    path: FilePath
    """File to keep it in; its directory must be writable, since the file is replaced as a whole."""
    every: Annotated[Duration, Field(ge=1)] = 60.0
    """How often it is written, beside at the end."""


class Log(Spec):
    """The program's own log, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least serious level that is written."""
    format: Literal["json", "text"] = "json"
    """One JSON object a line, or text for a person."""


class Telemetry(Spec):
    """What is written down about requests."""

    journal: Journal | None = None
    """The decision journal that `kvgate explain` reads; none by default."""
    audit: Audit | None = None
    """Who left the premises and who was kept from it; none by default."""
    recording: Recording | None = None
    """What `kvgate replay` reads; none by default."""
    prompts: Literal["never"] = "never"
    """Prompt text is never written; there is no other choice."""
    log: Log = Log()
    """The program's log."""


class Settings(Spec):
    """The sections that only a restart changes."""

    server: Server = Server()
    """Ports and limits; read once, at start."""
    state: State = State()
    """Where reservations are kept; read once, at start."""
    learned: Learned | None = None
    """Where to keep what answers taught over restarts; by default every start learns anew. Read once, at start."""
    telemetry: Telemetry = Telemetry()
    """Log and journal; read once, at start."""
