"""Room: context caps that some backend holds, weights and KV cache that fit memory; judged where sizes are known."""

from __future__ import annotations

from gateway.config.backends import BackendSpec
from gateway.config.capacity import Capacity, capacity, kv_pool_bytes
from gateway.config.compile import backend as core_backend
from gateway.config.document import Config
from gateway.config.endpoint import endpoint
from gateway.config.offers import Serving, serving
from gateway.config.policy import RouteSpec
from gateway.config.problems import Path
from gateway.config.rules.findings import Findings
from gateway.config.rules.names import servers_of
from gateway.config.sizes import PoolSize
from gateway.core.backend import Backend

__all__ = ["room", "size_text"]

_ONLY_ASSUMED = frozenset({"assumed"})


def size_text(size: float) -> str:
    """Bytes as GiB or MiB, for a sentence."""
    return f"{size / 1024**3:.1f} GiB" if size >= 1024**3 else f"{size / 1024**2:.0f} MiB"


def room(config: Config, findings: Findings) -> None:
    """What is declared fits where it is declared to be."""
    catalogue = config.catalogue.catalogue
    held: dict[str, tuple[tuple[Serving, ...], Capacity]] = {}
    for i, spec in enumerate(config.backends):
        known, address = core_backend(spec, catalogue), endpoint(spec, catalogue)
        served = serving(known, address)
        found = capacity(known, address, served)
        held[spec.name] = served, found
        if known.device.memory and served:
            _memory(("backends", i), spec, known, served, found, findings)
    for i, route in enumerate(config.models):
        _cap(("models", i, "context"), route, config, held, findings)


def _memory(
    path: Path,
    spec: BackendSpec,
    known: Backend,
    served: tuple[Serving, ...],
    found: Capacity,
    findings: Findings,
) -> None:
    device = known.device
    usable = int(device.memory * device.budget)
    guessed = any(dict(one.offer.sources).get("weights") == "assumed" for one in served)
    if any(one.weights_bytes == 0 for one in served):
        return
    left = kv_pool_bytes(known, found.weights_bytes)
    devices = f"{device.count} x {device.id}" if device.count > 1 else device.id
    if left <= 0:
        message = f"weights take {size_text(found.weights_bytes)}, and {devices} leaves engines {size_text(usable)}"
        hint = "name the number format with `weights:`, or the number of devices with `devices: {count: N}`"
        (findings.warn if guessed or spec.engine == "llama.cpp" else findings.error)((*path, "models"), message, hint)
    elif spec.kv_pool != PoolSize() and found.pool_bytes > left:
        message = (
            f"weights ({size_text(found.weights_bytes)}) and KV cache ({size_text(found.pool_bytes)}) take more "
            f"than the {size_text(usable)} that {devices} leaves engines"
        )
        hint = f"a pool of up to {size_text(left)} fits"
        (findings.warn if guessed else findings.error)((*path, "kv_pool"), message, hint)
    _declared_contexts(path, spec, served, found, findings)


def _declared_contexts(
    path: Path, spec: BackendSpec, served: tuple[Serving, ...], found: Capacity, findings: Findings
) -> None:
    for j, one in enumerate(served):
        context = spec.models[j].context
        if context and 0 < found.pool_tokens < context and _is_known(one, found):
            message = f"is more than the KV cache holds: {found.pool_tokens:,} tokens ({dict(found.sources)['pool']})"
            findings.warn((*path, "models", j, "context"), message, "requests over that are refused")


def _is_known(one: Serving, found: Capacity) -> bool:
    if dict(found.sources)["pool"] == "declared":
        return True
    return not _ONLY_ASSUMED & {dict(one.offer.sources).get(fact, "") for fact in ("kv", "weights")}


def _cap(
    path: Path,
    route: RouteSpec,
    config: Config,
    held: dict[str, tuple[tuple[Serving, ...], Capacity]],
    findings: Findings,
) -> None:
    """A cap over every window, and a cap over every pool."""
    servers = servers_of(route.serves, config.backends)
    if not servers or not isinstance(route.context, int):
        return
    windows, pools = {}, {}
    for spec in servers:
        served, found = held[spec.name]
        one = next(s for s in served if s.offer.answers_to(route.serves))
        window = dict(one.offer.sources)["window"]
        windows[spec.name] = one.offer.window if window == "declared" else None
        pools[spec.name] = found.pool_tokens if found.pool_tokens and _is_known(one, found) else None
    widest = max(windows, key=lambda name: windows[name] or 0)
    if None not in windows.values() and (windows[widest] or 0) < route.context:
        hint = f"the widest is {windows[widest]:,} on {widest}"
        findings.error(path, f"caps {route.name} at {route.context:,} tokens, and no backend holds so many", hint)
        return
    largest = max(pools, key=lambda name: pools[name] or 0)
    if None not in pools.values() and (pools[largest] or 0) < route.context:
        hint = f"the largest holds {pools[largest]:,} tokens, on {largest}: lower the cap or enlarge the pool"
        message = f"caps {route.name} at {route.context:,} tokens, and no KV cache holds one such request"
        findings.error(path, message, hint)
