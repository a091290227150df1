"""The one place that takes secrets out of text on its way to any sink, debug level too."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["Redactor"]

_MASK = "***"
_PREFIXES = ("sk", "pk", "rk", "hf", "gsk", "xai", "AIza")
_HOLDERS = ("key", "authorization", "password", "secret", "access_token", "access-token", "accesstoken")

# What must occur in the lower-case text for a pattern to match at all, the pattern, and what replaces a match. The
# first is a few searches of memory; most lines hold none of it, and case-blind patterns are slow.
_RULES: tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...] = (
    # Authorization values, whatever the scheme.
    (("bearer", "basic"), re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{4,}"), _MASK),
    # The usual shapes of API keys.
    (
        tuple(f"{prefix.lower()}{mark}" for prefix in _PREFIXES for mark in "-_"),
        re.compile(rf"\b(?:{'|'.join(_PREFIXES)})[-_][A-Za-z0-9_-]{{6,}}"),
        _MASK,
    ),
    # key=value and "key": "value" for names that hold secrets.
    (
        _HOLDERS,
        re.compile(
            r"""(?i)((?:api[_-]?key|authorization|password|secret|access[_-]?token|\bkey)["']?\s*[:=]\s*["']?)[^\s"'&,;}]+"""
        ),
        rf"\1{_MASK}",
    ),
    # Credentials and queries in URLs.
    (("://",), re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]*://)[^\s/@\"']+@"), rf"\1{_MASK}@"),
    (("://",), re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]*://[^\s?#\"'<>]+)\?[^\s\"'<>]*"), rf"\1?{_MASK}"),
)


class Redactor:
    """Masks what looks like a secret, and every configured secret exactly.

    `secrets` are the configured keys; very short ones are left alone, they would mask ordinary words.
    """

    __slots__ = ("_secrets",)

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = ()
        self.replace(secrets)

    def replace(self, secrets: Iterable[str]) -> None:
        """Take another set of configured secrets, as at a reload."""
        self._secrets = tuple(sorted({secret for secret in secrets if len(secret) >= 6}, key=len, reverse=True))

    def add(self, secret: str) -> None:
        """Mask one more secret from now on."""
        self.replace((*self._secrets, secret))

    def __call__(self, text: str) -> str:
        """The text with secrets masked."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, _MASK)
        lower = text.lower()
        for hints, pattern, substitute in _RULES:
            for hint in hints:
                if hint in lower:
                    text = pattern.sub(substitute, text)
                    break
        return text
