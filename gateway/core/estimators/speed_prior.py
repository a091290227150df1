"""What a device should do with a model, in seconds, before anything has been observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from gateway.core.estimators.decode_speed import DecodeSpeed
from gateway.core.estimators.prefill_speed import PrefillSpeed
from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.model import ModelShape

__all__ = ["DeviceRates", "SpeedPrior", "speed_prior"]

WEIGHT_READ = 0.8
"""Share of paper bandwidth that weight reads reach, overheads counted apart; published decode speeds of dense models on
DGX Spark, RTX 3090, RTX 4090 and Strix Halo reach 0.68 to 0.86 overheads included."""
KV_READ = 0.5
"""Share of paper bandwidth that KV reads reach: gpt-oss-20b on a Spark, 0.188 µs for the 24.6 KB of a token."""
MOE_PREFILL = 0.7
"""Prefill of routed experts reaches about this share of the dense figure (Spark: 0.18 against 0.25)."""
ASSUMED_ROUTED = 0.7
"""Of the weights read for a token, the part in routed experts where it isn't published (gpt-oss-120b: 0.70)."""
ASSUMED_PARAMS = 8e9
"""Weights of a model that nobody knows."""


class DeviceRates(Protocol):
    """The numbers of a device that speed depends on (core.backend.Device has them)."""

    @property
    def bandwidth(self) -> float:
        """Memory bandwidth of one device on paper, bytes/s."""
        ...

    @property
    def flops(self) -> float:
        """Dense 16-bit matrix rate of one device on paper, FLOP/s."""
        ...

    @property
    def mfu(self) -> float:
        """Share of `flops` that dense prefill reaches."""
        ...

    @property
    def step_overhead(self) -> float:
        """Seconds of a decode step that no weight or KV read explains."""
        ...

    @property
    def sequence_overhead(self) -> float:
        """Seconds that each sequence adds to a step."""
        ...


@dataclass(frozen=True, slots=True)
class SpeedPrior:
    """Prefill and decode of one model on one backend; multiply by a LearnedFactor for the backend as it is today."""

    prefill: PrefillSpeed
    decode: DecodeSpeed

    def prefill_seconds(self, uncached: int, cached: int = 0) -> float:
        """Seconds to prefill `uncached` tokens behind `cached` ones, with the device to itself."""
        return self.prefill.seconds(uncached, cached)

    def step_seconds(self, batch: int, kv_tokens: int = 0) -> float:
        """Seconds of one decode step (TPOT without prefill) of `batch` sequences that hold `kv_tokens` in total."""
        return self.decode.step_seconds(batch, kv_tokens)


def speed_prior(
    device: DeviceRates,
    model: ModelShape,
    *,
    weight_bytes: float = 2.0,
    kv_dtype: KvDtype = KvDtype.F16,
    tp: int = 1,
) -> SpeedPrior:
    """The prior of `model` on `device`, from paper figures.

    `weight_bytes` is bytes per weight as stored (2.0 for bf16, 1.06 for Q8_0, 0.6 for Q4_K_M; file size over total
    parameters). `tp` devices share every layer: reads divide by tp, the step overhead doubles (seen on a pair).
    A model of unknown layout or size is taken for an 8 billion dense one, to be corrected by what is observed.
    """
    read = model.read_params or model.params_active or model.params_total or ASSUMED_PARAMS
    routing = _routing(model, read)
    weights = device.bandwidth * WEIGHT_READ * tp
    kv_read = device.bandwidth * KV_READ * tp
    kv = model.kv(kv_dtype, tp) if model.kv_known else None
    per_sequence = 0.0
    if kv is not None:
        # A window is read as a whole by each step; a recurrent state is read and written.
        per_sequence = (kv.window_bytes_per_token * kv.window + 2 * kv.state_bytes) / kv_read
    computed = model.params_active or read
    reached = device.flops * device.mfu * tp * (MOE_PREFILL if routing.params else 1.0)
    return SpeedPrior(
        prefill=PrefillSpeed(seconds_per_token=2.0 * computed / reached),
        decode=DecodeSpeed(
            overhead_seconds=device.step_overhead * (2.0 if tp > 1 else 1.0),
            weight_seconds=max(0.0, read - routing.params * routing.share) * weight_bytes / weights,
            kv_seconds_per_token=kv.bytes_per_token / kv_read if kv is not None else 0.0,
            sequence_seconds=device.sequence_overhead + per_sequence,
            expert_seconds=routing.params * weight_bytes / weights,
            expert_share=routing.share,
        ),
    )


class _Routing(NamedTuple):
    """Weights of all routed experts, and the share of them that one token reads."""

    params: float
    share: float


def _routing(model: ModelShape, read: float) -> _Routing:
    """As the catalogue says; a model that reads less than half of itself has experts, even if nobody says how many."""
    if model.is_moe:
        return _Routing(model.expert_params, model.experts_per_token / model.experts)
    if model.params_total > 2.0 * read:
        experts = model.params_total - (1.0 - ASSUMED_ROUTED) * read
        return _Routing(experts, ASSUMED_ROUTED * read / experts)
    return _Routing(0.0, 0.0)
