"""What the memory of a backend's devices leaves for the KV cache."""

from __future__ import annotations

from gateway.config.tensor_parallel import SPLITS_LAYERS
from gateway.core.backend import Backend

__all__ = ["kv_pool_bytes", "weight_copies"]

_BUFFERS = 1024**3
_WORKING = 2 * 1024**3
_WORKING_SHARED = 2 * 1024**3
"""Bytes a device for activations, graphs and libraries: vLLM measures 1.5 to 2.7 GiB and 0.27 GiB of libraries, which
become 2.1 GiB with tensor parallelism; llama.cpp's buffers take about 1 GiB. At most a tenth of a device is taken."""


def kv_pool_bytes(backend: Backend, weights_bytes: int, share: float | None = None) -> int:
    """Bytes that memory leaves for the KV cache; negative when the weights alone are too large, 0 when not known.

    `share`: the part of memory that the engine says it was told to use, in place of the device's usual one. SGLang's
    share is weights and cache alone; others work within theirs.
    """
    device = backend.device
    if not device.memory:
        return 0
    usable = int(device.memory * (device.budget if share is None else share))
    if backend.engine == "sglang" and share is not None:
        return usable - weights_bytes
    if backend.engine in ("llama.cpp", "ollama"):
        working = _BUFFERS
    else:
        working = _WORKING + (_WORKING_SHARED if device.tensor_parallel > 1 else 0)
    each = min(working, device.memory // device.count // 10)
    return usable - weights_bytes - each * device.count


def weight_copies(backend: Backend) -> int:
    """Copies of the weights: one for each tensor-parallel group; llama.cpp splits layers over all its devices."""
    if backend.engine in SPLITS_LAYERS:
        return 1
    return max(1, backend.device.count // backend.device.tensor_parallel)
