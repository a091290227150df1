"""Ports, keys and files of the process itself."""

from __future__ import annotations

from gateway.config.auth import AuthSpec
from gateway.config.document import Config
from gateway.config.rules.findings import Findings
from gateway.config.settings import host_and_port, is_loopback

__all__ = ["server"]


def server(config: Config, findings: Findings, sound: frozenset[str]) -> None:
    """Nobody listens to the world without keys; files are there; keys are not written in the file."""
    _listening(config, findings, auth_sound="auth" in sound)
    _files(config, findings)
    journal = config.telemetry.journal
    if "telemetry" in sound and journal and not journal.path.parent.is_dir():
        _absent(findings, ("telemetry", "journal", "path"), "is in a directory that does not exist")
    if isinstance(config.auth, AuthSpec):
        _keys(config.auth, findings)
    for i, backend in enumerate(config.backends):
        if backend.key and backend.key.plain and "backends" in sound:
            _plain(findings, ("backends", i, "key"), f"{backend.name.upper().replace('-', '_')}_KEY")


def _listening(config: Config, findings: Findings, *, auth_sound: bool) -> None:
    host, port = host_and_port(config.server.listen)
    admin_host, admin_port = host_and_port(config.server.admin)
    path = ("server", "listen") if ("server", "listen") in findings.source.marks else ("server",)
    if auth_sound and not is_loopback(host) and config.auth is None:
        hint = "add `auth: {keys: [...]}`; or say `auth: none` if anybody who reaches the port may ask"
        findings.error(path, "is reachable from other machines, and there is no `auth`", hint)
    if config.auth is None and auth_sound and is_loopback(host):
        findings.warn((), "there is no `auth`: anybody on this machine may ask", "fine on your own machine")
    if config.auth == "none" and not is_loopback(host):
        findings.warn(("auth",), "lets anybody who reaches the port ask", "")
    if "*" in config.server.origins and auth_sound and not isinstance(config.auth, AuthSpec):
        hint = "name the origins, or add `auth: {keys: [...]}`"
        findings.warn(("server", "origins"), "lets pages of every site ask through their visitors' browsers", hint)
    if not is_loopback(admin_host):
        hint = "keep it on 127.0.0.1, or on a network that only operators reach"
        findings.warn(("server", "admin"), "puts the admin port, which asks for no key, on the network", hint)
    if (host, port) == (admin_host, admin_port) and port:
        hint = "give it a port of its own"
        findings.error(("server", "admin"), "is the public port too: metrics and the admin API would be public", hint)


def _files(config: Config, findings: Findings) -> None:
    if config.server.tls is None:
        return
    for name, path in (("cert", config.server.tls.cert), ("key", config.server.tls.key)):
        if ("server", "tls", name) in findings.source.marks and not path.is_file():
            _absent(findings, ("server", "tls", name), "names a file that does not exist")


def _absent(findings: Findings, path: tuple[str, ...], message: str) -> None:
    if findings.lenient:
        findings.warn(path, f"{message} on this machine", "it must exist where `kvgate serve` runs")
    else:
        findings.error(path, message)


def _keys(auth: AuthSpec, findings: Findings) -> None:
    names: dict[str, int] = {}
    texts: dict[str, int] = {}
    for i, key in enumerate(auth.keys):
        path = ("auth", "keys", i)
        if key.name in names:
            findings.error((*path, "name"), f"`{key.name}` is the name of auth.keys[{names[key.name]}] too")
        names.setdefault(key.name, i)
        if key.key.missing:
            continue
        if key.key.reveal() in texts:
            hint = "give each client its own, or they can't be told apart"
            findings.error((*path, "key"), f"is the same key as that of auth.keys[{texts[key.key.reveal()]}]", hint)
        texts.setdefault(key.key.reveal(), i)
        if key.key.plain:
            _plain(findings, (*path, "key"), f"KEY_{key.name.upper().replace('-', '_')}")


def _plain(findings: Findings, path: tuple[str | int, ...], suggestion: str) -> None:
    variable = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in suggestion)
    findings.warn(path, "is a secret written in the file", f"write ${{env.{variable}}} or ${{file:/run/secrets/...}}")
