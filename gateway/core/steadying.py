"""Rules that take out of system prompts what changes at every turn; they are an operator's to turn on."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["NAMED", "Rule", "rule"]

Rule = tuple[re.Pattern[str], str]
"""What to look for in the texts of the system prompt, and what to put there."""

NAMED = {
    # Claude Code's first line: version, entry point, and a checksum that is another one each time.
    "claude-code-attribution": (r"^x-anthropic-billing-header:[^\n]*\n*", ""),
}
"""Rules by name."""


@lru_cache(maxsize=256)
def rule(pattern: str, put: str = "") -> Rule:
    """A rule; `pattern` is Python's, `put` is put there as it is. Raises re.error for one that can't be read."""
    return re.compile(pattern, re.MULTILINE), put.replace("\\", "\\\\")
