from __future__ import annotations

from typing import Any

import pytest

from gateway.core.kv.engine_pool import EnginePool
from gateway.engines.sglang import SgLang
from tests.engines.cases import answer

SGLANG = SgLang()


def test_the_older_names_are_asked_only_where_the_new_ones_are_not_there() -> None:
    there = {"/server_info": answer({}), "/model_info": answer({})}
    gone = {"/server_info": answer("", 404), "/model_info": answer("", 404)}
    assert SGLANG.follow_up(there) == ()
    assert [probe.path for probe in SGLANG.follow_up(gone)] == ["/get_server_info", "/get_model_info"]
    assert SGLANG.follow_up({"/server_info": answer("", 500)}) == ()


def test_health_is_never_asked_since_it_generates() -> None:
    assert not [probe for probe in (*SGLANG.discovery, *SGLANG.loading) if "health" in probe.path]


@pytest.mark.parametrize(
    ("info", "pool", "slots", "block"),
    [
        ({"max_total_num_tokens": 5000, "max_running_requests": 7, "page_size": 1}, 5000, 7, 1),
        ({"max_total_num_tokens": 5000, "internal_states": [{}, {}]}, 10000, None, None),
        ({"max_total_num_tokens": "x", "internal_states": None, "page_size": 0}, None, None, None),
        ({"internal_states": [3, {"memory_usage": 4, "effective_max_running_requests_per_dp": 2}]}, None, 2, None),
    ],
)
def test_sizes(info: dict[str, Any], pool: int | None, slots: int | None, block: int | None) -> None:
    facts = SGLANG.facts({"/server_info": answer(info)})
    assert (facts.pool_tokens, facts.slots, facts.block) == (pool, slots, block)


def test_a_window_is_not_over_the_pool() -> None:
    listed = {
        "/v1/models": answer({"data": [{"id": "m", "max_model_len": 8192}, {"id": "lora", "max_model_len": None}]})
    }
    whole = SGLANG.facts(listed)
    small = SGLANG.facts(listed | {"/server_info": answer({"max_total_num_tokens": 5000})})
    assert [model.window for model in whole.models] == [8192, None]
    assert [model.window for model in small.models] == [5000, None]


def test_an_embedding_model_has_routes_for_chat_and_no_chat() -> None:
    paths = answer({"paths": {"/v1/chat/completions": {}, "/v1/embeddings": {}, "/v1/rerank": {}}})
    embeds = {"/model_info": answer({"is_generation": False})}
    assert SGLANG.facts(embeds | {"/openapi.json": paths}).surfaces == {"embeddings", "rerank"}
    assert SGLANG.facts(embeds).surfaces == {"embeddings", "rerank", "tokenize", "detokenize"}
    assert SGLANG.facts({"/server_info": answer({"is_embedding": True})}).surfaces is not None


def test_what_is_not_told_is_noted() -> None:
    notes = " ".join(SGLANG.facts({"/server_info": answer({"disable_radix_cache": True, "version": "x"})}).notes)
    assert "--enable-metrics" in notes
    assert "--enable-cache-report" in notes
    assert "--disable-radix-cache" in notes


def test_its_key_shows_nowhere() -> None:
    facts = SGLANG.facts({"/server_info": answer({"api_key": "sk-secret", "admin_api_key": "sk-secret"})})
    assert "sk-secret" not in repr(facts)


def test_the_pool_beyond_its_tokens() -> None:
    info = {
        "kv_cache_dtype": "fp8_e4m3",
        "mem_fraction_static": 0.85,
        "disable_radix_cache": True,
        "internal_states": [{"memory_usage": {"kvcache": 10.5, "token_capacity": 1000}}] * 2,
    }
    pool = SGLANG.facts({"/server_info": answer(info)}).pool
    assert pool == EnginePool(
        bytes=int(10.5 * 1024**3), dtype="fp8_e4m3", memory_share=0.85, prefix_caching=False, groups=2
    )
    odd = {
        "kv_cache_dtype": "auto",
        "mem_fraction_static": "x",
        "internal_states": [{"memory_usage": {"kvcache": "x"}}],
    }
    assert SGLANG.facts({"/server_info": answer(odd)}).pool == EnginePool()
