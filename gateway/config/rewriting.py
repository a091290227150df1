"""What is taken out of system prompts, as operators write it."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, StringConstraints

from gateway.config.sizes import Unreadable
from gateway.config.spec import Spec
from gateway.core.steadying import NAMED, rule

__all__ = ["Rewrite", "RewriteSpec"]


def _pattern(text: str) -> str:
    try:
        rule(text)
    except re.error as error:
        raise Unreadable(f"is no regular expression: {error}", "write one as Python reads it") from None
    return text


class RewriteSpec(Spec):
    """Something that changes in system prompts at every turn, so that no cache can hold what follows."""

    match: Annotated[str, StringConstraints(min_length=1, max_length=500), AfterValidator(_pattern)]
    """A regular expression as Python reads it; ^ and $ match at lines."""
    put: str = ""
    """What to put in its place; nothing, unless said otherwise."""


def _named(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value not in NAMED:
        raise Unreadable("is no rule that is known here", f"one of {', '.join(NAMED)}, or {{match: ..., put: ...}}")
    pattern, put = NAMED[value]
    return {"match": pattern, "put": put}


Rewrite = Annotated[
    RewriteSpec, BeforeValidator(_named, json_schema_input_type=Literal["claude-code-attribution"] | RewriteSpec)
]
