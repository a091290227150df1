"""A client that sees raw bytes: sends what it likes, reads what came, says whether the connection ended."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes
    complete: bool = True
    raw: bytes = field(default=b"", repr=False)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/json"
        error = self.json["error"]
        assert {"message", "type", "param", "code"} <= set(error)
        assert isinstance(error, dict)
        return error


class WireClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, port: int) -> WireClient:
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 20))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def request(
        self, method: str, path: str, body: bytes = b"", head_only: bool = False, **headers: str
    ) -> Reply:
        await self.send(request(method, path, body, **headers))
        return await self.reply(head_only=head_only)

    async def head(self) -> tuple[int, dict[str, str], bytes]:
        raw = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 5)
        lines = raw.decode("latin-1").split("\r\n")
        version, status, _ = lines[0].split(" ", 2)
        assert version == "HTTP/1.1"
        headers = {}
        for line in lines[1:]:
            if line:
                name, _, value = line.partition(": ")
                headers[name.lower()] = value
        return int(status), headers, raw

    async def chunk(self) -> bytes:
        size = int(await asyncio.wait_for(self.reader.readuntil(b"\r\n"), 5), 16)
        data = await asyncio.wait_for(self.reader.readexactly(size + 2), 5)
        assert data.endswith(b"\r\n")
        return data[:-2]

    async def reply(self, *, head_only: bool = False) -> Reply:
        status, headers, raw = await self.head()
        if head_only or status in (204, 304):
            return Reply(status, headers, b"", raw=raw)
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            try:
                while data := await self.chunk():
                    body += data
            except asyncio.IncompleteReadError as cut:
                return Reply(status, headers, body + cut.partial, complete=False, raw=raw)
            return Reply(status, headers, body, raw=raw)
        if "content-length" in headers:
            try:
                body = await asyncio.wait_for(self.reader.readexactly(int(headers["content-length"])), 5)
            except asyncio.IncompleteReadError as cut:
                return Reply(status, headers, cut.partial, complete=False, raw=raw)
            return Reply(status, headers, body, raw=raw)
        return Reply(status, headers, await asyncio.wait_for(self.reader.read(), 5), raw=raw)

    async def ended(self, seconds: float = 5.0) -> bool:
        """Whether the server closes, after nothing further, within this time."""
        try:
            return await asyncio.wait_for(self.reader.read(1), seconds) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def close(self) -> None:
        self.writer.close()


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    fields = {"host": "127.0.0.1", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if (body or method == "POST") and "transfer-encoding" not in fields:
        fields.setdefault("content-length", str(len(body)))
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body
