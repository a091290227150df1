"""One API request on its way through the engine, and the stream that its tokens are written to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from gateway.sim.answer import Answer
from gateway.sim.ask import Ask
from gateway.sim.engine_model import Finished
from gateway.sim.openai_shapes import Chunks, Usage
from gateway.sim.rendering import whole_ids
from gateway.sim.sequence import SimRequest
from gateway.sim.text import BYTES_PER_TOKEN, ByteText

__all__ = ["Choice", "Generation", "TokenStream"]


class TokenStream:
    """Writes events straight to a client's transport: no coroutine a token. Framed as chunks of HTTP/1.1."""

    __slots__ = ("_chunked", "_transport")

    def __init__(self, transport: asyncio.Transport, *, chunked: bool) -> None:
        """The response's head has been sent; `chunked` says whether it announced chunks."""
        self._transport = transport
        self._chunked = chunked

    def write(self, event: bytes) -> None:
        """Send `event` unless the client is gone; that is noticed elsewhere."""
        if not self._transport.is_closing():
            self._transport.write(b"%x\r\n%b\r\n" % (len(event), event) if self._chunked else event)

    def cut(self) -> None:
        """Reset the connection in the middle."""
        self._transport.abort()


class Choice:
    """One answer in the making."""

    __slots__ = ("answer", "cached", "index", "made", "prompt", "request")

    def __init__(self, index: int, ident: str, prompt: bytes, answer: Answer) -> None:
        """`ident` is the engine's own name for it, unique among all requests."""
        self.index = index
        self.answer = answer
        self.prompt = prompt
        self.made = 0
        self.cached = 0
        text = ByteText(prompt + answer.generated.encode())
        tokens = len(prompt) // BYTES_PER_TOKEN
        self.request = SimRequest(ident, text, tokens, answer.tokens, answer.finish_reason)


class Generation:
    """All choices of one API request."""

    def __init__(self, ask: Ask, serial: str, block_size: int, chunks: Chunks) -> None:
        """Nothing is submitted yet; `done` resolves when every choice has ended."""
        self.ask = ask
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.choices: list[Choice] = []
        for prompt, answers in zip(ask.prompts, ask.answers, strict=True):
            for answer in answers:
                index = len(self.choices)
                self.choices.append(Choice(index, f"{serial}-{index}", prompt, answer))
        self.stream: TokenStream | None = None
        self.cut_after: int | None = None
        """Tokens after which the stream is cut, where that fault is set."""
        self._block_size = block_size
        self._chunks = chunks
        self._open = len(self.choices)
        self._greeted = not ask.chat

    def unfinished(self) -> Iterator[str]:
        """Engine names of the choices that the engine still has."""
        return (choice.request.id for choice in self.choices if choice.made < choice.answer.tokens)

    def deliver(self, choice: Choice, tokens: int, finished: Finished | None) -> None:
        """`tokens` more of a choice are there; `finished` when they are its last."""
        start = choice.made
        choice.made += tokens
        if finished is not None:
            choice.cached = finished.cached_tokens
            self._open -= 1
        if self.stream is not None:
            self._write(self.stream, choice, start, last=finished is not None)
        if not self._open and not self.done.done():
            self.done.set_result(None)

    def usage(self) -> Usage:
        """Counts of all choices together; a prompt counts once."""
        return self._usage(sum(choice.made for choice in self.choices))

    def end(self) -> bytes:
        """The chunk with the usage, where the client asked for it."""
        return self._chunks.usage(self.usage()) if self.ask.include_usage else b""

    def _write(self, stream: TokenStream, choice: Choice, start: int, *, last: bool) -> None:
        carried = self.ask.continuous_usage
        if not self._greeted:
            self._greeted = True
            for each in self.choices:
                stream.write(self._chunks.role(each.index, self._usage(0) if carried else None, self._ids(each.prompt)))
        text = choice.answer.piece(start, choice.made)
        if text or last:
            usage = self._usage(choice.made) if carried else None
            made = choice.answer.generated[start * BYTES_PER_TOKEN : choice.made * BYTES_PER_TOKEN]
            ids = self._ids(made.encode())
            prompt = self._ids(choice.prompt) if not start and not self.ask.chat else "null"
            stream.write(self._chunks.piece(choice.index, text, choice.answer if last else None, usage, ids, prompt))
        if self.cut_after is not None and choice.made >= self.cut_after:
            stream.cut()

    def _ids(self, text: bytes) -> str:
        """Ids that give the text back when they come as a prompt, as far as they were asked for."""
        return str(whole_ids(text)).replace(" ", "") if self.ask.token_ids else "null"

    def _usage(self, completion: int) -> Usage:
        first_of_prompt = self.choices[:: len(self.ask.answers[0])]
        cached = sum(choice.cached for choice in first_of_prompt)
        size = self._block_size
        full = sum(choice.request.prompt_tokens // size * size for choice in first_of_prompt)
        return Usage(self.ask.prompt_tokens, completion, cached, max(0, full - cached))
