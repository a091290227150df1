"""Models and devices of an operator's own, in the same words as the shipped catalogue has them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from gateway.config.attention import AttentionSpec
from gateway.config.catalog.device_entry import device_from_entry
from gateway.config.own_shapes import own_shape
from gateway.config.sizes import Bytes, Number, Share, Tokens, Whole
from gateway.config.spec import FilePath, Name, Spec
from gateway.core.backend import Device
from gateway.core.kv.model import ModelShape

__all__ = ["MoeSpec", "OwnDevice", "OwnModel", "TflopsSpec"]

Trust = Literal["high", "medium", "low", "unverified"]
Billions = Annotated[Number, Field(gt=0)]


class MoeSpec(Spec):
    """How tokens are routed to experts."""

    experts: Annotated[Whole, Field(gt=0)]
    """Routed experts a layer."""
    per_token: Annotated[Whole, Field(gt=0)]
    """Experts that one token uses."""
    expert_ff: Whole | None = None
    """Width of an expert, for readers."""
    shared_ff: Whole | None = None
    """Width of the shared expert, for readers."""


class OwnModel(Spec):
    """A model that the shipped catalogue lacks, or has otherwise: an entry here wins over a shipped one of its name."""

    id: Name
    """Its name. Organisation, case and suffixes of number format don't matter when an engine's name is compared."""
    aliases: tuple[Name, ...] = ()
    """Other names of it."""
    config: FilePath | None = None
    """Its Hugging Face config.json, from which everything is read that isn't written here."""
    gguf: FilePath | None = None
    """Its GGUF file, of which the header is read for everything that isn't written here."""
    family: str | None = None
    """Models of one family share defaults."""
    params_total_b: Billions | None = None
    """Billions of parameters, as its maker names them."""
    params_active_b: Billions | None = None
    """Billions of parameters that one token uses."""
    calc_total_b: Billions | None = None
    """Billions of parameters counted from the shape; wins over the maker's."""
    calc_read_b: Billions | None = None
    """Billions of weights read to decode one token, input embedding excluded."""
    layers: Annotated[Whole, Field(gt=0)] | None = None
    """Layers of all kinds together."""
    hidden: Annotated[Whole, Field(gt=0)] | None = None
    """Width of the model."""
    q_heads: Annotated[Whole, Field(gt=0)] | None = None
    """Query heads, for readers."""
    attention: tuple[AttentionSpec, ...] = ()
    """Its layers by kind; left out, its KV cache is not known."""
    layer_pattern: str | None = None
    """Their order, for readers."""
    moe: MoeSpec | None = None
    """Its experts, for a mixture of experts."""
    mtp_layers: Annotated[Whole, Field(ge=0)] | None = None
    """Layers of a built-in drafting head."""
    max_context: Annotated[Tokens, Field(gt=0)] | None = None
    """Tokens that its weights were made for."""
    max_context_note: str | None = None
    """For readers."""
    vocab: Annotated[Whole, Field(gt=0)] | None = None
    """Entries of its vocabulary."""
    tokenizer: str | None = None
    """For readers."""
    vision_tokens: str | None = None
    """For readers."""
    kv: dict[str, Any] | None = None
    """The arithmetic written out, for readers; it is worked out anew from `attention`."""
    kv_lifetime: str | None = None
    """Said of encoders, which keep nothing between requests."""
    source: str | None = None
    """Where the figures come from."""
    confidence: Trust = "high"
    """How far to trust them: with low and unverified, admission takes a margin and `check` says so."""
    note: str | None = None
    """For readers."""

    def shape(self) -> ModelShape:
        """Its figures as the core counts with them; OSError or ValueError when a file can't be read."""
        return own_shape(self)


class TflopsSpec(Spec):
    """Dense rates of the matrix units on paper, in 10^12 operations a second; null where there is no such unit."""

    fp16: Number | None = None
    """16 bit, accumulated in 32 bit."""
    fp32: Number | None = None
    """32 bit."""
    fp8: Number | None = None
    """8 bit."""
    fp4: Number | None = None
    """4 bit."""
    int8: Number | None = None
    """8-bit integers."""


class OwnDevice(Spec):
    """A device that the shipped catalogue lacks, or has otherwise: an entry here wins over a shipped one of its id."""

    id: Name
    """The name to write under `device:`."""
    aliases: tuple[Name, ...] = ()
    """Other names of it."""
    name: str | None = None
    """Its full name, for readers."""
    memory_bytes: Annotated[Bytes, Field(gt=0)] | None = None
    """Memory of one: 24GiB. Left out, its KV cache is whatever the engine says."""
    memory_type: str | None = None
    """Its kind; `unified` where CPU and GPU share it."""
    bandwidth_gbs: Annotated[Number, Field(gt=0)]
    """Memory bandwidth on paper, in 10^9 bytes a second."""
    tflops: TflopsSpec
    """Rates on paper; the better of fp16 and fp32 counts."""
    prefill_reach: Annotated[Share, Field(gt=0)] | None = None
    """Share of that rate which prefill reaches; 30% where left out."""
    memory_budget: Annotated[Share, Field(gt=0)] | None = None
    """Share of memory that engines may use; 90% where left out."""
    interconnect: str | None = None
    """For readers."""
    link_gbs: Number | None = None
    """Rate to its peers in one direction, in 10^9 bytes a second."""
    tdp_w: Number | None = None
    """Power, for readers."""
    power_cap_w: str | None = None
    """For readers."""
    compute_capability: str | None = None
    """For readers."""
    degradations: tuple[str, ...] = ()
    """What is known to slow it, for readers."""
    source: str | None = None
    """Where the figures come from."""
    confidence: Trust = "high"
    """How far to trust them."""

    def device(self) -> Device:
        """Its figures as the core counts with them; ValueError when none of its rates is told."""
        said = self.model_dump(exclude_none=True)
        said.setdefault("source", "this file")
        made = device_from_entry(said)
        if not made.flops:
            raise ValueError("tflops tells neither fp16 nor fp32")
        return made
