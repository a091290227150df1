"""Small engines and requests for the tests of the emulated engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gateway.sim.engine_model import EngineModel
from gateway.sim.events import Arrival
from gateway.sim.profile import EngineProfile, engine_profile
from gateway.sim.sequence import SimRequest
from gateway.sim.text import SegmentText


def small_profile(
    *, blocks: int = 64, seqs: int = 8, budget: int = 64, length: int = 512, caching: bool = True
) -> EngineProfile:
    """A Spark whose pool, batch and budget are tiny."""
    return replace(
        engine_profile("dgx-spark"),
        num_blocks=blocks,
        max_num_seqs=seqs,
        max_batched_tokens=budget,
        max_model_len=length,
        prefix_caching=caching,
    )


def request(ident: str, prompt: int = 40, output: int = 10, *, shared: int = 0, reason: str = "length") -> SimRequest:
    """A request whose first `shared` tokens are the same in all of them; the rest is its own."""
    own = hash((1, *ident.encode()))
    segments = [(7, shared), (own, prompt - shared), (own + 1, output)]
    return SimRequest(ident, SegmentText(segments), prompt, output, reason)


def drain(engine: EngineModel, *, limit: int = 20_000) -> tuple[float, dict[str, int]]:
    """Run an engine until it is idle; seconds and tokens by request."""
    now, tokens = 0.0, {}
    for _ in range(limit):
        if not engine.has_work:
            return now, tokens
        result = engine.step(now)
        now += result.duration_s
        for ident, count in result.emitted.items():
            tokens[ident] = tokens.get(ident, 0) + count
    raise AssertionError("the engine does not come to an end")


def arrivals(requests: Iterable[SimRequest], every_s: float = 0.0) -> list[Arrival]:
    """One request every `every_s` seconds."""
    return [Arrival(at * every_s, each) for at, each in enumerate(requests)]


def chat(text: str, tokens: int, *, stream: bool = False) -> dict[str, object]:
    """Body of a chat request for exactly `tokens` tokens of the model "tiny"."""
    messages = [{"role": "user", "content": text}]
    return {"model": "tiny", "messages": messages, "max_tokens": tokens, "ignore_eos": True, "stream": stream}
