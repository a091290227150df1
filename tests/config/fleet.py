"""One backend from a line of YAML, for tests of what follows from it."""

from __future__ import annotations

from gateway.config.backends import BackendSpec
from gateway.config.compile import backend
from gateway.config.endpoint import Endpoint, endpoint
from gateway.config.load import load
from gateway.core.backend import Backend


def spec(fields: str) -> BackendSpec:
    """One backend, beside another, so that not all of the file is for public data only."""
    other = "  - {name: other, url: http://10.0.0.2:8000, engine: vllm}\n"
    text = f"auth: none\nbackends:\n  - {{name: b, url: http://10.0.0.1:8000, {fields}}}\n{other}"
    return load(text).policy.backends[0]


def pair(fields: str) -> tuple[Backend, Endpoint]:
    declared = spec(fields)
    return backend(declared), endpoint(declared)
