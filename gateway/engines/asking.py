"""How an engine is asked, and read, where its adapter does not say otherwise: as OpenAI's API has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from gateway.engines.adapter import Answer, Counting, Failure, Load, Probe, Rendering, Traits
from gateway.engines.failures import classify
from gateway.engines.rewrites import shared_edits, with_usage
from gateway.wire.chat_request import ChatRequest
from gateway.wire.surfaces import SURFACES

__all__ = ["Asked"]


class Asked:
    """The usual paths and credential; a stream's usage is asked for; what the traits name is dropped."""

    __slots__ = ()
    traits: ClassVar[Traits]

    def follow_up(self, answers: Mapping[str, Answer]) -> tuple[Probe, ...]:
        """Nothing."""
        del answers
        return ()

    def load(self, answers: Mapping[str, Answer]) -> Load:
        """Unknown."""
        del answers
        return Load()

    def reply_load(self, headers: Mapping[str, str]) -> Load | None:
        """None."""
        del headers
        return None

    def failure(self, status: int, payload: bytes) -> Failure:
        """By status and the wordings of all engines."""
        return classify(status, payload)

    def streams_upstream(self, req: ChatRequest) -> bool:
        """As the client asked, unless only streams are cancelled."""
        return req.stream or self.traits.stream_always

    def edits(
        self, req: ChatRequest, *, served_as: str, stream: bool, max_tokens: int | None
    ) -> Mapping[str, bytes | None]:
        """A stream tells its usage only when asked; a client's explicit "no" to its own stream is left alone."""
        edits = shared_edits(req, served_as, stream, max_tokens)
        edits.update(dict.fromkeys(self.traits.drops))
        if stream and (req.include_usage is None or (req.include_usage is False and not req.stream)):
            edits["stream_options"] = with_usage(req)
        return edits

    def rendering(self, surface: str, body: bytes) -> Rendering | None:
        """None."""
        del surface, body
        return None

    def surface_edits(self, surface: str) -> Mapping[str, bytes | None]:
        """What the traits name is dropped."""
        del surface
        return dict.fromkeys(self.traits.drops)

    def headers(self, request_id: str) -> Mapping[str, str]:
        """None."""
        del request_id
        return {}

    def path(self, surface: str) -> str:
        """The surface's usual path. Raises KeyError for a name that is none."""
        return SURFACES[surface].path

    def credential(self, key: str) -> tuple[str, str]:
        """A bearer token."""
        return "Authorization", f"Bearer {key}"

    def surface_headers(self, surface: str) -> Mapping[str, str]:
        """None."""
        del surface
        return {}

    def counting(self, surface: str, body: bytes, served_as: str) -> Counting | None:
        """It can't be asked."""
        del surface, body, served_as
        return None
