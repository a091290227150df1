"""Cache formats: a number format of the KV cache that the backend's engine doesn't have."""

from __future__ import annotations

from gateway.config.document import Config
from gateway.config.rules.findings import Findings
from gateway.core.kv.engine_limits import refused_format

__all__ = ["cache_format"]


def cache_format(config: Config, findings: Findings) -> None:
    """Warn where a model is declared with a format that its engine would refuse at start."""
    for i, backend in enumerate(config.backends):
        for j, model in enumerate(backend.models):
            if refused := refused_format(backend.engine, model.kv):
                message, _, hint = refused.partition("; ")
                findings.warn(("backends", i, "models", j, "kv"), message, hint)
