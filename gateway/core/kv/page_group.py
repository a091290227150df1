"""Layers that share one block table: how many blocks one request holds in it."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.kv.layer_spec import Kind

__all__ = ["PageGroup"]


@dataclass(frozen=True, slots=True)
class PageGroup:
    """`count` groups alike, each with a block table of its own over `layers` layers (padding included).

    `block`: tokens per block. `page_bytes`: bytes of one block over the group's layers on the fullest rank, before the
    pool pads it. `window`: tokens kept by sliding and chunked kinds. `state_pages`: blocks that a recurrent kind holds.
    """

    kind: Kind
    name: str
    layers: int
    block: int
    page_bytes: int
    window: int = 0
    state_pages: int = 0
    count: int = 1

    def held(self, tokens: int) -> int:
        """Blocks that a settled request of `tokens` tokens holds in all `count` groups."""
        if self.kind is Kind.STATE:
            return self.count * self.state_pages
        covering = -(-tokens // self.block)
        if self.kind is Kind.SLIDING:
            # A window may begin in the middle of a block, so it can touch one more than it fills.
            covering = min(covering, -(-(self.window - 1) // self.block) + 1)
        elif self.kind is Kind.CHUNKED:
            covering = min(covering, -(-self.window // self.block))
        return self.count * covering

    def admitted(self, tokens: int, in_flight: int) -> int:
        """Blocks that the engine wants free before it admits such a request while `in_flight` tokens are unsettled."""
        if self.kind is Kind.SLIDING:
            return self.count * (-(-min(self.window - 1 + in_flight, tokens) // self.block) + 1)
        if self.kind is Kind.CHUNKED:
            return self.count * -(-min(self.window + in_flight, tokens) // self.block)
        return self.held(tokens)
