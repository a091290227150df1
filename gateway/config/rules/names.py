"""Names that refer to each other: backends, models, routes, fallbacks, classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from gateway.config.auth import AuthSpec
from gateway.config.backends import BackendSpec
from gateway.config.catalog.book import Catalogue
from gateway.config.document import Config
from gateway.config.policy import RouteSpec
from gateway.config.problems import Path, nearest
from gateway.config.rules.findings import Findings

__all__ = ["declared_names", "names", "servers_of"]


def names(config: Config, findings: Findings, sound: frozenset[str]) -> None:
    """Every name that is used exists, and every name that is given is given once."""
    _once("backends", (backend.name for backend in config.backends), "name", findings)
    _once("backends", (_same_url(backend.url) for backend in config.backends), "url", findings)
    catalogue = config.catalogue.catalogue
    _once("models", (route.name for route in config.models), "name", findings)
    for i, backend in enumerate(config.backends):
        _device(i, backend, catalogue, findings)
        _models_of(i, backend, catalogue, findings)
    if "classes" in sound:
        _classes(config, findings)
    if {"backends", "models"} <= sound:
        for i, route in enumerate(config.models):
            _served(i, route, config, findings)
    if "models" in sound and config.models and isinstance(config.auth, AuthSpec):
        known = [route.name for route in config.models]
        for i, key in enumerate(config.auth.keys):
            for j, model in enumerate(key.models or ()):
                if model not in known:
                    hint = _did_you_mean(model, known, "models are")
                    findings.error(("auth", "keys", i, "models", j), f"`{model}` is no name of `models`", hint)


def declared_names(backend: BackendSpec) -> set[str]:
    """Names under which a backend says it serves something; empty when it leaves that to its engine."""
    return {name for model in backend.models for name in (model.id, model.served_as) if name}


def servers_of(model: str, backends: Sequence[BackendSpec]) -> list[BackendSpec] | None:
    """The backends that serve a model by the file alone; None when only an engine can tell."""
    serving = [b for b in backends if model in declared_names(b)]
    return serving if serving or all(b.models for b in backends) else None


def _same_url(url: str) -> str:
    """A URL for comparing: host in lower case, default port written out."""
    parts = urlsplit(url)
    host = "127.0.0.1" if parts.hostname in ("localhost", "::1") else parts.hostname
    return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}{parts.path}"


def _once(section: str, values: Iterable[str], key: str, findings: Findings) -> None:
    seen: dict[str, int] = {}
    for i, value in enumerate(values):
        if value in seen:
            hint = (
                "one entry an engine: two would fill the same memory twice"
                if key == "url"
                else "names tell entries apart"
            )
            findings.error((section, i, key), f"is the {key} of {section}[{seen[value]}] too", hint)
        seen.setdefault(value, i)


def _did_you_mean(word: str, known: Iterable[str], else_say: str) -> str:
    known = sorted(set(known))
    close = nearest(word, known)
    listed = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
    return f"did you mean {close}?" if close else f"{else_say}: {listed}"


def _device(i: int, backend: BackendSpec, catalogue: Catalogue, findings: Findings) -> None:
    path: Path = ("backends", i, "device")
    name = backend.device.id
    if name is not None and name not in catalogue.device_ids:
        numbers = backend.device
        if numbers.memory and numbers.bandwidth and numbers.fp16:
            return
        where = (*path, "id") if (*path, "id") in findings.source.marks else path
        close = catalogue.nearest_device(name)
        hint = f"did you mean {close}?" if close else "write numbers: {memory: 96GiB, bandwidth: 1792GB/s, fp16: 250T}"
        findings.error(where, f"`{name}` is not a device of the catalogue", hint)
    if backend.devices.count % (backend.devices.tensor_parallel or 1):
        message = (
            f"count {backend.devices.count} is not a multiple of tensor_parallel {backend.devices.tensor_parallel}"
        )
        findings.error(("backends", i, "devices"), message)


def _models_of(i: int, backend: BackendSpec, catalogue: Catalogue, findings: Findings) -> None:
    seen: dict[str, int] = {}
    for j, model in enumerate(backend.models):
        path: Path = ("backends", i, "models", j)
        for name in {model.id, model.served_as or model.id}:
            if name in seen:
                findings.error(path, f"`{name}` is served by models[{seen[name]}] of this backend too")
        seen |= dict.fromkeys({model.id, model.served_as or model.id}, j)
        if backend.location == "on-prem" and not _known(catalogue, model.id, model.served_as) and not model.kv_bytes:
            close = catalogue.nearest_model(model.id)
            hint = (
                f"did you mean {close}? " if close else ""
            ) + "Else give `kv_bytes` and `params`, or let the engine tell"
            findings.warn(path, f"`{model.id}` is not in the catalogue: its KV cache a token is assumed", hint)


def _known(catalogue: Catalogue, *names: str | None) -> bool:
    return any(name and catalogue.model(name) is not None for name in names)


def _classes(config: Config, findings: Findings) -> None:
    known = {*config.classes, "default"}
    if config.classes and not any(c.weight for c in config.classes.values()):
        findings.error(
            ("classes",), "all weights are zero, so no class has a share", "give at least one a weight over 0"
        )
    uses: list[tuple[Path, str | None]] = [
        (("models", i, "class"), route.klass) for i, route in enumerate(config.models)
    ]
    if isinstance(config.auth, AuthSpec):
        uses += [(("auth", "keys", i, "class"), key.klass) for i, key in enumerate(config.auth.keys)]
    for path, name in uses:
        if name is not None and name not in known:
            findings.error(path, f"`{name}` is no class", _did_you_mean(name, known, "classes are"))


def _served(i: int, route: RouteSpec, config: Config, findings: Findings) -> None:
    backends = config.backends
    behind = {other.name: other.serves for other in config.models}
    known = {name for backend in backends for name in declared_names(backend)}
    every: list[tuple[Path, str]] = [(("models", i, "serves"), route.serves)]
    every += [(("models", i, "fallback", j), model) for j, model in enumerate(route.fallback)]
    for path, model in every:
        servers = servers_of(model, backends)
        if servers == []:
            hint = _did_you_mean(model, known, "backends serve")
            if model in behind:
                hint = f"{model} is a name that clients use: write the model behind it" + (
                    f", {behind[model]}" if behind[model] != model else ""
                )
            findings.error(path, f"`{model}` is served by no backend", hint)
        elif servers is None and known:
            silent = ", ".join(b.name for b in backends if not b.models)
            hint = f"only the engine of {silent} can tell"
            findings.warn(path, f"`{model}` is named by no backend in this file", hint)
    for j, model in enumerate(route.fallback):
        if model in (route.serves, *route.fallback[:j]):
            findings.error(("models", i, "fallback", j), f"`{model}` is tried already before this step")
