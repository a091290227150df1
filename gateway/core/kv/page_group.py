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
    `padding`: layers of all `count` groups together that are nothing but padding. `formula`: how `page_bytes` came
    about.
    """

    kind: Kind
    name: str
    layers: int
    block: int
    page_bytes: int
    window: int = 0
    state_pages: int = 0
    count: int = 1
    padding: int = 0
    formula: str = ""

    @property
    def straddle(self) -> int:
        """Blocks more than its tokens fill that a window can touch, as it may begin in the middle of one."""
        return 1 if self.kind is Kind.SLIDING else 0

    @property
    def settled_cap(self) -> int:
        """Most blocks that one group holds for a settled request; 0 for a group that grows without bound."""
        match self.kind:
            case Kind.GROWING:
                return 0
            case Kind.SLIDING:
                return -(-(self.window - 1) // self.block) + self.straddle
            case Kind.CHUNKED:
                return -(-self.window // self.block)
            case Kind.STATE:
                return self.state_pages

    def reserved_tokens(self, in_flight: int) -> int:
        """Most tokens that one group holds while `in_flight` of them are unsettled; 0 for one without bound."""
        match self.kind:
            case Kind.SLIDING:
                return self.window - 1 + in_flight
            case Kind.CHUNKED:
                return self.window + in_flight
            case _:
                return 0

    def held(self, tokens: int) -> int:
        """Blocks that a settled request of `tokens` tokens holds in all `count` groups."""
        if self.kind is Kind.STATE:
            return self.count * self.state_pages
        covering = -(-tokens // self.block)
        return self.count * (covering if self.kind is Kind.GROWING else min(covering, self.settled_cap))

    def admitted(self, tokens: int, in_flight: int) -> int:
        """Blocks that the engine wants free before it admits such a request while `in_flight` tokens are unsettled."""
        if self.kind in {Kind.STATE, Kind.GROWING}:
            return self.held(tokens)
        return self.count * (-(-min(self.reserved_tokens(in_flight), tokens) // self.block) + self.straddle)
