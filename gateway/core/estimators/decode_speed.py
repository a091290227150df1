"""How long a backend needs for one decode step over all sequences it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["DecodeSpeed"]

_SQRT_UP_TO = 32


@dataclass(frozen=True, slots=True)
class DecodeSpeed:
    """Seconds of a step: fixed overhead + weights read + KV read + a share per sequence.

    `overhead_seconds` (t0): launches and scheduling. `weight_seconds`: reading the weights that every token needs.
    `expert_seconds`: reading all routed experts (0.0: dense), of which one token reads `expert_share`; a step reads the
    union of its tokens' choices.
    `kv_seconds_per_token`: reading one resident token's KV. `sequence_seconds` (b): sampling, state and window reads.
    """

    overhead_seconds: float
    weight_seconds: float
    kv_seconds_per_token: float = 0.0
    sequence_seconds: float = 0.0
    expert_seconds: float = 0.0
    expert_share: float = 0.0

    def step_seconds(self, batch: int, kv_tokens: int = 0) -> float:
        """Seconds of one step with `batch` sequences that hold `kv_tokens` tokens in total; each gains one token."""
        if batch <= 0:
            return 0.0
        if not self.expert_seconds:
            step = self.overhead_seconds + self.weight_seconds + self.sequence_seconds * batch
        else:
            step = self._read_seconds(batch)
            # Neighbouring tokens choose alike, so fewer distinct experts are read than independent choices would give:
            # gpt-oss-120b on a Spark follows t(1)*sqrt(B) within 7 % up to 32 streams, and grows linearly above.
            alone = self._read_seconds(1)
            similar = math.sqrt(batch) if batch <= _SQRT_UP_TO else batch / math.sqrt(_SQRT_UP_TO)
            step = min(step, alone * similar)
        return step + self.kv_seconds_per_token * kv_tokens

    def _read_seconds(self, batch: int) -> float:
        experts = self.expert_seconds * (1.0 - (1.0 - self.expert_share) ** batch)
        return self.overhead_seconds + self.weight_seconds + experts + self.sequence_seconds * batch
