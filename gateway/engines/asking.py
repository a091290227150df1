"""How an engine is asked where its adapter does not say otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from gateway.engines.adapter import Answer, Probe, Traits
from gateway.wire.surfaces import SURFACES

__all__ = ["Asked"]


class Asked:
    """The usual paths, the usual credential, nothing more to ask; what the traits name is dropped."""

    __slots__ = ()
    traits: ClassVar[Traits]

    def follow_up(self, answers: Mapping[str, Answer]) -> tuple[Probe, ...]:
        """Nothing."""
        del answers
        return ()

    def path(self, surface: str) -> str:
        """The surface's usual path. Raises KeyError for a name that is none."""
        return SURFACES[surface].path

    def surface_edits(self, surface: str) -> Mapping[str, bytes | None]:
        """What the traits name is dropped."""
        del surface
        return dict.fromkeys(self.traits.drops)

    def credential(self, key: str) -> tuple[str, str]:
        """A bearer token."""
        return "Authorization", f"Bearer {key}"

    def surface_headers(self, surface: str) -> Mapping[str, str]:
        """None."""
        del surface
        return {}
