"""The one place that takes secrets out of text on its way to any sink, debug level too."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["Redactor"]

_MASK = "***"
_PATTERNS = (
    # Authorization values, whatever the scheme.
    re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{4,}"),
    # The usual shapes of API keys.
    re.compile(r"\b(?:sk|pk|rk|hf|gsk|xai|AIza)[-_][A-Za-z0-9_-]{6,}"),
    # key=value and "key": "value" for names that hold secrets.
    re.compile(
        r"""(?i)((?:api[_-]?key|x-api-key|authorization|password|secret|access[_-]?token|\bkey)["']?\s*[:=]\s*["']?)[^\s"'&,;}]+"""
    ),
    # Credentials and queries in URLs.
    re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://)[^\s/@\"']+@"),
    re.compile(r"(?i)(\bhttps?://[^\s?#\"'<>]+)\?[^\s\"'<>]*"),
)
_SUBSTITUTES = (_MASK, _MASK, rf"\1{_MASK}", rf"\1{_MASK}@", rf"\1?{_MASK}")
# One scan that says whether any pattern can match at all; most lines hold none of these.
_HINT = re.compile(r"(?i)bearer|basic|key|auth|passw|secret|token|://|\b(?:sk|pk|rk|hf|gsk|xai|AIza)[-_]")


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
        if _HINT.search(text) is None:
            return text
        for pattern, substitute in zip(_PATTERNS, _SUBSTITUTES, strict=True):
            text = pattern.sub(substitute, text)
        return text
