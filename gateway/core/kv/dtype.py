"""How many bytes one element of the KV cache takes."""

from __future__ import annotations

from enum import Enum

__all__ = ["KvDtype"]


class KvDtype(Enum):
    """Storage format of the KV cache; the value is bytes per element.

    ggml formats store blocks of 32 elements with their scale: q8_0 34 bytes, q4_0 18 bytes (ggml-common.h). NVFP4 has a
    scale byte for 16 elements, which comes to the same as q4_0.
    """

    F32 = 4.0
    F16 = 2.0
    FP8 = 1.0
    Q8_0 = 34 / 32
    Q5_1 = 24 / 32
    Q5_0 = 22 / 32
    Q4_1 = 20 / 32
    Q4_0 = 18 / 32

    @property
    def element_bytes(self) -> float:
        """Bytes per element, scales included."""
        return float(self.value)

    @classmethod
    def parse(cls, name: str) -> KvDtype:
        """The format behind an engine's own name for it (`auto` means 16 bit). Raises ValueError on an unknown name."""
        try:
            return _NAMES[name.lower()]
        except KeyError:
            raise ValueError(f"unknown KV cache dtype {name!r}; known: {', '.join(sorted(_NAMES))}") from None


_NAMES: dict[str, KvDtype] = {
    "auto": KvDtype.F16,
    "f32": KvDtype.F32,
    "float32": KvDtype.F32,
    "fp16": KvDtype.F16,
    "f16": KvDtype.F16,
    "float16": KvDtype.F16,
    "bf16": KvDtype.F16,
    "bfloat16": KvDtype.F16,
    "fp8": KvDtype.FP8,
    "fp8_e4m3": KvDtype.FP8,
    "fp8_e5m2": KvDtype.FP8,
    "fp8_inc": KvDtype.FP8,
    "fp8_ds_mla": KvDtype.FP8,
    "nvfp4": KvDtype.Q4_0,
    "q8_0": KvDtype.Q8_0,
    "q5_1": KvDtype.Q5_1,
    "q5_0": KvDtype.Q5_0,
    "q4_1": KvDtype.Q4_1,
    "q4_0": KvDtype.Q4_0,
    "iq4_nl": KvDtype.Q4_0,
}
