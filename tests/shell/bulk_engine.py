"""An engine that takes and gives tens of megabytes quickly, in threads; nothing of what it takes is kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

__all__ = ["BulkEngine", "bulk_engine", "events", "whole"]

READ = 1 << 20
LISTED = {"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "somebody"}]}
PAGES: dict[str, Any] = {
    "/v1/models": LISTED,
    "/health": {"status": "ok"},
    "/props": {"total_slots": 8, "default_generation_settings": {"n_ctx": 65536}, "model_path": "m", "modalities": {}},
}


class BulkEngine(ThreadingHTTPServer):
    """Answers every chat request with `answer`: pieces of a body, of an event stream where `stream` says so."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, answer: Iterable[bytes], *, stream: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = tuple(answer)
        self.stream = stream

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: BulkEngine

    def do_GET(self) -> None:
        page = PAGES.get(self.path)
        self._page(200, page) if page is not None else self._page(404, {"error": {"message": "not found"}})

    def do_POST(self) -> None:
        left = int(self.headers.get("content-length", 0))
        while left > 0 and (data := self.rfile.read(min(left, READ))):
            left -= len(data)
        if self.path != "/v1/chat/completions":
            self._page(404, {"error": {"message": "not found", "code": 404}})
            return
        engine = self.server
        size = sum(map(len, engine.answer))
        kind = "text/event-stream" if engine.stream else "application/json"
        self._head(200, kind, size)
        for piece in engine.answer:
            self.wfile.write(piece)

    def _page(self, status: int, page: object) -> None:
        data = json.dumps(page).encode()
        self._head(status, "application/json", len(data))
        self.wfile.write(data)

    def _head(self, status: int, kind: str, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def bulk_engine(answer: Iterable[bytes], *, stream: bool = False) -> Iterator[BulkEngine]:
    """One that listens until the block ends."""
    with BulkEngine(answer, stream=stream) as engine:
        serving = Thread(target=engine.serve_forever, args=(0.05,))
        serving.start()
        try:
            yield engine
        finally:
            engine.shutdown()
            serving.join()


def whole(text: str) -> list[bytes]:
    """A whole chat answer with this text."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return [
        json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}).encode()
    ]


def events(piece: str, count: int) -> list[bytes]:
    """A stream of so many pieces of text."""

    def event(delta: dict[str, str], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        told = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        return b"data: " + json.dumps(told).encode() + b"\n\n"

    middle = event({"content": piece})
    return [middle * count, event({}, "stop"), b"data: [DONE]\n\n"]
