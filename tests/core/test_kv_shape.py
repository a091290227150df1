"""Bytes of one sequence, and of kinds of layers that the catalogue doesn't cover by figures."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.grouped import FullGqa, SlidingGqa
from gateway.core.kv.latent import DsaIndexer, Mla
from gateway.core.kv.model import ModelShape
from gateway.core.kv.recurrent import GatedDeltaNet, Kda, Mamba2
from gateway.core.kv.shape import KvShape, blocks, round_up

TOKENS = st.integers(0, 2_000_000)
SHAPES = st.builds(
    KvShape,
    bytes_per_token=st.floats(0, 1e6),
    window_bytes_per_token=st.floats(0, 1e6),
    window=st.integers(0, 100_000),
    state_bytes=st.integers(0, 10**9),
)


def test_three_terms() -> None:
    shape = KvShape(bytes_per_token=100, window_bytes_per_token=10, window=128, state_bytes=7)
    assert shape.bytes(0) == 7
    assert shape.bytes(100) == 100 * 110 + 7
    assert shape.bytes(1000) == 100_000 + 1280 + 7
    assert shape.marginal(127) == 110
    assert shape.marginal(128) == 100


def test_fractions_of_bytes_round_up() -> None:
    assert KvShape(bytes_per_token=3850.25).bytes(3) == 11_551


@settings(deadline=None)
@given(SHAPES, TOKENS, TOKENS)
def test_longer_is_never_smaller(shape: KvShape, one: int, other: int) -> None:
    short, long = sorted((one, other))
    assert shape.bytes(short) <= shape.bytes(long)


@settings(deadline=None)
@given(SHAPES, SHAPES, TOKENS)
def test_sum_never_underestimates(one: KvShape, other: KvShape, tokens: int) -> None:
    assert (one + other).bytes(tokens) >= (one.bytes(tokens) + other.bytes(tokens)) * (1 - 1e-9) - 2


def test_sum_of_unlike_windows_is_exact_when_both_are_full() -> None:
    both = KvShape(window_bytes_per_token=10, window=100) + KvShape(window_bytes_per_token=30, window=500)
    assert both.bytes(10_000) == 10 * 100 + 30 * 500


@settings(deadline=None)
@given(SHAPES.filter(lambda s: s.bytes_per_token > 1), st.integers(0, 10**12))
def test_tokens_in_is_the_inverse(shape: KvShape, budget: int) -> None:
    fitting = shape.tokens_in(budget)
    if fitting:
        assert shape.bytes(fitting) <= budget * (1 + 1e-9) + 1
        assert shape.bytes(fitting + 2) > budget * (1 - 1e-9)
    else:
        assert shape.bytes(2) > budget * (1 - 1e-9)


def test_tokens_in_a_cache_that_stops_growing() -> None:
    with pytest.raises(OverflowError):
        KvShape(window_bytes_per_token=10, window=100).tokens_in(1001)
    assert KvShape(window_bytes_per_token=10, window=100).tokens_in(500) == 50


@pytest.mark.parametrize(("tokens", "block", "expected"), [(0, 16, 0), (1, 16, 1), (16, 16, 1), (17, 16, 2), (5, 1, 5)])
def test_blocks(tokens: int, block: int, expected: int) -> None:
    assert blocks(tokens, block) == expected
    assert round_up(tokens, block) == expected * block


def test_tensor_parallel_copies_kv_heads_when_ranks_are_more() -> None:
    layers = FullGqa(layers=94, kv_heads=4, head_dim=128)  # Qwen3-235B
    assert layers.shape(KvDtype.F16, 4).bytes_per_token == 4 * 48_128
    assert layers.shape(KvDtype.F16, 8).bytes_per_token == 8 * 48_128


def test_tensor_parallel_replicates_latents_and_indexes() -> None:
    assert Mla(layers=61, kv_lora_rank=512, rope_dim=64).shape(KvDtype.F16, 8).bytes_per_token == 8 * 70_272
    assert DsaIndexer(layers=61).shape(KvDtype.FP8, 2).bytes_per_token == 2 * 61 * 132


def test_tensor_parallel_splits_states_and_rounds_mamba_groups_up() -> None:
    delta = GatedDeltaNet(layers=48, k_heads=16, v_heads=48, k_dim=128, v_dim=128)
    assert delta.shape(KvDtype.F16, 2) == delta.shape(KvDtype.F16, 1)
    mamba = Mamba2(layers=1, heads=64, head_dim=64, state=128, groups=8)
    assert mamba.shape(KvDtype.F16, 8) == mamba.shape(KvDtype.F16)
    grown = mamba.shape(KvDtype.F16, 16).state_bytes - mamba.shape(KvDtype.F16).state_bytes
    assert grown == 2 * 8 * 128 * 3 * 2


@pytest.mark.parametrize(
    "layers",
    [
        GatedDeltaNet(layers=2, k_heads=16, v_heads=32, k_dim=128, v_dim=128),
        Mamba2(layers=2, heads=64, head_dim=64, state=128, groups=8),
        Kda(layers=2, heads=96, head_dim=128),
    ],
)
def test_states_ignore_the_cache_dtype(layers: GatedDeltaNet | Mamba2 | Kda) -> None:
    assert layers.shape(KvDtype.FP8) == layers.shape(KvDtype.F16)
    assert layers.shape(KvDtype.F16).bytes_per_token == 0


def test_llama_cpp_keeps_the_convolution_tail_in_fp32() -> None:
    half = GatedDeltaNet(layers=1, k_heads=16, v_heads=32, k_dim=128, v_dim=128).shape(KvDtype.F16)
    full = GatedDeltaNet(1, 16, 32, 128, 128, conv_element_bytes=4).shape(KvDtype.F16)
    assert full.state_bytes - half.state_bytes == (2 * 16 * 128 + 32 * 128) * 3 * 2


def test_drafting_adds_one_attention_layer() -> None:
    model = ModelShape("m", (FullGqa(16, 4, 256), GatedDeltaNet(48, 16, 48, 128, 128)), draft_layers=1)
    extra = model.kv(drafting=True).bytes_per_token - model.kv().bytes_per_token
    assert extra == 4 * 512 * 2


def test_unknown_layout_is_not_guessed() -> None:
    with pytest.raises(ValueError, match="not known"):
        ModelShape("m", (), kv_known=False).kv()


@pytest.mark.parametrize(
    ("name", "element"), [("auto", 2), ("BF16", 2), ("fp8_e4m3", 1), ("q8_0", 34 / 32), ("q4_0", 18 / 32), ("f32", 4)]
)
def test_dtype_names(name: str, element: float) -> None:
    assert KvDtype.parse(name).element_bytes == element


def test_unknown_dtype_names_the_known() -> None:
    with pytest.raises(ValueError, match="q8_0"):
        KvDtype.parse("int3")


def test_sliding_window_stops() -> None:
    shape = SlidingGqa(layers=18, kv_heads=8, head_dim=64, window=128).shape(KvDtype.F16)  # gpt-oss-120b
    assert shape.bytes(131_072) == 4_718_592
