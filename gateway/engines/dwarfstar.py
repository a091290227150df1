"""DwarfStar (ds4-server): DeepSeek and GLM on machines that people own.

Read: antirez/ds4, docs/SERVER.md and README.md (mid-2026), ds4_server.c (May 2026: routes, model list, the worker and
its queue), its pull request 150 and a report of its words for a prompt that is too long. Nothing of it was run.

There is one session, or as many as `--batched-session` says, each with a KV cache of its own; further requests wait in
line without a limit. Prefixes that were pushed out are kept on disk where `--kv-disk-dir` is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gateway.engines.adapter import Answer, Facts, FoundModel, Probe, Traits
from gateway.engines.answers import count, json_list
from gateway.engines.asking import Asked

__all__ = ["DwarfStar"]


@dataclass(frozen=True, slots=True)
class DwarfStar(Asked):
    """Streams are always asked for: the worker notices that a client has left when a write to it fails.

    Its routes are not probed: they are few, and the same in all versions.
    """

    name: ClassVar[str] = "dwarfstar"
    traits: ClassVar[Traits] = Traits(
        shares_prefix=False,
        block=1,
        stream_always=True,
        max_n_is_slots=False,
        abort_settle_s=3.0,
        poll_floor_s=5.0,
        reports_cached=False,
        default_slots=1,
        surfaces=frozenset(("chat", "completions", "responses", "messages")),
    )
    discovery: ClassVar[tuple[Probe, ...]] = (Probe("GET", "/v1/models"),)
    loading: ClassVar[tuple[Probe, ...]] = (Probe("GET", "/v1/models"),)

    def facts(self, answers: Mapping[str, Answer]) -> Facts:
        """Windows from `/v1/models`; sessions are not told."""
        models = tuple(
            FoundModel(id=item["id"], window=_window(item))
            for item in json_list(answers, "/v1/models", "data")
            if isinstance(item.get("id"), str)
        )
        return Facts(
            models=models,
            block=self.traits.block,
            abilities=frozenset({"tools"}),
            notes=(
                "DwarfStar does not tell its sessions: set `running` to --batched-session, and `kv_pool` to that many "
                "windows",
                "DwarfStar does not tell whether it sees images: set abilities.vision where it runs with --vision",
            ),
        )


def _window(item: Mapping[str, Any]) -> int | None:
    provider = item.get("top_provider")
    behind = provider.get("context_length") if isinstance(provider, dict) else None
    return count(item.get("context_length")) or count(behind)
