"""How each engine pages: groups, blocks, reserves, pools and slots, rule by rule."""

from __future__ import annotations

import pytest

from gateway.config import catalog
from gateway.core.kv.block_pool import BlockPool, block_pool
from gateway.core.kv.cell_pool import CellPool, cell_pool
from gateway.core.kv.deployment import Deployment
from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.grouped import ChunkedLocalGqa, FullGqa, KvShared, SlidingGqa
from gateway.core.kv.hybrid_paging import hybrid_block
from gateway.core.kv.latent import DsaIndexer, Mla
from gateway.core.kv.layer_spec import Kind
from gateway.core.kv.layers import AttentionLayers
from gateway.core.kv.model import ModelShape
from gateway.core.kv.page_group import PageGroup
from gateway.core.kv.sequence_cells import cache_cells, window_cells
from gateway.core.kv.token_pool import TokenPool, token_pool

GIB, MIB = 1 << 30, 1 << 20


def known(name: str) -> ModelShape:
    model = catalog.known_model(name)
    assert model is not None
    return model


def of(*layers: AttentionLayers, draft_layers: int = 0) -> ModelShape:
    return ModelShape("m", layers, max_context=4096, draft_layers=draft_layers)


def vllm(name: str, **given: object) -> BlockPool:
    return block_pool(known(name), Deployment(**given))  # type: ignore[arg-type]


def llama_cpp(model: ModelShape, **given: object) -> CellPool:
    return cell_pool(model, Deployment(engine="llama.cpp", **given))  # type: ignore[arg-type]


def sglang(model: ModelShape, **given: object) -> TokenPool:
    return token_pool(model, Deployment(engine="sglang", **given))  # type: ignore[arg-type]


def counts(pool: BlockPool) -> list[tuple[int, int, int]]:
    return [(group.count, group.layers, group.padding) for group in pool.groups]


class TestGroups:
    def test_equal_numbers_of_layers(self) -> None:
        assert counts(vllm("gpt-oss-20b")) == [(1, 12, 0), (1, 12, 0)]
        assert counts(vllm("Gemma-3-27B")) == [(1, 10, 0), (6, 10, 8)]
        assert counts(vllm("Llama-4-Scout-17B-16E")) == [(1, 12, 0), (3, 12, 0)]

    def test_close_classes_take_the_larger_size(self) -> None:
        # gpt-oss-20b with a drafting layer: 13 and 12 layers become two groups of 13, not three of 12.
        pool = block_pool(of(FullGqa(13, 8, 64), SlidingGqa(12, 8, 64, 128)), Deployment())
        assert counts(pool) == [(1, 13, 0), (1, 13, 1)]
        wider = block_pool(of(FullGqa(18, 8, 64), SlidingGqa(12, 8, 64, 128)), Deployment())
        assert counts(wider) == [(2, 12, 6), (1, 12, 0)]

    def test_layers_of_one_kind_share_a_table_whatever_their_rows(self) -> None:
        pool = block_pool(of(Mla(61, 512, 64, 656), DsaIndexer(61)), Deployment(kv_dtype=KvDtype.FP8))
        assert len(pool.groups) == 1
        assert pool.block_bytes == 61 * 64 * (656 + 132)

    def test_smaller_pages_take_more_tokens(self) -> None:
        full, sliding = vllm("Gemma-4-31B").groups
        assert (full.block, sliding.block) == (32, 16)
        assert full.page_bytes == sliding.page_bytes == 10 * 16 * 16 * 512 * 2

    def test_pages_that_do_not_divide_are_padded(self) -> None:
        pool = block_pool(of(FullGqa(4, 3, 128), SlidingGqa(4, 4, 128, 512)), Deployment())
        assert {group.block for group in pool.groups} == {16}
        assert {group.page_bytes for group in pool.groups} == {4 * 16 * 4 * 256 * 2}

    def test_layers_that_borrow_their_cache_cost_nothing(self) -> None:
        own, shared = of(FullGqa(4, 2, 256)), of(FullGqa(4, 2, 256), KvShared(15))
        assert block_pool(own, Deployment()).block_bytes == block_pool(shared, Deployment()).block_bytes


class TestReserves:
    def test_a_window_holds_the_chunk_in_flight(self) -> None:
        group = PageGroup(Kind.SLIDING, "w", 10, 16, 1, window=1024)
        assert group.held(100_000) == 64 + 1
        assert group.admitted(100_000, 8192) == -(-(1023 + 8192) // 16) + 1
        assert group.admitted(100_000, 16_384) == -(-(1023 + 16_384) // 16) + 1
        assert group.admitted(100, 8192) == 7 + 1

    def test_a_chunk_is_held_whole(self) -> None:
        pool = block_pool(of(ChunkedLocalGqa(4, 2, 128, 8192), FullGqa(4, 2, 128)), Deployment())
        assert pool.request_blocks(1_000_000) == 62_500 + 512
        assert pool.admission_blocks(1_000_000) == 62_500 + 1024

    def test_sessions_share_one_reserve(self) -> None:
        pool = vllm("Gemma-3-27B")
        settled, first = pool.request_blocks(8192), pool.admission_blocks(8192)
        assert first > 2 * settled
        assert pool.sequences((first + 9 * settled + 1) * pool.block_bytes, 8192) == 10
        assert pool.sequences(first * pool.block_bytes, 8192) == 0

    def test_asynchronous_scheduling_doubles_what_is_in_flight(self) -> None:
        one, two = vllm("gpt-oss-120b"), vllm("gpt-oss-120b", overlapping_batches=2)
        assert two.admission_blocks(100_000) - one.admission_blocks(100_000) == 8192 // 16
        assert two.request_blocks(100_000) == one.request_blocks(100_000)


class TestDeepSeekV4:
    def test_in_flight_bound_and_settled_holding(self) -> None:
        pool = vllm("DeepSeek-V4-Flash", kv_dtype=KvDtype.FP8, context=30_000)
        own = sum(group.admitted(30_000, 8192) * group.page_bytes for group in pool.groups)
        assert own / GIB == pytest.approx(2.6, abs=0.05)
        assert pool.admission_bytes(30_000) / GIB == pytest.approx(3.24, abs=0.01)
        growing = pool.stored_bytes(1_256_000) - pool.stored_bytes(1_000_000)
        assert growing == 1000 * 1_002_240
        windows = pool.stored_bytes(256_000) - 1000 * 1_002_240
        assert 15_000_000 < windows < 19_000_000

    def test_every_rank_holds_it_whole(self) -> None:
        one, eight = vllm("DeepSeek-V4-Flash"), vllm("DeepSeek-V4-Flash", tensor_parallel=8)
        assert eight.block_bytes == one.block_bytes
        assert eight.total_bytes(10_000) == 8 * one.total_bytes(10_000)

    def test_the_first_layout_that_printed_6_66_gib(self) -> None:
        # vLLM 0.22 gave every block 22 slots of each page size, and two chunks of 8192 tokens were in flight.
        pool = vllm("DeepSeek-V4-Flash", kv_dtype=KvDtype.FP8, context=30_000, overlapping_batches=2)
        assert pool.admission_blocks(30_000) == 6800
        needed = pool.admission_blocks(30_000) * 22 * (37_440 + 8640 + 1728)
        assert needed / GIB == pytest.approx(6.66, abs=0.005)


class TestHybrids:
    def test_the_block_grows_to_the_state(self) -> None:
        assert hybrid_block(3_207_168, 2 * 4 * 256) == 1568
        assert hybrid_block(3_207_168, 2 * 4 * 256 * 2) == 784
        assert vllm("Qwen3.6-35B-A3B", kv_dtype=KvDtype.FP8).block == 2096
        assert vllm("Kimi-K3").block % 128 == 0

    def test_the_worked_example(self) -> None:
        pool = vllm("Qwen3.6-35B-A3B", kv_dtype=KvDtype.FP8, context=131_072)
        assert pool.blocks_in(int(5.98 * GIB)) == 299
        assert pool.request_blocks(131_072) == 63 + 3 * 2
        assert pool.concurrency(int(5.98 * GIB)) == pytest.approx(4.33, abs=0.005)
        without = vllm("Qwen3.6-35B-A3B", kv_dtype=KvDtype.FP8, prefix_caching=False)
        assert without.request_blocks(131_072) == 63 + 3

    def test_drafts_add_layers_pages_and_inputs(self) -> None:
        pool = vllm("Qwen3.6-35B-A3B", kv_dtype=KvDtype.FP8, draft_tokens=2)
        assert pool.block == 2128
        assert counts(pool) == [(1, 11, 0), (3, 11, 3)]
        assert pool.request_blocks(262_144) == 124 + 3 * 4

    def test_states_in_16_bit_make_smaller_blocks(self) -> None:
        half = vllm("Nemotron-3-Nano-30B-A3B", state_element_bytes=2)
        assert half.block < vllm("Nemotron-3-Nano-30B-A3B").block


class TestRanks:
    def test_fewer_heads_than_ranks_are_copied(self) -> None:
        four = vllm("Qwen3-235B-A22B", tensor_parallel=4)
        eight = vllm("Qwen3-235B-A22B", tensor_parallel=8)
        assert four.block_bytes == eight.block_bytes
        assert eight.total_bytes(1600) == 2 * four.total_bytes(1600) == 8 * 48_128 * 1600

    def test_the_fullest_stage_bounds_the_pool(self) -> None:
        whole, staged = vllm("Qwen3-235B-A22B"), vllm("Qwen3-235B-A22B", pipeline_parallel=4)
        assert staged.block_bytes * 94 == whole.block_bytes * 24
        assert staged.total_bytes(1600) == whole.total_bytes(1600)

    def test_states_are_split(self) -> None:
        one = vllm("Qwen3.6-27B", kv_dtype=KvDtype.FP8)
        two = vllm("Qwen3.6-27B", kv_dtype=KvDtype.FP8, tensor_parallel=2)
        assert one.block == two.block == 1568
        assert one.block_bytes == 2 * two.block_bytes


class TestLlamaCpp:
    def test_cells_are_rounded_up_for_each_slot(self) -> None:
        assert cache_cells(1024, 3) == 3 * 512
        assert cache_cells(1000, 3, unified=True) == 1024
        pool = llama_cpp(of(FullGqa(2, 2, 64)), context=8192, slots=4)
        assert (pool.cells, pool.slot_cells) == (8192, 2048)
        assert pool.sequences(GIB, 2048) == 4
        assert pool.sequences(GIB, 2049) == 0

    def test_a_unified_cache_lets_one_request_have_it_all(self) -> None:
        pool = llama_cpp(of(FullGqa(2, 2, 64)), context=8192, slots=4, unified=True)
        assert pool.sequences(GIB, 8192) == 1
        assert pool.sequences(GIB, 3000) == 2
        assert pool.sequences(GIB, 10) == 4

    def test_windows_are_allocated_at_start(self) -> None:
        assert window_cells(32_768, 1024, 4) == 4608
        assert window_cells(512, 1024, 4) == 512
        row = 5 * 4 * 256 * 2 * 2
        model = of(SlidingGqa(5, 4, 256, 1024), FullGqa(1, 4, 256))
        assert llama_cpp(model, context=32_768, slots=4, unified=True).fixed_bytes == 4608 * row
        assert llama_cpp(model, context=32_768, slots=4).fixed_bytes == 4 * 1536 * row

    def test_keys_and_values_of_different_types(self) -> None:
        pool = llama_cpp(of(FullGqa(1, 8, 128)), kv_dtype=KvDtype.Q8_0, value_dtype=KvDtype.Q4_0)
        assert pool.block_bytes == 8 * 128 * 34 // 32 + 8 * 128 * 18 // 32

    def test_one_state_a_slot_with_its_tail_in_fp32(self) -> None:
        pool = llama_cpp(known("Qwen3.6-27B"), context=8192, slots=4, unified=True)
        assert pool.state_bytes == 48 * (48 * 128 * 128 * 4 + (2 * 16 * 128 + 48 * 128) * 3 * 4)
        assert pool.fixed_bytes == 4 * pool.state_bytes
        assert pool.allocated_bytes == pool.fixed_bytes + 8192 * 16 * 4 * 512 * 2

    def test_ranks_change_nothing(self) -> None:
        model = known("Llama-3.1-8B")
        assert llama_cpp(model, tensor_parallel=8).allocated_bytes == llama_cpp(model).allocated_bytes


class TestSglang:
    def test_one_pool_of_tokens(self) -> None:
        pool = sglang(known("Llama-3.1-8B"), block=64)
        assert pool.capacity_tokens(64 * 131_072 * 10 + 5) == 640
        assert pool.request_blocks(65) == 2
        assert pool.sequences(64 * 131_072 * 10, 65) == 5

    def test_windows_have_a_pool_of_their_own(self) -> None:
        pool = sglang(known("Gemma-3-27B"))
        assert pool.token_bytes == 10 * 16 * 256 * 2 + 0.8 * 52 * 16 * 256 * 2
        tokens = 100_000
        assert pool.capacity_tokens(tokens * pool.block_bytes) == tokens
        assert pool.sequences(tokens * pool.block_bytes, 10_000) == 10
        assert pool.sequences(tokens * pool.block_bytes, 1000) == 80
        assert pool.admission_bytes(20_000) > pool.request_bytes(20_000)

    def test_a_model_of_windows_only_has_no_ratio(self) -> None:
        pool = sglang(of(SlidingGqa(10, 2, 64, 512)))
        assert pool.block_bytes == 10 * 2 * 128 * 2

    def test_states_take_their_share_of_the_memory(self) -> None:
        pool = sglang(known("Qwen3.6-27B"))
        state = known("Qwen3.6-27B").kv().state_bytes
        slots = int(100 * GIB * 0.9 / 1.9) // state - 1
        assert pool.state_bytes == state
        assert pool.sequences(100 * GIB, 100) == slots // 3
        assert pool.blocks_in(100 * GIB) == (100 * GIB - (slots + 1) * state) // 65_536
        assert sglang(known("Qwen3.6-27B"), prefix_caching=False).sequences(100 * GIB, 100) == slots


class TestSteps:
    def test_a_hybrid_is_spelt_out(self) -> None:
        pool = vllm("Qwen3.6-35B-A3B", kv_dtype=KvDtype.FP8, context=131_072)
        lines = {step.label: (step.formula, step.value, step.unit) for step in pool.steps}
        assert lines["full attention, 10 layers"] == ("2 heads x (256 + 256) x 1 B", 1024, "bytes a token and layer")
        assert lines["gated delta net, 30 layers"] == (
            "32 x 128 x 128 x 4 B + (2 x 16 x 128 + 32 x 128) x 3 x 2 B",
            2_146_304,
            "bytes a request and layer",
        )
        assert lines["block"][1:] == (2096, "tokens")
        assert lines["block of gated delta net"] == (
            "10 layers x 2146304 B for a state, 3 groups alike",
            21_463_040,
            "bytes",
        )
        assert lines["blocks of full attention"] == ("ceil(131072 / 2096)", 63, "blocks")
        assert lines["blocks of gated delta net"] == ("3 x 2 states", 6, "blocks")
        assert lines["a request of 131072 tokens on one rank"][:2] == ("69 x 21463040", 69 * 21_463_040)
        assert [step.value for step in pool.steps_in(int(5.98 * GIB))] == [299, 4.33, 567_978]

    def test_formulas_come_out(self) -> None:
        for name in ("Qwen3.6-27B", "Nemotron-3-Nano-30B-A3B", "Kimi-K3", "MiMo-V2-Flash"):
            for step in vllm(name, tensor_parallel=2).steps:
                if step.unit.startswith("bytes a") and "for" not in step.formula:
                    plain = step.formula.replace(" heads", "").replace(" B", "").replace(" x ", " * ")
                    assert eval(plain, {"__builtins__": {}}) == step.value, step

    def test_pools_that_a_model_does_not_need_are_not_mentioned(self) -> None:
        for pool in (llama_cpp(known("Llama-3.1-8B")), sglang(known("Llama-3.1-8B"))):
            assert not any("window" in step.label or "state" in step.label for step in pool.steps)
        for pool in (llama_cpp(known("Gemma-3-27B")), sglang(known("Gemma-3-27B"))):
            assert any("window" in step.label for step in pool.steps)

    def test_padding_is_said(self) -> None:
        assert any("with 8 layers of padding" in step.formula for step in vllm("Gemma-3-27B").steps)

    def test_an_encoder_says_that_it_keeps_nothing(self) -> None:
        (step,) = vllm("bge-m3").steps
        assert step.formula == "no layer keeps anything"
