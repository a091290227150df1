"""One backend from a line of YAML, for tests of what follows from it."""

from __future__ import annotations

from gateway.config.backends import BackendSpec
from gateway.config.compile import backend
from gateway.config.endpoint import Endpoint, endpoint
from gateway.config.load import load
from gateway.core.backend import Backend


def spec(fields: str) -> BackendSpec:
    return load(f"auth: none\nbackends:\n  - {{name: b, url: http://10.0.0.1:8000, {fields}}}\n").policy.backends[0]


def pair(fields: str) -> tuple[Backend, Endpoint]:
    declared = spec(fields)
    return backend(declared), endpoint(declared)
