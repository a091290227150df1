"""What a long prompt costs before anything is decided: a megabyte hashed, counted and estimated in well under 5 ms, and
with its JSON parsed and looked through for keys given twice, in about 3 for plain ASCII text and 6 for others.

The best of several runs counts, in CPU seconds of this thread. Printed with `pytest -s`. Bodies that are full of both
escapes and multi-byte characters miss the promise on a quiet core and have a budget of their own: text is unescaped at
5 to 10 ns a character by any decoder, checked as UTF-8 besides, and encoded again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from gateway.core.estimators.text_counts import count_prompt
from gateway.core.experience import Experience
from gateway.core.prefix.chain import fingerprint
from gateway.tokens.measure import measure
from gateway.wire.chat_body import Message
from gateway.wire.rendered import render_chat

PLAIN_BUDGET = 4e-3
BUDGET = 6e-3
MIXED_BUDGET = 8e-3
"""For escapes among multi-byte characters, which any decoder takes 5 to 10 ns each for."""
SLACK = 2.5
"""A core whose other half is busy takes twice as long, even at best; the rest is what quiet runs differ by."""
MEGABYTE = 1_000_000

PROSE = "The gateway holds the queue; a request is bound to a backend only when that backend can start it. " * 8
CODE = (
    """
def settle(lease: Lease, outcome: Outcome, now: float) -> Settled:
    # A lease is settled once: whoever comes second finds it gone and leaves the totals alone — très bien.
    entry = ledger.entries.pop(lease.id, None)
    if entry is None:
        return Settled(False, ledger.total)
    return Settled(True, ledger.total, waited=now - entry.started, note="settled by " + outcome.name)
"""
    * 2
)
CJK = "请求在网关排队，直到有后端能够立即开始处理它；缓存命中率决定了首个令牌的延迟。\n" * 10
TOOL_RESULT = json.dumps({"path": "C:\\data\\número 7", "rows": [{"id": 7, "name": "Zoë"}], "text": "a\n\tb\n"}) * 8


def conversation(text: str, *, ascii_only: bool = False) -> bytes:
    """About a megabyte of messages that say the same, as a client sends it."""
    one = {"role": "user", "content": text}
    size = len(json.dumps(one, ensure_ascii=ascii_only).encode())
    messages = [one] * round(MEGABYTE / size)
    return json.dumps({"model": "m", "stream": True, "messages": messages}, ensure_ascii=ascii_only).encode()


def best_seconds(action: Callable[[], object], runs: int = 12) -> float:
    took = []
    for _ in range(runs):
        started = time.thread_time()
        action()
        took.append(time.thread_time() - started)
    return min(took)


@pytest.mark.parametrize(
    ("kind", "body", "budget"),
    [
        ("prose", conversation(PROSE), PLAIN_BUDGET),
        ("prose in one message", conversation(PROSE * 1250), PLAIN_BUDGET),
        ("code", conversation(CODE), BUDGET),
        ("CJK", conversation(CJK), BUDGET),
        ("CJK as escapes", conversation(CJK, ascii_only=True), BUDGET),
        ("JSON in JSON", conversation(TOOL_RESULT), BUDGET),
        ("escapes and other alphabets", conversation('één "citaat"\n\t' * 80), MIXED_BUDGET),
        ("an escape beside each character", conversation('é"' * 600), MIXED_BUDGET),
        ("and of three alphabets", conversation('"é\n日\\' * 300), MIXED_BUDGET),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_megabyte_of_chat_is_measured_and_estimated(kind: str, body: bytes, budget: float) -> None:
    experience = Experience()

    def estimated() -> int:
        measured = measure("chat", body, b"salt")
        return experience.estimate("m", "client", measured.counts).prompt

    assert len(body) > 0.95 * MEGABYTE
    assert estimated() > 100_000
    seconds = best_seconds(estimated)
    print(f"\n{kind}: {seconds * 1e3:.2f} ms for {len(body) / 1e6:.2f} MB")
    assert seconds < budget * SLACK


@pytest.mark.benchmark(timer=time.thread_time, group="estimate and fingerprint")
@pytest.mark.parametrize(("size", "budget"), [(100_000, 0.5e-3), (MEGABYTE, 5e-3)], ids=["100 kB", "1 MB"])
@pytest.mark.parametrize("kind", ["prose", "code", "CJK"])
def test_estimate_and_fingerprint(benchmark: BenchmarkFixture, kind: str, size: int, budget: float) -> None:
    unit = {"prose": PROSE, "code": CODE, "CJK": CJK}[kind]
    rendered = render_chat(b"", [Message("user", unit)] * (size // len(unit.encode())))
    text, experience = b"".join(rendered.pieces), Experience()

    def estimated() -> int:
        chain = fingerprint((text,), rendered.message_ends, b"salt")
        counts = count_prompt(text, [end for _, end in chain.anchors], messages=rendered.messages)
        return experience.tokens.estimate("m", "client", counts, chain).tokens

    assert benchmark.pedantic(estimated, rounds=60, warmup_rounds=3) > size // 10
    assert benchmark.stats is not None
    assert benchmark.stats.stats.min < budget * SLACK
