"""What a backend runs on: a device of the catalogue, or its numbers, and how many of them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from gateway.config.sizes import Bandwidth, Bytes, Flops, Share, Whole
from gateway.config.spec import Name, Spec

__all__ = ["DeviceEntry", "DeviceSpec", "DevicesSpec"]


class DeviceSpec(Spec):
    """A device of the catalogue by its id, or described by its own numbers, or both: numbers win."""

    id: Name | None = None
    """Catalogue id, for example dgx-spark or rtx-3090."""
    memory: Annotated[Bytes, Field(gt=0)] | None = None
    """Memory of one device."""
    bandwidth: Annotated[Bandwidth, Field(gt=0)] | None = None
    """Memory bandwidth of one device on paper; decode speed follows from it."""
    fp16: Annotated[Flops, Field(gt=0)] | None = None
    """Dense 16-bit FLOP/s of one device on paper; prefill speed follows from it."""
    budget: Annotated[Share, Field(gt=0)] | None = None
    """Share of memory that the engine may use: weights, KV cache and working space together."""


def _device(value: Any) -> Any:
    return {"id": value} if isinstance(value, str) else value


class DevicesSpec(Spec):
    """How many devices this backend spans."""

    count: Annotated[Whole, Field(ge=1, le=4096)] = 1
    """Devices of this kind."""
    tensor_parallel: Annotated[Whole, Field(ge=1, le=4096)] | None = None
    """How many devices share every layer; `count` must be a multiple of it, and what is left over are copies of the
    weights. Left out: all of them, or as many as the model's KV heads divide by; llama.cpp splits layers instead."""


DeviceEntry = Annotated[DeviceSpec, BeforeValidator(_device, json_schema_input_type=str | DeviceSpec)]
"""A device by its id alone, or as a mapping."""
