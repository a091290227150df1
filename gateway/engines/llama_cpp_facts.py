"""What llama.cpp's server tells of its model, slots and KV cache, and what must be assumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.engines.answers import count
from gateway.engines.told import FoundModel

__all__ = ["AUTO_SLOTS", "abilities_of", "found_model", "pool_of"]

AUTO_SLOTS = 4
"""Slots without `-np`; only then is the KV cache unified without being asked for."""


def found_model(item: Mapping[str, Any], window: int | None) -> FoundModel:
    """An entry of `/v1/models` that has an id; `window` in tokens, where the entry tells none."""
    meta = item.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    aliases = item.get("aliases")
    names = [name for name in aliases if isinstance(name, str)] if isinstance(aliases, list) else []
    return FoundModel(
        id=item["id"],
        aliases=tuple(name for name in names if name != item["id"]),
        window=count(meta.get("n_ctx")) or window,
        trained_window=count(meta.get("n_ctx_train")),
        params=count(meta.get("n_params")),
        size_bytes=count(meta.get("size")),
    )


def pool_of(
    window: int | None, trained: int | None, slots: int | None
) -> tuple[bool | None, int | None, tuple[str, ...]]:
    """(unified, tokens, what was assumed) of the KV cache, from the tokens of one slot and of training.

    `n_ctx` is what one slot may use. Split, the pool is that times the slots; unified, it is that alone. The server
    does not tell which.
    """
    if window is None or slots is None:
        return None, None, ("llama.cpp did not tell its slots and context: is /props reachable?",)
    if slots == 1:
        return False, window, ()
    if slots == AUTO_SLOTS and window == trained:
        note = f"assumed one KV cache of {window} tokens shared by {slots} slots (no -np); set kv_pool if it is split"
        return True, window, (note,)
    when = "without -np or with --kv-unified" if slots == AUTO_SLOTS else "with --kv-unified"
    note = f"taken as {slots} slots of {window} tokens each"
    if slots == AUTO_SLOTS:
        note += ", or as one cache if those would not fit the device"
    note += f"; if it runs {when}, set kv_pool to {window} tokens"
    return False, window * slots, (note,)


def abilities_of(props: Mapping[str, Any]) -> frozenset[str]:
    """What its template and modalities say that it can do, from `/props`."""
    found = {"json_schema", "logprobs"}
    caps, modalities = props.get("chat_template_caps"), props.get("modalities")
    if isinstance(caps, dict) and (caps.get("supports_tools") or caps.get("supports_tool_calls")):
        found.add("tools")
    if isinstance(modalities, dict):
        found |= {kind for kind in ("vision", "audio") if modalities.get(kind) is True}
    return frozenset(found)
