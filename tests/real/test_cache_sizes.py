"""What a GGUF header says the cache takes, against what the real llama.cpp prints when it allocates it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.config.model_files.gguf_files import described_by_gguf
from gateway.core.kv.deployment import Deployment
from gateway.core.kv.pool_plan import plan_pool
from gateway.local.launch import LlamaServer
from tests.real.odd_models import ODD_MODELS

MIB = 1024**2
# Each buffer's lines give two decimals; "cells" lines are one a cache: full, windowed, states.
SIZES = re.compile(r"llama_(?:kv_cache|memory_recurrent): size = +([\d.]+) MiB")
SERVING = pytest.mark.parametrize(
    ("context", "slots", "unified"), [(4096, 1, False), (8192, 3, False), (4096, 2, True)]
)


async def allocated(model: Path, folder: Path, context: int, slots: int, *, unified: bool) -> tuple[int, int]:
    """(bytes that the engine printed, how many lines they come from)."""
    log = folder / "server.log"
    flags = ("-lv", "4", *(("--kv-unified",) if unified else ()))
    server = LlamaServer(model, "sizes", context=context, slots=slots, flags=flags, log=log)
    try:
        await server.start()
    finally:
        await server.stop()
    found = [float(size) for size in SIZES.findall(log.read_text("utf-8", "replace"))]
    return round(sum(found) * MIB), len(found)


async def compare(model: Path, folder: Path, context: int, slots: int, *, unified: bool) -> None:
    shape = described_by_gguf(model).shape
    served = Deployment("llama.cpp", context=context, slots=slots, unified=unified, micro_batch=256)
    printed, lines = await allocated(model, folder, context, slots, unified=unified)
    assert lines > 0
    assert plan_pool(shape, served).allocated_bytes == pytest.approx(printed, abs=lines * 0.0051 * MIB)


@SERVING
async def test_small_llama(smollm2: Path, tmp_path: Path, context: int, slots: int, unified: bool) -> None:
    await compare(smollm2, tmp_path, context, slots, unified=unified)


@pytest.mark.parametrize(("kind", "unified"), [*((kind, False) for kind in ODD_MODELS), ("gemma3", True)])
async def test_odd_caches(tiny_model: Path, tmp_path: Path, kind: str, unified: bool) -> None:
    model = ODD_MODELS[kind](tmp_path / f"{kind}.gguf", tiny_model)
    await compare(model, tmp_path, 8192, 3, unified=unified)
