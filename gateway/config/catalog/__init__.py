"""What is publicly known of devices and models: shipped as data, with a source and a confidence on every entry."""

from __future__ import annotations

from gateway.config.catalog.book import SHIPPED, Catalogue
from gateway.config.catalog.names import plain_name, weights_in_name
from gateway.config.catalog.shipped import device, device_ids, known_model, model_ids

__all__ = [
    "SHIPPED",
    "Catalogue",
    "device",
    "device_ids",
    "known_model",
    "model_ids",
    "nearest_device",
    "nearest_model",
    "plain_name",
    "weights_in_name",
]

nearest_device = SHIPPED.nearest_device
nearest_model = SHIPPED.nearest_model
