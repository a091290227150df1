"""The arithmetic against what engines printed about themselves (public issues and logs, kv_observations.csv)."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.config import catalog
from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.grouped import FullGqa
from gateway.core.kv.hybrid_paging import HybridPaging, hybrid_block
from gateway.core.kv.packed_paging import packed_page
from gateway.core.kv.sequence_cells import cache_cells, window_cells

GIB, MIB = 1 << 30, 1 << 20
TABLE = Path(__file__).with_name("kv_observations.csv").read_text("utf-8")
ROWS = {row["id"]: row for row in csv.DictReader(TABLE.splitlines())}
UNITS = {"GiB": GIB, "MiB": MIB, "tokens": 1, "bytes": 1}

STATE_35B = 32 * 128 * 128 * 4 + (2 * 16 * 128 + 32 * 128) * 3 * 2
STATE_27B = 48 * 128 * 128 * 4 + (2 * 16 * 128 + 48 * 128) * 3 * 2
QWEN_35B = HybridPaging(STATE_35B, attention_bytes_per_token=1024, group_layers=10, state_groups=3)
QWEN_27B_TP2 = HybridPaging(STATE_27B // 2, attention_bytes_per_token=1024, group_layers=16, state_groups=3)


def sequence(row: dict[str, str], ranks: int = 1, share: float = 1.0) -> float:
    model = catalog.known_model(row["model"])
    assert model is not None
    tp = int(row["tp"])
    return model.kv(KvDtype.parse(row["kv_dtype"]), tp).bytes(int(row["tokens"])) * share / ranks


COMPUTED: dict[str, Callable[[dict[str, str]], float]] = {
    **dict.fromkeys(("D01", "D02", "D03", "D04", "D05", "D14", "D16"), sequence),
    "D12": lambda row: sequence(row, ranks=4, share=0.5),
    "D15": lambda row: sequence(row, ranks=4),
    "D06": lambda row: QWEN_35B.capacity_tokens(int(5.98 * GIB), int(row["tokens"])),
    "D07": lambda row: QWEN_27B_TP2.capacity_tokens(int(9.84 * GIB), int(row["tokens"])),
    "D08": lambda row: hybrid_block(STATE_27B, 2 * 4 * 256),
    "D09": lambda row: 21 * packed_page(64, 584) + 21 * packed_page(64, 132) + 20 * packed_page(2, 584),
    "D10": lambda row: 21 * (packed_page(4, 8192) + packed_page(4, 2048)),
    "D11": lambda row: 20 * packed_page(8, 4096),
    "D13": lambda row: FullGqa(18, 1, 256).shape(KvDtype.F16).bytes(cache_cells(int(row["tokens"]), 3)),
}


def test_every_observation_is_computed() -> None:
    assert set(COMPUTED) == set(ROWS)


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row["id"])
def test_observation(row: dict[str, str]) -> None:
    observed = float(row["observed"]) * UNITS[row["unit"]]
    assert COMPUTED[row["id"]](row) == pytest.approx(observed, rel=float(row["tolerance"]), abs=0)


def test_block_follows_the_cache_dtype() -> None:
    assert hybrid_block(STATE_27B, 2 * 4 * 256) == 1568
    assert hybrid_block(STATE_27B, 2 * 4 * 256 * 2) == 784
    assert QWEN_35B.block == 2096


def test_worked_example_of_a_hybrid_pool() -> None:
    assert QWEN_35B.pool_blocks(int(5.98 * GIB)) == 299
    assert QWEN_35B.request_blocks(131_072) == 63 + 3 * 2
    without = HybridPaging(STATE_35B, 1024, 10, 3, prefix_caching=False)
    assert without.request_blocks(131_072) == 63 + 3


def test_llama_cpp_cells() -> None:
    assert cache_cells(1024, 3) == 3 * 512
    assert cache_cells(1000, 3, unified=True) == 1024
    assert window_cells(32_768, 1024, 4) == 4608
    assert window_cells(512, 1024, 4) == 512
