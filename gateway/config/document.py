"""The whole file: settings that only a restart changes, and the policy that a reload changes."""

from __future__ import annotations

from gateway.config.policy import Policy
from gateway.config.settings import Settings

__all__ = ["Config"]


class Config(Settings, Policy):
    """A kvgate policy file."""

    @property
    def settings(self) -> Settings:
        """The part that is read once, at start."""
        return Settings.model_construct(**{name: getattr(self, name) for name in Settings.model_fields})

    @property
    def policy(self) -> Policy:
        """The part that a reload changes."""
        return Policy.model_construct(**{name: getattr(self, name) for name in Policy.model_fields})
