"""The data boundary: labels of models, clearances of backends, and what leaves the house."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from gateway.config.backends import BackendSpec
from gateway.config.compile import DEFAULT_LABEL, clearance
from gateway.config.document import Config
from gateway.config.policy import RouteSpec
from gateway.config.problems import Path
from gateway.config.rules.findings import Findings
from gateway.config.rules.names import servers_of
from gateway.config.settings import is_loopback
from gateway.core.boundary import Label, within

__all__ = ["boundary", "is_hosted"]

_HOSTED = (
    "openai.com", "openai.azure.com", "anthropic.com", "googleapis.com", "openrouter.ai", "mistral.ai",
    "deepseek.com", "groq.com", "together.xyz", "together.ai", "fireworks.ai", "x.ai", "cohere.com", "cohere.ai",
    "perplexity.ai", "amazonaws.com", "azure.com", "cerebras.ai", "deepinfra.com", "novita.ai", "moonshot.ai", "z.ai",
    "huggingface.co", "nebius.com", "replicate.com",
)  # fmt: skip
"""Domains of public inference services."""


def boundary(config: Config, findings: Findings) -> None:
    """No declared step is one that the boundary would never let be taken, and what leaves the house is declared."""
    for i, backend in enumerate(config.backends):
        _backend(i, backend, findings)
    if not config.models:
        _unlabelled(config, findings)
    for i, route in enumerate(config.models):
        every: list[tuple[Path, str, str]] = [(("models", i, "serves"), route.serves, "model")]
        every += [(("models", i, "fallback", j), model, "fallback") for j, model in enumerate(route.fallback)]
        for path, model, role in every:
            _step(path, model, role, route, config, findings)


def _backend(i: int, backend: BackendSpec, findings: Findings) -> None:
    path = ("backends", i)
    host = urlsplit(backend.url).hostname or ""
    if backend.location == "off-prem":
        if backend.clearance == "restricted":
            hint = "restricted data stays in the house: lower the clearance, or say location: on-prem"
            findings.error((*path, "clearance"), "clears an off-prem backend for restricted data", hint)
        elif backend.clearance == "confidential":
            findings.warn((*path, "clearance"), "lets confidential data leave the house", "meant? then it is fine")
        if backend.url.startswith("http://") and not is_loopback(host):
            findings.warn((*path, "url"), "sends prompts and key unencrypted out of the house", "use https")
    elif is_hosted(host):
        hint = "say location: off-prem, and what it may see: clearance: internal"
        findings.error((*path, "url"), f"{host} is a public service, and the backend counts as on-prem", hint)
    elif _global(host):
        hint = "say location: off-prem if it is not in the house"
        findings.warn((*path, "url"), f"{host} is a public address, and the backend counts as on-prem", hint)


def _unlabelled(config: Config, findings: Findings) -> None:
    """Without names of its own every model is for data of the default label: who may not see that gets nothing."""
    below = [(i, each) for i, each in enumerate(config.backends) if not within(DEFAULT_LABEL, clearance(each))]
    label = DEFAULT_LABEL.name.lower()
    for i, each in below:
        cleared = clearance(each).name.lower()
        message = f"is sent nothing: it is cleared for {cleared}, and requests without a label count as {label}"
        hint = (
            f"say clearance: {label} if it may see such data, or name its models under `models:` with data: {cleared}"
        )
        tell = findings.error if len(below) == len(config.backends) else findings.warn
        tell(("backends", i), message, hint)


def is_hosted(host: str) -> bool:
    """Whether a host name belongs to a public inference service."""
    return any(host == domain or host.endswith(f".{domain}") for domain in _HOSTED)


def _global(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return False


def _step(path: Path, model: str, role: str, route: RouteSpec, config: Config, findings: Findings) -> None:
    """A step that every backend serving it is cleared too low for."""
    servers = servers_of(model, config.backends)
    label = Label.parse(route.data)
    if not servers or any(within(label, clearance(b)) for b in servers):
        return
    best = max(servers, key=clearance)
    cleared = f"{best.name} is cleared for {clearance(best).name.lower()}"
    stated = "" if ("models", path[1], "data") in findings.source.marks else ", the default,"
    hint = f"lower `data` of {route.name}, or clear {best.name} for {route.data}, or remove this {role}"
    findings.error(
        path, f"`{model}` may not see data labelled {route.data}{stated} that {route.name} carries: {cleared}", hint
    )
