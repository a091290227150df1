"""The tokenizer files that the backends of a policy name, by model."""

from __future__ import annotations

from pathlib import Path

from gateway.config.policy import Policy

__all__ = ["tokenizer_files"]


def tokenizer_files(policy: Policy) -> dict[str, Path]:
    """By model id; where backends name several for one model, the first."""
    files: dict[str, Path] = {}
    for backend in policy.backends:
        for model in backend.models:
            if model.tokenizer is not None:
                files.setdefault(model.id, model.tokenizer)
    return files
