"""All that is known of models and devices: an operator's own entries before the shipped ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from gateway.config.catalog import shipped
from gateway.config.catalog.names import loose_name, plain_name
from gateway.config.problems import nearest
from gateway.core.backend import Device
from gateway.core.kv.model import ModelShape

__all__ = ["SHIPPED", "Catalogue"]


@dataclass(frozen=True)
class Catalogue:
    """`models` and `devices` are the operator's own; `short_names` are (other name, id) pairs of those devices."""

    models: tuple[ModelShape, ...] = ()
    devices: tuple[Device, ...] = ()
    short_names: tuple[tuple[str, str], ...] = field(default=())

    @cached_property
    def _own_models(self) -> dict[str, ModelShape]:
        found: dict[str, ModelShape] = {}
        for model in self.models:
            for name in (model.id, *model.aliases):
                found.setdefault(loose_name(plain_name(name)), model)
        return found

    @cached_property
    def _own_devices(self) -> dict[str, Device]:
        by_id = {device.id: device for device in self.devices}
        return {short: by_id[name] for short, name in self.short_names} | by_id

    def model(self, name: str) -> ModelShape | None:
        """The model behind any common spelling of its name, or None; see `shipped.known_model`."""
        return self._own_models.get(loose_name(plain_name(name))) or shipped.known_model(name)

    def device(self, name: str) -> Device | None:
        """One device by id or short name, or None."""
        return self._own_devices.get(name) or shipped.device(name)

    def owns(self, model: ModelShape) -> bool:
        """Whether this is an entry of the operator's."""
        return any(model is own for own in self.models)

    @property
    def model_ids(self) -> tuple[str, ...]:
        """Ids of all models, own ones first."""
        return tuple(dict.fromkeys([*(model.id for model in self.models), *shipped.model_ids()]))

    @property
    def device_ids(self) -> tuple[str, ...]:
        """Ids and short names of all devices, own ones first."""
        return tuple(dict.fromkeys([*self._own_devices, *shipped.device_ids()]))

    def nearest_device(self, name: str) -> str | None:
        """The device id closest to a name, or None: `3090` and `spark` are names too."""
        known = self.device_ids
        parts = [known_id for known_id in known if len(name) >= 3 and name.casefold().replace(" ", "-") in known_id]
        return min(parts, key=len) if parts else nearest(name, known)

    def nearest_model(self, name: str, also: Iterable[str] = ()) -> str | None:
        """The model id closest to a name, or None."""
        return nearest(plain_name(name), [*also, *self.model_ids])


SHIPPED = Catalogue()
"""The entries that come with the program, and no others."""
