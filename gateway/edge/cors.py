"""Browser access from other origins: off unless origins are configured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["Cors"]

_DAY = "86400"


class Cors:
    """Allowed origins ("*" for any). Errors carry the fields too, or a page could not read what went wrong."""

    __slots__ = ("_any", "_origins")

    def __init__(self, origins: Iterable[str] = ()) -> None:
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)
        self._any = "*" in self._origins

    @property
    def on(self) -> bool:
        """Whether any origin is configured."""
        return bool(self._origins)

    def allows(self, headers: Mapping[str, str]) -> bool:
        """Whether the page that sent this is of an allowed origin."""
        origin = headers.get("Origin")
        return origin is not None and (self._any or origin.lower() in self._origins)

    def fields(self, headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """Fields for every answer to that page; none when it is not allowed."""
        if not self._origins or not self.allows(headers):
            return ()
        exposed = "x-kvgate-decision, x-kvgate-backend, server-timing, retry-after"
        return (
            ("access-control-allow-origin", headers["Origin"]),
            ("access-control-expose-headers", exposed),
            ("vary", "origin"),
        )

    def preflight(self, headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """Further fields of the answer to a preflight; `fields` go with it."""
        asked = headers.get("Access-Control-Request-Headers", "authorization, content-type")
        return (
            ("access-control-allow-methods", "GET, POST, OPTIONS"),
            ("access-control-allow-headers", asked),
            ("access-control-max-age", _DAY),
        )
