"""Which models may answer in place of the one asked for, and in what order."""

from __future__ import annotations

import re
from functools import lru_cache

from gateway.core.plan import Route
from gateway.core.request import Consent, Request

__all__ = ["same_weights", "tiers"]

_QUANT = re.compile(
    r"[-_.:](?:(?:ud|i\d)[-_])?(?:fp(?:4|8|16)|bf16|f16|nvfp4|mxfp[48]|int[48]|w\d+a\d+|[48]bit|awq|gptq|exl[23]|gguf|mlx"
    r"|dynamic|quantized|i?q\d(?:_[a-z0-9]+)*)$"
)


def tiers(route: Route, request: Request) -> tuple[str, ...]:
    """Model ids in the order in which they are considered: the one asked for, then the fallbacks with consent.

    The stricter of the route's and the request's consent holds: a caller narrows, only the operator widens.
    """
    if not route.fallback:
        return (route.serves,)
    consent = min(route.consent, request.consent)
    if consent is Consent.NONE:
        return (route.serves,)
    fallback = route.fallback
    if consent is not Consent.ANY:
        fallback = tuple(model for model in fallback if same_weights(route.serves, model))
    if request.allowed is not None:
        fallback = tuple(model for model in fallback if model in request.allowed)
    return (route.serves, *fallback)


@lru_cache(maxsize=1024)
def same_weights(one: str, other: str) -> bool:
    """Say whether two model ids differ in quantisation only, going by the names that publishers give."""
    return _family(one) == _family(other)


def _family(model: str) -> str:
    name = model.lower().rsplit("/", 1)[-1]
    while (shorter := _QUANT.sub("", name)) != name:
        name = shorter
    return name
