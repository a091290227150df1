"""Arguments of the command line, read as the configuration reads them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

from gateway.config.sizes import Unreadable

__all__ = ["reads"]

T = TypeVar("T")


def reads(parse: Callable[[str], T]) -> Callable[[str], T]:
    """`parse` as argparse wants it: what can't be read is said with the way to write it."""

    def read(text: str) -> T:
        try:
            return parse(text)
        except Unreadable as error:
            raise argparse.ArgumentTypeError(f"{text!r} {error}: {error.hint}") from None

    return read
