"""Reading keys of a config.json: several spellings of one key, nested text models, whole numbers that are checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.core.kv.described import ModelFileError

__all__ = ["Values", "text_model"]

_LARGEST = 2**40
_NESTED = ("text_config", "llm_config", "language_config", "language_model", "thinker_config", "text_model_config")
_MAX_LAYERS = 4096
DEPTH = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


class Values:
    """The keys of one model. Own keys win over those of the file around it, those over `defaults`.

    A key is a name, or a path with dots into nested mappings. `null` counts as absent.
    """

    def __init__(self, own: Mapping[str, Any], around: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        self._layers = (own, around, defaults)

    def get(self, *keys: str) -> Any:
        """The value of the first key that is there, or None."""
        for mapping in self._layers:
            for key in keys:
                found: Any = mapping
                for part in key.split("."):
                    found = found.get(part) if isinstance(found, Mapping) else None
                if found is not None:
                    return found
        return None

    def whole(self, *keys: str, default: int | None = None) -> int:
        """A whole number, 0 or more. Raises ModelFileError naming the first key if it is missing or no such number."""
        found = self.get(*keys)
        if found is None:
            if default is None:
                raise ModelFileError(f"{keys[0]} is missing")
            return default
        if isinstance(found, float) and found == int(found):
            found = int(found)
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < _LARGEST:
            raise ModelFileError(f"{self._named(keys)} must be a whole number, not {_shown(found)}")
        return found

    def positive(self, *keys: str, default: int | None = None) -> int:
        """A whole number, 1 or more; raises as `whole` does."""
        found = self.whole(*keys, default=default)
        if not found:
            raise ModelFileError(f"{self._named(keys)} must be at least 1")
        return found

    def largest(self, *keys: str) -> int:
        """The largest of a list of whole numbers, or the number itself; 0 when absent."""
        found = self.get(*keys)
        if isinstance(found, Sequence) and not isinstance(found, str):
            numbers = [one for one in found if isinstance(one, int)]
            return max(numbers, default=0)
        return self.whole(*keys, default=0)

    def each(self, keys: tuple[str, ...], count: int, default: int | None = None) -> tuple[int, ...]:
        """One number a layer: a list of at least `count`, or one number for all. Raises ModelFileError otherwise."""
        found = self.get(*keys)
        if not isinstance(found, list):
            return (self.whole(*keys, default=default),) * count
        if len(found) < count or not all(isinstance(one, int) and 0 <= one < _LARGEST for one in found):
            raise ModelFileError(f"{self._named(keys)} must list a whole number for each of {count} layers")
        return tuple(found[:count])

    def flag(self, key: str, default: bool = False) -> bool:
        """A true or false; anything else is the default."""
        found = self.get(key)
        return found if isinstance(found, bool) else default

    def text(self, *keys: str) -> str:
        """A text, or "" when absent or something else."""
        found = self.get(*keys)
        return found if isinstance(found, str) else ""

    def listed(self, key: str) -> list[Any] | None:
        """A list, or None when absent; raises ModelFileError when it is something else."""
        found = self.get(key)
        if found is not None and not isinstance(found, list):
            raise ModelFileError(f"{key} must be a list, not {_shown(found)}")
        return found

    def depth(self) -> int:
        """Layers of the model; raises ModelFileError when absent, 0 or absurd."""
        listed = self.listed("layers_block_type")
        found = self.positive(*DEPTH, default=len(listed) if listed else None)
        if found > _MAX_LAYERS:
            raise ModelFileError(f"num_hidden_layers is {found}: no model has so many layers")
        return found

    def _named(self, keys: tuple[str, ...]) -> str:
        return next((key for key in keys if self.get(key) is not None), keys[0])


def text_model(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a config.json that describes the language model: of a multimodal model, the nested one."""
    for key in _NESTED:
        nested = config.get(key)
        if isinstance(nested, Mapping) and nested:
            return text_model(nested)
    return config


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
