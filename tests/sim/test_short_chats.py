"""Many short chats on an unlike fleet: the gateway spreads what nearly fills the small cards, and nobody waits idly.

Each request alone would gain by waiting for a card that is about to have room. All of them together would not.
"""

from __future__ import annotations

from gateway.config.load import load
from gateway.sim.experiment import Contender, play, traffic
from gateway.sim.trace_file import read_trace
from gateway.sim.truth import Truth
from tests.sim.overload import TRACES

FLEET = {"spark0": "dgx-spark", "pro": "rtx-pro-6000"} | {f"rtx{number}": "rtx-3090" for number in range(2)}
WEIGHTS = {"dgx-spark": "fp8", "rtx-pro-6000": "fp8", "rtx-3090": "q4_k_m"}
YAML = "backends:\n" + "".join(
    f"  - {{name: {name}, url: 'http://{name}.test', engine: vllm, device: {device},"
    f" models: [{{id: Qwen3-30B-A3B, weights: {WEIGHTS[device]}}}]}}\n"
    for name, device in FLEET.items()
)


def test_a_crowd_is_spread() -> None:
    configuration = load(YAML).policy
    given = [Contender("kvgate", configuration), Contender("least", configuration, "least-requests")]
    asked = traffic(read_trace(TRACES / "azure2023-conversation.csv"), given, requests=400, rate=10.0)
    ours, least = (play(one, asked, truth=Truth(noise=0.2)).summary for one in given)
    assert ours.goodput >= 0.85
    assert ours.goodput > least.goodput
    assert ours.ttft_s[1] < 4.0
