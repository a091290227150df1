"""Reading keys of a model's file: several spellings of one key, whole numbers that are checked, errors that name it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.core.kv.described import ModelFileError

__all__ = ["Values"]

_LARGEST = 2**40


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
                raise ModelFileError(f"{self.spelled(keys[0])} is missing")
            return default
        if isinstance(found, float) and found.is_integer():
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

    def stated(self, *keys: str, default: int) -> int:
        """A whole number, 1 or more, of the first key that has one: 0, as `null`, says that it is left to the rest."""
        for key in keys:
            found = self.whole(key, default=0)
            if found:
                return found
        return default

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
            raise ModelFileError(f"{self.spelled(key)} must be a list, not {_shown(found)}")
        return found

    def numbers(self, key: str) -> tuple[int, ...] | None:
        """A list of whole numbers (of layers), or None when absent; raises ModelFileError when it is something else."""
        found = self.listed(key)
        if found is None:
            return None
        if not all(isinstance(one, int) and 0 <= one < _LARGEST for one in found):
            raise ModelFileError(f"{self.spelled(key)} must list whole numbers")
        return tuple(found)

    def spelled(self, key: str) -> str:
        """A key as a person finds it in the file."""
        return key

    def _named(self, keys: tuple[str, ...]) -> str:
        return self.spelled(next((key for key in keys if self.get(key) is not None), keys[0]))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
