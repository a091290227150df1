"""One request on either port: make its answer, survive every failure, write its line in the access log."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from aiohttp import HttpVersion11, web

from gateway import clock
from gateway.core.reasons import Reason
from gateway.edge.answers import cut_short
from gateway.edge.body import discard, leaves_reusable
from gateway.edge.connection import CLOSE, KEEP, EdgeProtocol
from gateway.edge.cors import Cors
from gateway.edge.downstream import ClientDownstream
from gateway.errors import BodyTimeout, ClientClosed, GatewayError, Unavailable
from gateway.telemetry.log import AccessLog, log_failure
from gateway.wire.inbound import AccessNote

__all__ = ["Exchange", "Handler"]


@dataclass(slots=True)
class Exchange:
    """One request and the answer to it.

    `route` is a template of ours, never the path as sent; `started_at` is in monotonic seconds. `spare`: the connection
    is over the limit, and may ask for the gateway's health and nothing else.
    """

    request: web.BaseRequest
    down: ClientDownstream
    started_at: float
    spare: bool = False
    route: str = "other"
    client: str | None = None
    note: AccessNote = field(default_factory=AccessNote)


class Handler:
    """Calls `answer(exchange)` for every request and turns what it raises into an answer.

    GatewayError becomes its own status and body; anything else a 500 without internals. `cut` ends what still runs.
    """

    def __init__(
        self,
        answer: Callable[[Exchange], Awaitable[None]],
        *,
        access: AccessLog | None = None,
        cors: Cors | None = None,
    ) -> None:
        self._answer = answer
        self._access = access
        self.cors = cors if cors is not None else Cors()
        self._running: set[asyncio.Task[object]] = set()
        self._cutting = False

    @property
    def running(self) -> int:
        """Requests being answered now, health checks included."""
        return len(self._running)

    def cut(self) -> int:
        """End every answer in progress: an in-band error event in a stream, 503 before it. Returns how many."""
        self._cutting = True
        for task in self._running:
            task.cancel()
        return len(self._running)

    def refused_by_parser(self, err: GatewayError, request: web.BaseRequest) -> None:
        """Write the access line of what never became a request (an `EdgeServer` calls this)."""
        if self._access is not None:
            note = AccessNote(outcome="refused", reason=err.code)
            self._access.write("unparsed", request.method, None, err.status, 0.0, note)

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request of aiohttp's; the returned response has already been sent."""
        protocol = cast(EdgeProtocol, request.protocol)
        down = ClientDownstream(
            protocol,
            head_only=request.method == "HEAD",
            http11=request.version >= HttpVersion11,
            keep_alive=request.keep_alive and not protocol.server.draining and not protocol.spare,
            fields=self.cors.fields(request.headers) if self.cors.on else (),
            reusable=None if request.content.is_eof() else partial(leaves_reusable, request),
        )
        protocol.down = down
        exchange = Exchange(request, down, clock.monotonic(), protocol.spare)
        task = cast("asyncio.Task[object]", asyncio.current_task())
        self._running.add(task)
        try:
            await self._attempt(exchange, task)
            if not request.content.is_eof() and not down.closed:
                await discard(request.content)
        finally:
            self._running.discard(task)
            protocol.down = None
            if self._access is not None:
                self._access.write(
                    exchange.route,
                    request.method,
                    exchange.client,
                    down.status,
                    clock.monotonic() - exchange.started_at,
                    exchange.note,
                )
        return KEEP if down.keep_alive else CLOSE

    async def _attempt(self, exchange: Exchange, task: asyncio.Task[object]) -> None:
        down, note = exchange.down, exchange.note
        try:
            await self._answer(exchange)
            if not down.ended:
                down.abort()
            if down.cut:
                note.outcome = note.outcome or "failed"
        except ClientClosed as left:
            note.outcome, note.reason = "client_closed", note.reason or str(Reason.CLIENT_CLOSED)
            down.abort()
            _let_go(left)
        except GatewayError as err:
            note.outcome = note.outcome or ("failed" if err.status >= 500 and err.reason is None else "refused")
            note.reason = note.reason or (str(err.reason) if err.reason is not None else err.code)
            note.request_id = note.request_id or err.decision_id
            if isinstance(err, BodyTimeout):
                down.keep_alive = False
            cut_short(down, err)
            _let_go(err)
        except asyncio.CancelledError:
            if not self._cutting or down.lost:
                note.outcome, note.reason = "client_closed", note.reason or str(Reason.CLIENT_CLOSED)
                raise
            task.uncancel()
            note.outcome, note.reason = "failed", str(Reason.SHUTTING_DOWN)
            cut_short(
                down,
                Unavailable(
                    "the gateway is shutting down", code="shutting_down", reason=Reason.SHUTTING_DOWN, retry_after=5.0
                ),
            )
        except Exception as exc:
            note.outcome, note.reason = "failed", "internal_error"
            log_failure("unhandled error in a request handler", exc, route=exchange.route)
            cut_short(down, GatewayError("the gateway failed to handle this request; its log has the trace"))
            _let_go(exc)


def _let_go(error: BaseException) -> None:
    """Free what the frames below held, a body of 60 MB among it.

    An error that one of their variables names is a cycle, and would keep all of it until the garbage collector comes.
    """
    chain: BaseException | None = error
    for _ in range(8):
        if chain is None:
            return
        traceback.clear_frames(chain.__traceback__)
        chain = chain.__cause__ or chain.__context__
