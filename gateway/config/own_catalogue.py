"""The section of the file with models and devices of an operator's own."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from gateway.config.catalog.book import Catalogue
from gateway.config.own_entries import OwnDevice, OwnModel
from gateway.config.spec import Spec
from gateway.core.backend import Device
from gateway.core.kv.model import ModelShape

__all__ = ["CatalogueSpec", "Unusable"]


class Unusable(NamedTuple):
    """Where an entry stands that can't be counted with, and why; `absent`: its file is not on this machine."""

    path: tuple[str, int]
    why: str
    absent: bool = False


class CatalogueSpec(Spec):
    """Models and devices beside those that come with the program, in the same words."""

    models: tuple[OwnModel, ...] = ()
    """Own models."""
    devices: tuple[OwnDevice, ...] = ()
    """Own devices."""

    @cached_property
    def read(self) -> tuple[Catalogue, tuple[Unusable, ...]]:
        """The catalogue, and the entries that can't be used."""
        models: list[ModelShape] = []
        devices: list[Device] = []
        shorts: list[tuple[str, str]] = []
        wrong: list[Unusable] = []
        for i, own in enumerate(self.models):
            try:
                models.append(own.shape())
            except OSError as error:
                said = (error.strerror or type(error).__name__).lower()
                wrong.append(Unusable(("models", i), f"its file can't be read: {said}", absent=True))
            except ValueError as error:
                wrong.append(Unusable(("models", i), str(error)))
        for i, one in enumerate(self.devices):
            try:
                devices.append(one.device())
                shorts += [(alias, one.id) for alias in one.aliases]
            except ValueError as error:
                wrong.append(Unusable(("devices", i), str(error)))
        return Catalogue(tuple(models), tuple(devices), tuple(shorts)), tuple(wrong)

    @property
    def catalogue(self) -> Catalogue:
        """The entries that can be used, before the shipped ones."""
        return self.read[0]
