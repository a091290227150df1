"""What a backend offers: what the file declares, its engine says, and the catalogue knows, merged with sources."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from gateway.config.backends import ModelSpec
from gateway.config.catalog.book import Catalogue
from gateway.config.catalog.names import loose_name, plain_name, weights_in_name
from gateway.config.discovered import Discovered
from gateway.config.endpoint import Endpoint
from gateway.config.formats import WEIGHT_BYTES
from gateway.core.backend import Backend, Offer
from gateway.core.estimators.speed_prior import speed_prior
from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.model import ModelShape
from gateway.core.kv.shape import KvShape

__all__ = ["ASSUMED_KV", "ASSUMED_WINDOW", "Detected", "Serving", "merge_offers", "serving"]

ASSUMED_KV = KvShape(bytes_per_token=131_072.0)
"""A dense model of 8 billion parameters at 16 bit (Llama-3.1-8B): what is taken for a model that nobody knows."""
ASSUMED_WINDOW = 8192
"""Tokens: what is taken for a window that neither file, engine nor catalogue tells."""
_HOSTED_WINDOW = {"anthropic": 200_000}
"""Tokens: of every Claude model that is offered, unless a larger one is asked for."""
CAUTIOUS_WINDOW = 32_768
"""Tokens: a catalogue window is what weights can do, and engines are often started with less; more must be said."""


@dataclass(frozen=True, slots=True)
class Serving:
    """One model on one backend: the offer, and what `check` says beside it.

    `weights_bytes` is the size of one copy (0: not known); `kv_format`, `weights_format` as the file would name them.
    `shape` is the model as the catalogue has it, None where nobody knows it or the file overrules it; `engine_window`
    the longest request that its engine says it takes, in tokens, 0 where it doesn't.
    """

    offer: Offer
    weights_bytes: int
    weights_format: str
    kv_format: str
    shape: ModelShape | None = None
    engine_window: int = 0

    @property
    def full(self) -> int:
        """Tokens of the longest request that its engine takes, as far as is known."""
        return self.engine_window or self.offer.window


@dataclass(frozen=True, slots=True)
class Detected:
    """What an engine was found to be able to do, whatever the model. surfaces: what it may be asked in. kv_dtype: the
    number format of its KV cache, by its own name for it."""

    abilities: frozenset[str] = frozenset()
    surfaces: frozenset[str] | None = None
    kv_dtype: str | None = None


def merge_offers(
    backend: Backend, endpoint: Endpoint, found: Sequence[Discovered] = (), detected: Detected = Detected()
) -> tuple[Offer, ...]:
    """The offers of a backend. `found` is what its engine lists, `detected` what was found out; empty: it wasn't asked.

    Declared facts win, then the engine's, then the catalogue's; a model that nobody knows gets a stated assumption.
    When the engine lists models, a declared one that it doesn't list is not offered.
    """
    return tuple(one.offer for one in serving(backend, endpoint, found, detected))


def serving(
    backend: Backend, endpoint: Endpoint, found: Sequence[Discovered] = (), detected: Detected = Detected()
) -> tuple[Serving, ...]:
    """As merge_offers, with the sizes behind each offer."""
    if not endpoint.declared:
        return tuple(_serving(backend, endpoint.catalogue, None, one, _of(one, endpoint, detected)) for one in found)
    result = []
    for declared in endpoint.declared:
        match = _match(declared, found)
        if match is None and found and len(found) == len(endpoint.declared) == 1:
            match = found[0]  # one engine, one model: llama-server's own name for it is a file path
        if match is not None or not found:
            result.append(_serving(backend, endpoint.catalogue, declared, match, _of(match, endpoint, detected)))
    return tuple(result)


def _of(found: Discovered | None, endpoint: Endpoint, detected: Detected) -> Detected:
    """What one model of the engine can do: its own where that is told, and what the file says of it above all."""
    own = None if found is None else found.abilities
    surfaces = None if found is None else found.surfaces
    said = endpoint.abilities
    able = (detected.abilities if own is None else own) | {name for name, yes in said.items() if yes}
    return Detected(
        able - {name for name, yes in said.items() if not yes},
        detected.surfaces if surfaces is None else surfaces,
        detected.kv_dtype,
    )


def _match(declared: ModelSpec, found: Sequence[Discovered]) -> Discovered | None:
    names = {declared.served_as, declared.id} - {None}
    for one in found:
        if names & {one.id, *one.aliases}:
            return one
    if declared.served_as is None:
        wanted = loose_name(plain_name(declared.id))
        for one in found:
            if wanted in {loose_name(plain_name(name)) for name in (one.id, *one.aliases)}:
                return one
    return None


def _serving(
    backend: Backend, catalogue: Catalogue, declared: ModelSpec | None, found: Discovered | None, able: Detected
) -> Serving:
    names = [n for n in (declared and declared.id, declared and declared.served_as, found and found.id) if n]
    names += found.aliases if found else ()
    shape = next((known for name in names if (known := catalogue.model(name))), None)
    sources = _known_as(shape, catalogue)
    spec = declared or ModelSpec(id=names[0])
    model = _sized(shape, spec, found, names[0], sources)
    tp = backend.device.tensor_parallel
    kv_format = _kv_format(spec, able.kv_dtype, sources)
    kv = _kv(model, spec, kv_format, found, tp, sources)
    weights_format, per_weight = _weights(backend.engine, names, spec, found, model, sources)
    window = _window(backend.engine, spec, found, model, sources)
    offer = Offer(
        model=declared.id if declared else (shape.id if shape else names[0]),
        served_as=_served_as(declared, found),
        window=window,
        kv=kv,
        speed=speed_prior(backend.device, model, weight_bytes=per_weight, kv_dtype=KvDtype.parse(kv_format), tp=tp),
        aliases=tuple(dict.fromkeys(name for name in names[1:] or names)),
        abilities=able.abilities,
        surfaces=able.surfaces,
        weight_bits=8.0 * per_weight,
        sources=tuple(sources.items()),
    )
    size = found.size_bytes if found and found.size_bytes else int(model.params_total * per_weight)
    known = model if sources["kv"] == "catalogue" else shape if sources["kv"] == "assumed" else None
    return Serving(offer, size, weights_format, kv_format, known, (found and found.window) or 0)


def _known_as(shape: ModelShape | None, catalogue: Catalogue) -> dict[str, str]:
    if shape is None:
        return {"model": "assumed"}
    known = {"model": "own entry" if catalogue.owns(shape) else "catalogue", "confidence": str(shape.confidence)}
    return known | ({"figures": shape.source} if shape.source else {})


def _kv_format(spec: ModelSpec, told: str | None, sources: dict[str, str]) -> str:
    """The number format of the KV cache: the engine's word counts more than the file's, since it is the one it has."""
    with suppress(ValueError):
        if told is not None and KvDtype.parse(told):
            sources["kv_format"] = "engine"
            return told
    if spec.kv != "auto":
        sources["kv_format"] = "declared"
    return spec.kv


def _served_as(declared: ModelSpec | None, found: Discovered | None) -> str:
    if declared is not None and declared.served_as:
        return declared.served_as
    return found.id if found else declared.id if declared else ""


def _sized(
    shape: ModelShape | None, spec: ModelSpec, found: Discovered | None, name: str, sources: dict[str, str]
) -> ModelShape:
    """The model's shape with the parameter counts that file or engine give; an empty shape for an unknown one."""
    model = shape or ModelShape(id=name, layers=(), kv_known=False)
    if spec.params:
        sources["params"] = "declared"
        active = spec.active_params or spec.params
        return replace(
            model, params_total=spec.params, params_active=active, read_params=active, expert_params=0.0, experts=0
        )
    if found and found.params and not model.params_total:
        sources["params"] = "engine"
        return replace(model, params_total=float(found.params), params_active=float(found.params))
    sources["params"] = "catalogue" if model.params_total else "assumed"
    return model


def _kv(
    model: ModelShape, spec: ModelSpec, kv_format: str, found: Discovered | None, tp: int, sources: dict[str, str]
) -> KvShape:
    if spec.kv_bytes:
        sources["kv"] = "declared"
        return KvShape(bytes_per_token=float(spec.kv_bytes))
    if found and found.kv_bytes_per_token and not model.kv_known:
        sources["kv"] = "engine"
        return KvShape(bytes_per_token=found.kv_bytes_per_token)
    if model.kv_known:
        sources["kv"] = "catalogue"
        return model.kv(KvDtype.parse(kv_format), tp)
    sources["kv"] = "assumed"
    return ASSUMED_KV


def _weights(
    engine: str,
    names: Sequence[str],
    spec: ModelSpec,
    found: Discovered | None,
    model: ModelShape,
    sources: dict[str, str],
) -> tuple[str, float]:
    """(format, bytes a weight)."""
    named = next((fmt for name in names if (fmt := weights_in_name(name))), None)
    if spec.weights != "auto":
        sources["weights"] = "declared"
        return spec.weights, WEIGHT_BYTES[spec.weights]
    if found and found.size_bytes and (params := found.params or model.params_total):
        sources["weights"] = "engine"
        return named or "file", found.size_bytes / params
    sources["weights"] = "name" if named else "assumed"
    usual = "mxfp4" if model.family == "gpt-oss" else "q4_k_m" if engine == "llama.cpp" else "bf16"
    return named or usual, WEIGHT_BYTES[named or usual]


def _window(engine: str, spec: ModelSpec, found: Discovered | None, model: ModelShape, sources: dict[str, str]) -> int:
    """The smaller of what file and engine say; else the catalogue's, cautiously; else a stated assumption."""
    said = [
        (value, source) for value, source in ((spec.context, "declared"), (found and found.window, "engine")) if value
    ]
    if said:
        window, sources["window"] = min(said)
        return window
    if found and found.default_window:
        sources["window"] = "engine"
        return found.default_window
    if model.max_context:
        sources["window"] = "catalogue"
        return min(model.max_context, CAUTIOUS_WINDOW)
    sources["window"] = "assumed"
    return _HOSTED_WINDOW.get(engine, ASSUMED_WINDOW)
