"""The routes of the emulated engine: vLLM's, and /sim/fault where it is switched on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web

from gateway import clock
from gateway.sim.api_error import ApiError, busy, from_decoding, wrong_media_type
from gateway.sim.ask import Ask, read_chat, read_completion
from gateway.sim.driver import Driver
from gateway.sim.exposition import CONTENT_TYPE, expose
from gateway.sim.fault import Fault
from gateway.sim.generation import Generation, TokenStream
from gateway.sim.openai_shapes import DONE, VERSION, Chunks, model_list, whole_answer
from gateway.sim.rendering import Message, render_chat, render_prompt, token_ids
from gateway.sim.service import Service

__all__ = ["make_app"]

MAX_BODY_BYTES = 64 * 1024 * 1024

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _TokenizeBody(msgspec.Struct):
    prompt: str | None = None
    messages: list[Message] | None = None


def make_app(service: Service, on_fault: Callable[[Fault], Awaitable[None]] | None) -> web.Application:
    """The application of `service`; with `on_fault`, POST /sim/fault calls it."""
    routes = Routes(service, on_fault)
    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[routes.guard])
    for path, get in (
        ("/health", routes.health),
        ("/ping", routes.health),
        ("/v1/models", routes.models),
        ("/metrics", routes.metrics),
        ("/version", routes.version),
        ("/load", routes.load),
    ):
        app.router.add_get(path, get, allow_head=False)
    for path, post in (
        ("/v1/chat/completions", routes.chat),
        ("/v1/completions", routes.completion),
        ("/tokenize", routes.tokenize),
    ):
        app.router.add_post(path, post)
    if on_fault is not None:
        app.router.add_post("/sim/fault", routes.fault)
    return app


class Routes:
    """Handlers of one service."""

    def __init__(self, service: Service, on_fault: Callable[[Fault], Awaitable[None]] | None) -> None:
        self._service = service
        self._on_fault = on_fault

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Errors in vLLM's shapes; nothing at all from an engine that refuses."""
        if self._service.fault.refuse and request.transport is not None and request.path != "/sim/fault":
            request.transport.abort()
            return web.Response()
        try:
            return await handler(request)
        except ApiError as error:
            return _json(error.body(), error.status)
        except web.HTTPMethodNotAllowed as error:
            response = _json(msgspec.json.encode({"detail": error.reason}), error.status)
            response.headers["Allow"] = ",".join(sorted(error.allowed_methods))
            return response
        except web.HTTPException as error:
            return _json(msgspec.json.encode({"detail": error.reason}), error.status)

    async def health(self, _request: web.Request) -> web.Response:
        """200 with an empty body."""
        return web.Response()

    async def models(self, _request: web.Request) -> web.Response:
        """The one model, with its max_model_len."""
        service = self._service
        return _json(model_list(service.model, service.profile.max_model_len, service.started_at))

    async def metrics(self, _request: web.Request) -> web.Response:
        """The families that a gateway reads."""
        text = expose(self._service.driver.engine, self._service.model)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})

    async def version(self, _request: web.Request) -> web.Response:
        """The version whose behaviour is emulated."""
        return _json(msgspec.json.encode({"version": VERSION}))

    async def load(self, _request: web.Request) -> web.Response:
        """Requests inside, as with --enable-server-load-tracking."""
        return _json(msgspec.json.encode({"server_load": self._service.driver.in_flight}))

    async def tokenize(self, request: web.Request) -> web.Response:
        """Count and ids of a prompt or of a conversation."""
        body = await _body(request)
        try:
            asked = msgspec.json.decode(body, type=_TokenizeBody)
        except msgspec.MsgspecError as error:
            raise from_decoding(error, body) from None
        rendered = render_prompt(asked.prompt or "") if asked.messages is None else render_chat(asked.messages)
        ids = token_ids(rendered)
        answer = {"count": len(ids), "max_model_len": self._service.profile.max_model_len}
        return _json(msgspec.json.encode(answer | {"tokens": ids, "token_strs": None}))

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """A chat completion, streamed or not."""
        service = self._service
        body = await _body(request)
        return await self._generate(
            request, read_chat(body, service.model, service.profile.max_model_len, service.answer_tokens)
        )

    async def completion(self, request: web.Request) -> web.StreamResponse:
        """A text completion, streamed or not."""
        service = self._service
        body = await _body(request)
        return await self._generate(
            request, read_completion(body, service.model, service.profile.max_model_len, service.answer_tokens)
        )

    async def fault(self, request: web.Request) -> web.Response:
        """Make the engine ill, or well with {}."""
        body = await request.read()
        try:
            fault = Fault.from_json(body)
        except msgspec.MsgspecError as error:
            raise from_decoding(error, body) from None
        if self._on_fault is not None:
            await self._on_fault(fault)
        return web.Response()

    async def _generate(self, request: web.Request, ask: Ask) -> web.StreamResponse:
        service = self._service
        if service.queue_is_full(sum(map(len, ask.answers))):
            raise busy()
        serial = service.next_serial()
        ident = ("chatcmpl-" if ask.chat else "cmpl-") + request.headers.get("X-Request-Id", serial)
        created = int(clock.wall())
        chunks = Chunks(
            ident=ident, created=created, model=service.model, chat=ask.chat, include_usage=ask.include_usage
        )
        generation = Generation(ask, serial, service.profile.block_size, chunks)
        driver = service.driver
        try:
            if ask.stream:
                return await self._stream(request, generation, driver)
            driver.submit(generation)
            await generation.done
            return _json(
                whole_answer(
                    ident=ident,
                    created=created,
                    model=service.model,
                    chat=ask.chat,
                    answers=[choice.answer for choice in generation.choices],
                    usage=generation.usage(),
                )
            )
        finally:
            # Reached by cancellation too, which is how a client that closes is noticed.
            driver.abort(generation)

    async def _stream(self, request: web.Request, generation: Generation, driver: Driver) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        chunked = request.version >= (1, 1)
        if chunked:
            response.enable_chunked_encoding()
        await response.prepare(request)
        transport = request.transport
        if transport is None:
            return response
        generation.stream = TokenStream(transport, chunked=chunked)
        generation.cut_after = self._service.fault.cut_after_tokens
        driver.submit(generation)
        await generation.done
        generation.stream.write(generation.end() + DONE)
        if not transport.is_closing():
            await response.write_eof()
        return response


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")


async def _body(request: web.Request) -> bytes:
    if request.content_type != "application/json":
        raise wrong_media_type()
    return await request.read()
