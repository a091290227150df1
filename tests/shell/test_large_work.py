"""Bodies and answers of tens of megabytes: how much memory they take, and that nobody else has to wait for them."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.core.memory import WORK
from tests.shell.bulk_engine import bulk_engine, events, whole
from tests.shell.running import backend, config
from tests.shell.watched_gateway import MB, WatchedGateway, watched_gateway

pytestmark = pytest.mark.timeout(100)

STOOD_STILL = 0.35
"""Seconds that the loop may stand still at most: 50 ms are promised, the rest is for a machine with other work. What is
to be seen would take 0.4 to 4 s."""
OWN = 30 * MB
"""Bytes by which a gateway grows by itself when it begins to serve."""
A_PROCESS = 70 * MB
"""Bytes that a process with nothing to do has."""
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"


@contextmanager
def serving(
    file: Path, answer: Iterable[bytes], *, flavour: str = "openai", limits: str = ""
) -> Iterator[WatchedGateway]:
    """A gateway that has found its engine, which answers with this."""
    with bulk_engine(answer, stream=flavour == "llama.cpp") as engine:
        server = f"limits: {{{limits}}}" if limits else ""
        file.write_text(config(backend("b1", engine.url, flavour, abilities="{vision: true}"), server=server))
        with watched_gateway(file) as gateway:
            for _ in range(200):
                if json.loads(ask(gateway, "GET", "/v1/models")[1])["data"]:
                    break
                time.sleep(0.05)
            assert ask(gateway, "POST", CHAT, asking("hi"))[0] in (200, 502)
            gateway.start = gateway.own = gateway.peak = gateway.resident
            gateway.ask()
            yield gateway


def ask(gateway: WatchedGateway, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    try:
        connection.request(method, path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def at_once(gateway: WatchedGateway, path: str, body: bytes, times: int) -> list[tuple[int, bytes]]:
    """So many of the same request, sent at the same time."""
    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(lambda _: ask(gateway, "POST", path, body), range(times)))


def asking(content: object, **more: object) -> bytes:
    return json.dumps(
        {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": content}], **more}
    ).encode()


def pictures(size: int) -> bytes:
    """A chat request of so many bytes, nearly all of them in pictures."""
    url = "data:image/png;base64," + "A" * (4 * MB)
    part = {"type": "image_url", "image_url": {"url": url}}
    return asking([{"type": "text", "text": "what is this?"}, *[part] * (size // (4 * MB))])


def sources(size: int) -> bytes:
    """The same as a Messages request."""
    part = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * (4 * MB)}}
    return asking([{"type": "text", "text": "what is this?"}, *[part] * (size // (4 * MB))])


def told(name: str, gateway: WatchedGateway) -> float:
    """The longest stop of the loop in seconds; nothing of what was charged is left."""
    deadline = time.monotonic() + 3
    stall = 0.0
    while (answer := gateway.ask())["held"] and time.monotonic() < deadline:
        stall = max(stall, answer["stall"])
        time.sleep(0.02)
    stall = max(stall, answer["stall"])
    own, peak, after = ((figure - gateway.start) / MB for figure in (gateway.own, gateway.peak, gateway.resident))
    print(f"{name}: grew by {own:.0f} MB, {peak:.0f} MB with its processes, after {after:.0f} MB; stood {stall:.3f} s")
    assert answer["held"] == 0
    return stall


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_bodies_of_60_mb_share_one_budget(tmp_path: Path, path: str) -> None:
    body = pictures(60 * MB) if path == CHAT else sources(60 * MB)
    with serving(tmp_path / "f.yaml", whole("ok"), limits="memory: 256MiB") as gateway:
        replies = at_once(gateway, path, body, 4)
        assert [status for status, _ in replies] == [200] * 4
        stall = told(path, gateway)
        # One at a time, and its translation; what is done with it takes several times its length in a process that is
        # gone afterwards.
        assert gateway.own - gateway.start < 2 * len(body) + OWN
        assert gateway.peak - gateway.start < (2 + WORK) * len(body) + OWN + A_PROCESS
        assert gateway.resident - gateway.start < OWN
        assert stall < STOOD_STILL


def test_small_requests_are_not_held_up_while_large_ones_are_worked_on(tmp_path: Path) -> None:
    body, small = sources(60 * MB), asking("hi")
    with serving(tmp_path / "f.yaml", whole("ok"), limits="memory: 256MiB") as gateway:
        large = threading.Thread(target=at_once, args=(gateway, MESSAGES, body, 1))
        large.start()
        took: list[float] = []
        while large.is_alive():
            began = time.monotonic()
            status, answer = ask(gateway, "POST", MESSAGES, small)
            assert status == 200, answer
            took.append(time.monotonic() - began)
            time.sleep(0.01)
        large.join()
        print(f"{len(took)} small ones, the slowest took {max(took):.3f} s")
        assert len(took) > 5
        assert sorted(took)[-2] < 4 * STOOD_STILL
        assert told("small ones between", gateway) < STOOD_STILL


@pytest.mark.parametrize("kind", ["translated", "put together"])
def test_answers_of_30_mb_are_finished_one_at_a_time(tmp_path: Path, kind: str) -> None:
    text = "words " * (5 * MB)
    streams = kind != "translated"
    answer = events(text[:20_000], 1500) if streams else whole(text)
    path = CHAT if streams else MESSAGES
    with serving(tmp_path / "f.yaml", answer, flavour="llama.cpp" if streams else "openai") as gateway:
        replies = at_once(gateway, path, asking("hi"), 3)
        assert [status for status, _ in replies] == [200] * 3
        assert all(json.dumps(text[:20_000])[1:-1].encode() in body for _, body in replies)
        assert all(len(body) >= len(text) - 20_000 for _, body in replies)
        stall = told(kind, gateway)
        assert gateway.own - gateway.start < 3 * 1.5 * len(text) + OWN
        assert gateway.peak - gateway.start < (3 * 1.5 + WORK) * len(text) + OWN + A_PROCESS
        assert gateway.resident - gateway.start < OWN
        assert stall < STOOD_STILL


def test_a_long_answer_in_short_pieces_leaves_the_loop_to_others(tmp_path: Path) -> None:
    with serving(tmp_path / "f.yaml", events("token", 20_000), flavour="llama.cpp") as gateway:
        replies = at_once(gateway, CHAT, asking("hi"), 2)
        assert [(status, len(body) > 100_000) for status, body in replies] == [(200, True)] * 2
        assert told("short pieces", gateway) < STOOD_STILL


def test_an_answer_over_the_limit_is_given_up_in_the_clients_dialect(tmp_path: Path) -> None:
    with serving(tmp_path / "f.yaml", whole("words " * MB), limits="answer: 2MiB") as gateway:
        status, body = ask(gateway, "POST", MESSAGES, asking("hi"))
        error = json.loads(body)["error"]
        assert (status, error["code"]) == (502, "answer_too_large")
        assert "server.limits.answer" in error["message"]
        assert gateway.own - gateway.start < OWN


def test_streams_of_responses_say_their_text_again_without_copies(tmp_path: Path) -> None:
    asked = json.dumps({"model": "m", "input": "hi", "stream": True}).encode()
    with serving(tmp_path / "f.yaml", events("z" * 30_000, 330), flavour="llama.cpp") as gateway:
        replies = at_once(gateway, "/v1/responses", asked, 2)
        assert [(status, body.count(b"z" * 9_900_000)) for status, body in replies] == [(200, 4)] * 2
        assert told("responses", gateway) < STOOD_STILL
        assert gateway.own - gateway.start < 2 * 9_900_000 + OWN
        assert gateway.resident - gateway.start < OWN


def test_a_stream_of_a_response_over_the_limit_ends_with_an_error_event(tmp_path: Path) -> None:
    asked = json.dumps({"model": "m", "input": "hi", "stream": True}).encode()
    with serving(tmp_path / "f.yaml", events("z" * 30_000, 330), flavour="llama.cpp", limits="answer: 2MiB") as gateway:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        connection.request("POST", "/v1/responses", asked, {"content-type": "application/json"})
        try:
            body = connection.getresponse().read()
        except http.client.IncompleteRead as cut:
            body = cut.partial
        connection.close()
        assert b"event: response.failed" in body
        assert b"server.limits.answer" in body
        assert told("over the limit", gateway) < STOOD_STILL
