"""Devices and models of the emulated fleet: the truth that a gateway has to guess or learn.

The constants are fitted to published measurements where there are any, so they differ from what a catalogue would
predict from nominal figures; that is wanted, since a gateway meets real devices with catalogue priors too.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEVICES", "MODELS", "Device", "Model"]

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator, with the share of its paper figures that an engine reaches."""

    name: str
    memory_bytes: int
    usable_share: float
    """vLLM's gpu_memory_utilization: its default 0.92, less on unified memory, where the system lives too."""
    bandwidth: float
    """Nominal memory bandwidth, bytes/s."""
    weight_efficiency: float
    """Share of the bandwidth reached when weights are read."""
    kv_efficiency: float
    """Share of the bandwidth reached when keys and values are read."""
    flops: float
    """Dense 16-bit FLOP/s."""
    dense_mfu: float
    """Share of `flops` reached in prefill of a dense model."""
    moe_mfu: float
    """The same for a mixture of experts with about 3 B active parameters."""
    overhead_s: float
    sequence_s: float
    weight_bytes: float
    """Bytes a parameter of the usual deployment: 1 for fp8, 0.5625 for 4 bit with group scales."""
    max_batched_tokens: int
    """vLLM's default token budget of an iteration: 8192 on a large card, else 2048."""


@dataclass(frozen=True, slots=True)
class Model:
    """Shape of one model, from its config.json, as far as time and memory depend on it."""

    name: str
    parameters: float
    shared_parameters: float
    """Parameters read for every token, input embedding excluded."""
    expert_parameters: float
    """Parameters of all routed experts; 0 for a dense model."""
    experts: int
    experts_per_token: int
    attention_layers: int
    """Full-attention layers, the ones whose cache grows."""
    kv_bytes_per_layer: int
    """Bytes of keys and values a token and attention layer, 16 bit."""
    state_bytes_per_layer: int
    """Bytes of recurrent state a sequence and recurrent layer; 0 without such layers."""
    state_groups: int
    """Recurrent layers divided by attention layers: the groups that share the block pool."""
    prefill_half_depth: float
    max_context: int

    @property
    def active_parameters(self) -> float:
        """Parameters used for one token."""
        share = self.experts_per_token / self.experts if self.experts else 0.0
        return self.shared_parameters + self.expert_parameters * share


DEVICES = {
    device.name: device
    for device in (
        # 273 GB/s: vendor. Efficiencies from llama.cpp's benches/dgx-spark (build 7941), Qwen3-Coder-30B-A3B Q8_0:
        # 61.06 tok/s at depth 0 and 48.02 at 8192 give 0.75 for weights and 0.66 for KV; 2987 and 2354 tok/s of
        # prefill at those depths give moe_mfu 0.19. Dense 0.25: median of five rows of the same file.
        Device(
            name="dgx-spark",
            memory_bytes=128_000_000_000,
            usable_share=0.80,
            bandwidth=273e9,
            weight_efficiency=0.75,
            kv_efficiency=0.66,
            flops=100e12,
            dense_mfu=0.25,
            moe_mfu=0.19,
            overhead_s=0.0006,
            sequence_s=0.0003,
            weight_bytes=1.0,
            max_batched_tokens=2048,
        ),
        # 936 GB/s, 71 TFLOPS: vendor. 0.73 and 0.76: medians of dense rows in noonghunna/club-3090 and
        # XiongjieDai/GPU-Benchmarks-on-LLM-Inference. No public row for an MoE: moe_mfu is assumed.
        Device(
            name="rtx-3090",
            memory_bytes=25_769_803_776,
            usable_share=0.92,
            bandwidth=936e9,
            weight_efficiency=0.73,
            kv_efficiency=0.6,
            flops=71e12,
            dense_mfu=0.76,
            moe_mfu=0.25,
            overhead_s=0.003,
            sequence_s=0.0003,
            weight_bytes=0.5625,
            max_batched_tokens=2048,
        ),
        # 1792 GB/s: vendor. 0.56: sudoingX/qwen38-mtp, 63.8 tok/s of a 27B at 4 bit. About 250 TFLOPS sustained, the
        # mfu figures and the overhead are assumed; a 3 B-active MoE is bound by launches, not by bandwidth.
        Device(
            name="rtx-pro-6000",
            memory_bytes=102_641_958_912,
            usable_share=0.92,
            bandwidth=1792e9,
            weight_efficiency=0.56,
            kv_efficiency=0.5,
            flops=250e12,
            dense_mfu=0.30,
            moe_mfu=0.24,
            overhead_s=0.002,
            sequence_s=0.00015,
            weight_bytes=1.0,
            max_batched_tokens=8192,
        ),
    )
}
"""Devices by name."""

MODELS = {
    model.name: model
    for model in (
        # Qwen/Qwen3-30B-A3B config.json: 48 layers, hidden 2048, 128 experts of 768, 8 a token, 4 KV heads of 128.
        # Experts 48 x 128 x 3 x 2048 x 768; the rest is 1.54 B, of which 0.31 B is the input embedding.
        # Half depth: the two prefill rates on the Spark named above.
        Model(
            name="Qwen3-30B-A3B",
            parameters=30.53e9,
            shared_parameters=1.23e9,
            expert_parameters=28.99e9,
            experts=128,
            experts_per_token=8,
            attention_layers=48,
            kv_bytes_per_layer=4 * (128 + 128) * 2,
            state_bytes_per_layer=0,
            state_groups=0,
            prefill_half_depth=29_440.0,
            max_context=40_960,
        ),
        # Qwen3.6-27B config.json: 64 layers, 16 of them full attention with 4 KV heads of 256, 48 gated delta nets of
        # 48 x 128 x 128 x 4 + (2 x 16 x 128 + 48 x 128) x 3 x 2 bytes. Half depth: assumed, a quarter of the layers.
        Model(
            name="Qwen3.6-27B",
            parameters=26.89e9,
            shared_parameters=25.62e9,
            expert_parameters=0.0,
            experts=0,
            experts_per_token=0,
            attention_layers=16,
            kv_bytes_per_layer=4 * (256 + 256) * 2,
            state_bytes_per_layer=3_207_168,
            state_groups=3,
            prefill_half_depth=180_000.0,
            max_context=262_144,
        ),
    )
}
"""Models by name."""

RUNTIME_BYTES = int(2.27 * GIB)
"""Peak activations and non-torch memory: 2 GiB and 0.27 GiB, medians published for vLLM 0.19 at one device."""
