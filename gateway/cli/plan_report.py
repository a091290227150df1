"""What a plan says, as values: which instances hold which models, how fast they are, and what serves it cheapest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.cli.check_report import BackendReport, ModelReport, report
from gateway.cli.plan_traffic import Workload
from gateway.config.capacity import kv_pool_bytes
from gateway.config.catalog.book import SHIPPED, Catalogue
from gateway.config.policy import Policy
from gateway.config.tensor_parallel import SPLITS_LAYERS
from gateway.core.forecast import Forecast, Goals, forecast, sustained
from gateway.core.kv.engine_limits import refused_split

__all__ = ["COUNTS", "Instance", "Wanted", "best", "candidates", "instances", "order"]

COUNTS = (1, 2, 4, 8)
"""How many of a device an instance may span where nobody says."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be served: models as the file would name them, engine and formats.

    `context` None: all that the weights can do; `running` None: the engine's own places. `files`: of models that no
    catalogue has, (id, file) pairs.
    """

    models: tuple[str, ...]
    engine: str = "vllm"
    weights: str = "auto"
    kv: str = "auto"
    context: int | None = None
    running: int | None = None
    files: tuple[tuple[str, Path], ...] = ()


@dataclass(frozen=True, slots=True)
class Instance:
    """One model on one backend, with what it would do.

    `pool_bytes` may be negative: so much is missing for the weights. `fits`: sequences of each of LENGTHS, None beyond
    its window. `now`: at the rate wanted (None: no rate is known). `most`: at the highest rate that it bears (None: it
    does not hold the model, or nobody knows how fast it is). `price`: of all its devices, an hour. `refused`: why its
    engine can't spread the model over the devices, "" where it can.
    """

    backend: BackendReport
    model: ModelReport
    pool_bytes: int
    fits: tuple[int | None, ...]
    now: Forecast | None
    most: Forecast | None
    rate: float
    price: float | None
    refused: str = ""

    @property
    def holds(self) -> bool:
        """Whether weights and at least one sequence of the traffic fit, and the engine can be started so."""
        return self.most is not None

    @property
    def serves(self) -> bool:
        """Whether it also meets the goals, at whatever rate."""
        return self.most is not None and self.most.rate > 0.0

    @property
    def copies(self) -> int | None:
        """Instances like this one that the wanted rate takes; None when no number of them does."""
        if not self.serves or self.most is None:
            return None
        return max(1, math.ceil(self.rate / self.most.rate)) if self.rate else 1

    @property
    def cost(self) -> float | None:
        """Price of a thousand requests at the wanted rate with as many copies as it takes, else at full load."""
        if self.price is None or self.copies is None or self.most is None:
            return None
        rate = self.rate / self.copies if self.rate else self.most.rate
        return self.price / (rate * 3600.0) * 1000.0


def candidates(wanted: Wanted, devices: Sequence[tuple[int | None, str]], catalogue: Catalogue = SHIPPED) -> Policy:
    """A policy with one backend for each model on each device, `COUNTS` of it where no number is given."""
    places = devices or [(None, name) for name in catalogue.device_ids if _is_id(name, catalogue)]
    backends = [
        _backend(wanted, model, count, name, catalogue, tried=number is None)
        for model in wanted.models
        for number, name in places
        for count in ((number,) if number is not None else COUNTS)
    ]
    own = [{"id": name, "gguf" if file.suffix == ".gguf" else "config": str(file)} for name, file in wanted.files]
    return Policy.model_validate({"backends": backends, "catalogue": {"models": own}})


def _is_id(name: str, catalogue: Catalogue) -> bool:
    found = catalogue.device(name)
    return found is not None and found.id == name


def _backend(
    wanted: Wanted, model: str, count: int, device: str, catalogue: Catalogue, *, tried: bool
) -> Mapping[str, object]:
    """One backend. Of a number that is only `tried` an instance is one copy, and what can't be split is told; a number
    that was named is counted as `check` counts it: as many copies as it takes to share each layer."""
    entry: dict[str, object] = {"id": model, "weights": wanted.weights, "kv": wanted.kv}
    known = catalogue.model(model)
    window = wanted.context or (known.max_context if known is not None else 0)
    if window:
        entry["context"] = window
    backend: dict[str, object] = {
        "name": f"{count}x{device}/{model}",
        "url": "http://127.0.0.1:9",
        "engine": wanted.engine,
        "device": device,
        "devices": {"count": count},
        "models": [entry],
    }
    if tried:
        backend["devices"] = {"count": count, "tensor_parallel": 1 if wanted.engine in SPLITS_LAYERS else count}
    if wanted.running is not None:
        backend["running"] = wanted.running
    return backend


def instances(policy: Policy, workload: Workload, goals: Goals, prices: Mapping[str, float]) -> list[Instance]:
    """Every model on every backend of a policy. `prices`: of one device an hour, by device id."""
    found = report(policy, None)
    return [
        _instance(backend, model, workload, goals, prices) for backend in found.backends for model in backend.models
    ]


def _instance(
    backend: BackendReport, model: ModelReport, workload: Workload, goals: Goals, prices: Mapping[str, float]
) -> Instance:
    device, held, offer = backend.backend.device, backend.capacity, model.serving.offer
    price = prices.get(device.id)
    price = price * device.count if price is not None else None
    pool = held.pool_bytes or kv_pool_bytes(backend.backend, held.weights_bytes)
    now = most = None
    traffic = workload.traffic
    shape, tp = model.serving.shape, device.tensor_parallel
    refused = refused_split(shape, backend.backend.engine, tp) if shape is not None else ""
    if not refused and pool > 0 and device.known and traffic.longest(0.95) <= offer.window:
        room = int(held.sequences(round(traffic.context)) * backend.backend.headroom)
        if held.sequences(traffic.longest(0.95)) > 0:
            # Copies of the model each serve their part of the requests, with their part of the pool.
            copies = held.copies
            room, rate, slots = room // copies, workload.rate / copies, max(1, held.slots // copies)
            most = _of_all(sustained(offer.speed, room, slots, traffic, goals), copies)
            now = _of_all(forecast(offer.speed, room, slots, traffic, rate, goals), copies) if rate else None
    return Instance(backend, model, pool, model.fits, now, most, workload.rate, price, refused)


def best(found: Iterable[Instance]) -> Instance | None:
    """The smallest instance that serves the traffic alone, else the one of which the fewest are needed.

    The cheapest comes first where all that can serve it have a price, else the one with the least memory.
    """
    able = [each for each in found if each.serves]
    priced = all(each.cost is not None for each in able)
    return min(able, key=lambda each: order(each, priced=priced), default=None)


def order(each: Instance, *, priced: bool = False) -> tuple[float, float, float]:
    """Smaller comes first: by price if `priced`, else by the memory of all copies that it takes."""
    device = each.backend.backend.device
    copies = each.copies or 1
    memory = float(device.memory * copies)
    spare = -(each.most.rate if each.most is not None else 0.0)
    return ((each.cost or 0.0), memory, spare) if priced else (memory, float(copies), spare)


def _of_all(one: Forecast, copies: int) -> Forecast:
    return replace(one, rate=one.rate * copies, batch=one.batch * copies)
