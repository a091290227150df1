"""Room: context caps that some backend holds, weights and KV cache that fit memory; judged where sizes are known."""

from __future__ import annotations

from gateway.config.backends import BackendSpec
from gateway.config.capacity import Capacity, capacity, kv_pool_bytes
from gateway.config.compile import backend as core_backend
from gateway.config.document import Config
from gateway.config.endpoint import endpoint
from gateway.config.memory import weight_copies
from gateway.config.offers import Serving, serving
from gateway.config.policy import RouteSpec
from gateway.config.problems import Path
from gateway.config.rules.findings import Findings
from gateway.config.rules.names import servers_of
from gateway.config.sizes import PoolSize
from gateway.config.tensor_parallel import SPLITS_LAYERS
from gateway.core.backend import Backend
from gateway.core.kv.engine_limits import refused_split

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
        _parallel(("backends", i, "devices"), spec, known, served, findings)
        if known.device.memory and served:
            _memory(("backends", i), spec, known, served, found, findings)
    for i, route in enumerate(config.models):
        _cap(("models", i, "context"), route, config, held, findings)


def _parallel(path: Path, spec: BackendSpec, known: Backend, served: tuple[Serving, ...], findings: Findings) -> None:
    """What several devices are counted as where the file doesn't say, and what an engine would refuse."""
    said, device, copies = spec.devices.tensor_parallel, known.device, weight_copies(known)
    if device.count == 1 or spec.engine in SPLITS_LAYERS:
        return
    shapes = [(one.offer.model, one.shape) for one in served if one.shape is not None]
    over = said or device.count
    refused = next((f"{name}: {why}" for name, shape in shapes if (why := refused_split(shape, spec.engine, over))), "")
    if said is not None:
        if refused:
            message, _, hint = refused.partition("; ")
            findings.warn((*path, "tensor_parallel"), message, hint)
        return
    shared = f", tp {device.tensor_parallel}" if device.tensor_parallel > 1 else ""
    counted = f"{device.count} x {device.id}{shared}, " + (f"{copies} copies" if copies > 1 else "one copy")
    why = f" ({refused})" if refused else ""
    hint = f"write `tensor_parallel: {device.tensor_parallel}`, or as its engine was started"
    findings.warn(path, f"no tensor_parallel is given, and it counts as {counted} of the weights{why}", hint)


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
    _windows(path, spec, served, found, findings)


def _windows(path: Path, spec: BackendSpec, served: tuple[Serving, ...], found: Capacity, findings: Findings) -> None:
    """A window, declared or the catalogue's, that no sequence can fill: none is in the caches of two copies."""
    whose = f"of each of {found.copies} copies " if found.copies > 1 else ""
    holds = f"more than the KV cache {whose}holds: {found.longest:,} tokens ({dict(found.sources)['pool']})"
    for j, one in enumerate(served):
        if not 0 < found.longest < one.offer.window or not _is_counted(one, found):
            continue
        if spec.models[j].context:
            findings.warn((*path, "models", j, "context"), f"is {holds}", "requests over that are refused")
        elif dict(one.offer.sources)["window"] != "assumed":
            message = f"{one.offer.model} has a window of {one.offer.window:,} tokens, {holds}"
            findings.warn((*path, "models", j), message, "give `context` as its engine was started")


def _is_known(one: Serving, found: Capacity) -> bool:
    if dict(found.sources)["pool"] == "declared":
        return True
    return not _ONLY_ASSUMED & {dict(one.offer.sources).get(fact, "") for fact in ("kv", "weights")}


def _is_counted(one: Serving, found: Capacity) -> bool:
    """Good enough for a warning: the weights' format may be the usual one."""
    return dict(found.sources)["pool"] == "declared" or dict(one.offer.sources).get("kv") != "assumed"


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
    windows, pools, sure = {}, {}, True
    for spec in servers:
        served, found = held[spec.name]
        one = next(s for s in served if s.offer.answers_to(route.serves))
        window = dict(one.offer.sources)["window"]
        windows[spec.name] = one.offer.window if window == "declared" else None
        pools[spec.name] = found.longest if found.longest and _is_counted(one, found) else None
        sure = sure and _is_known(one, found)
    widest = max(windows, key=lambda name: windows[name] or 0)
    if None not in windows.values() and (windows[widest] or 0) < route.context:
        hint = f"the widest is {windows[widest]:,} on {widest}"
        findings.error(path, f"caps {route.name} at {route.context:,} tokens, and no backend holds so many", hint)
        return
    largest = max(pools, key=lambda name: pools[name] or 0)
    if None not in pools.values() and (pools[largest] or 0) < route.context:
        hint = f"the largest holds {pools[largest]:,} tokens, on {largest}: lower the cap or enlarge the pool"
        message = f"caps {route.name} at {route.context:,} tokens, and no KV cache holds one such request"
        (findings.error if sure else findings.warn)(path, message, hint)
