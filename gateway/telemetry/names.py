"""Label values come from configured sets only; whatever else the world sends is "other"."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.core.failure import FailureKind

__all__ = ["FAILURE_KINDS", "OTHER", "OUTCOMES", "KnownNames"]

OTHER = "other"

OUTCOMES = frozenset(("completed", "failed", "client_closed", "refused"))
"""How a request can end. `refused`: it was never sent to a backend; `failed`: it was, and no attempt succeeded."""

FAILURE_KINDS = frozenset(str(kind) for kind in FailureKind)
"""How an attempt on a backend can fail."""


class KnownNames:
    """The models and backends that may be labels. Replaced whole at a reload."""

    __slots__ = ("backends", "models")

    def __init__(self, models: Iterable[str] = (), backends: Iterable[str] = ()) -> None:
        self.models = frozenset(models)
        self.backends = frozenset(backends)

    def model(self, name: str | None) -> str:
        """The name if it is configured or discovered, else "other"."""
        return name if name in self.models else OTHER

    def backend(self, name: str | None) -> str:
        """The name if it is configured, "" for none, else "other"."""
        if name is None:
            return ""
        return name if name in self.backends else OTHER
