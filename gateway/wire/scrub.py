"""An engine's own words, fit for a client's eyes: what they say stays, where the engine lives does not."""

from __future__ import annotations

import re

__all__ = ["scrubbed"]

_LONGEST = 500
"""Characters of an engine's text."""
_SHORTEST_NAME = 2
"""Characters; what is shorter is found in any text."""
_PRIVATE = re.compile(
    r"\b[a-z][a-z0-9+.-]*://\S+"  # a URL
    r"|\b(?:sk|pk|hf|ghp|xox[bp]|AKIA)[-_][A-Za-z0-9_-]{2,}"  # a key, by its usual beginnings
    r"|\bbearer\s+[A-Za-z0-9_\-.=]{4,}|\b(?:api[-_ ]?key|token|secret)\s*[:=]\s*[A-Za-z0-9_\-.]{4,}"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b"  # an IPv4 address
    r"|\[?\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b\]?(?::\d{1,5})?"  # an IPv6 address
    r"|\b(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)+):\d{2,5}\b"  # a host and its port
    r"|(?<![\w/.])~?/(?:home|root|opt|usr|var|mnt|data|srv|tmp|models?|etc|app|workspace|users|volumes|storage|media"
    r"|work|run|proc|dev|nix|cache|hub)\b(?:/[\w.@+ -]*[\w.@+-])*/?"  # a path of a machine, and not of a request
    r"|\b[A-Z]:\\[\w.\\ -]+",
    re.IGNORECASE,
)


def scrubbed(text: str, names: dict[str, str] | None = None) -> str:
    """The text, bounded, with addresses, keys and paths as `[...]`.

    `names`: what the engine calls things, by what the client knows them as.
    """
    for own, shown in (names or {}).items():
        if len(own) >= _SHORTEST_NAME and own != shown:
            text = re.sub(rf"(?<!\w){re.escape(own)}(?!\w)", shown.replace("\\", r"\\"), text)
    return _PRIVATE.sub("[...]", text[: 4 * _LONGEST])[:_LONGEST]
