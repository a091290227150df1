"""The arithmetic against what engines printed about themselves (public issues and logs, kv_observations.csv)."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.config import catalog
from gateway.core.kv.block_pool import BlockPool
from gateway.core.kv.cell_pool import CellPool
from gateway.core.kv.deployment import Deployment
from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.grouped import FullGqa, SlidingGqa
from gateway.core.kv.latent import Mla
from gateway.core.kv.layers import AttentionLayers
from gateway.core.kv.model import ModelShape
from gateway.core.kv.pool_plan import PoolPlan, plan_pool
from gateway.core.kv.recurrent import GatedDeltaNet, Kda, Mamba2
from gateway.core.kv.token_pool import TokenPool

GIB, MIB = 1 << 30, 1 << 20
TABLE = Path(__file__).with_name("kv_observations.csv").read_text("utf-8")
ROWS = list(csv.DictReader(TABLE.splitlines()))
UNITS = {"GiB": GIB, "MiB": MIB}

ELSEWHERE: dict[str, tuple[AttentionLayers, ...]] = {
    "gemma-3-270m": (FullGqa(3, 1, 256), SlidingGqa(15, 1, 256, window=512)),
    "Gemma-4-12B": (FullGqa(8, 1, 512), SlidingGqa(40, 8, 256, window=1024)),
    "gemma-3-1b": (FullGqa(4, 1, 256), SlidingGqa(22, 1, 256, window=512)),
    "Qwen3.5-9B": (FullGqa(8, 4, 256), GatedDeltaNet(24, 16, 32, 128, 128)),
    "GLM-4.7-Flash": (Mla(47, 512, 64),),
    "Nemotron-Nano-9B-v2": (FullGqa(4, 8, 128), Mamba2(27, 128, 80, 128, 8)),
}
"""Layers of models that the catalogue doesn't list."""
SETTINGS = {"draft_tokens", "slots", "unified", "micro_batch", "batched_tokens", "overlapping_batches", "block"} | {
    "prefix_caching",
    "state_element_bytes",
}
SWITCHES = {"unified", "prefix_caching"}


def settings(row: dict[str, str]) -> dict[str, float]:
    return {name: float(value) for name, value in (pair.split("=") for pair in row["settings"].split())}


def planned(row: dict[str, str]) -> PoolPlan:
    known = catalog.known_model(row["model"])
    model = known if known is not None else ModelShape(row["model"], ELSEWHERE[row["model"]])
    given: dict[str, Any] = {
        name: bool(value) if name in SWITCHES else int(value)
        for name, value in settings(row).items()
        if name in SETTINGS
    }
    if row["engine"] == "vllm":
        given.pop("block", None)
    return plan_pool(
        model,
        Deployment(
            engine=row["engine"],
            kv_dtype=KvDtype.parse(row["kv_dtype"]),
            tensor_parallel=int(row["tp"]),
            context=int(row["context"]),
            **given,
        ),
    )


def pool(row: dict[str, str], plan: PoolPlan) -> int:
    given = settings(row)
    return int(given["blocks"]) * plan.block_bytes if "blocks" in given else int(given["pool"] * GIB)


def page(row: dict[str, str], plan: PoolPlan) -> float:
    assert isinstance(plan, BlockPool)
    return next(group.page_bytes for group in plan.groups if group.block == settings(row)["block"])


def cells(row: dict[str, str], plan: PoolPlan) -> float:
    assert isinstance(plan, CellPool)
    return plan.cell_bytes * int(row["context"])


def windows(row: dict[str, str], plan: PoolPlan) -> float:
    assert isinstance(plan, CellPool)
    return plan.fixed_bytes - plan.state_bytes * plan.slots


def states(row: dict[str, str], plan: PoolPlan) -> float:
    assert isinstance(plan, CellPool)
    return plan.state_bytes * plan.slots


def both_pools(row: dict[str, str], plan: PoolPlan) -> float:
    assert isinstance(plan, TokenPool)
    return (plan.growing + plan.windowed) * int(row["context"])


def state_pool(row: dict[str, str], plan: PoolPlan) -> float:
    assert isinstance(plan, TokenPool)
    return plan.state_bytes * settings(row)["states"]


def state_layer(row: dict[str, str], plan: PoolPlan) -> float:
    assert isinstance(plan, TokenPool)
    known = catalog.known_model(row["model"])
    assert known is not None
    return plan.state_bytes / sum(layers.layers for layers in known.layers if isinstance(layers, Kda))


def windowed_pool(row: dict[str, str], plan: PoolPlan) -> float:
    assert isinstance(plan, TokenPool)
    return plan.windowed * int(row["context"])


def shared_pools(row: dict[str, str], plan: PoolPlan) -> float:
    assert isinstance(plan, TokenPool)
    return plan.token_bytes * int(row["context"])


def cell(row: dict[str, str], plan: PoolPlan) -> float:
    assert isinstance(plan, TokenPool)
    return plan.token_bytes


def keys(row: dict[str, str], plan: PoolPlan) -> float:
    assert isinstance(plan, TokenPool)
    return plan.growing * int(row["context"]) / 2


COMPUTED: dict[str, Callable[[dict[str, str], PoolPlan], float]] = {
    "request": lambda row, plan: plan.total_bytes(int(row["context"])),
    "rank": lambda row, plan: plan.request_bytes(int(row["context"])),
    "admission": lambda row, plan: plan.admission_bytes(int(row["context"])),
    "blocks": lambda row, plan: plan.blocks_in(pool(row, plan)),
    "concurrency": lambda row, plan: plan.concurrency(pool(row, plan)),
    "logged": lambda row, plan: plan.capacity_tokens(pool(row, plan)),
    "block": lambda row, plan: plan.block,
    "allocated": lambda row, plan: plan.allocated_bytes,
    "page": page,
    "cells": cells,
    "windows": windows,
    "states": states,
    "both pools": both_pools,
    "state pool": state_pool,
    "state layer": state_layer,
    "windowed pool": windowed_pool,
    "shared pools": shared_pools,
    "cell": cell,
    "keys": keys,
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_observation(row: dict[str, str]) -> None:
    observed = float(row["observed"]) * UNITS.get(row["unit"], 1)
    computed = COMPUTED[row["quantity"]](row, planned(row))
    assert computed == pytest.approx(observed, rel=float(row["tolerance"]), abs=0)


def test_every_observation_names_its_source() -> None:
    assert all(row["source"] for row in ROWS)
    assert len({row["id"] for row in ROWS}) == len(ROWS) > 70
