"""A backend's devices are asked how they fare; what they say names the cause, and silence says nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from gateway import clock
from gateway.cli.ask_devices import ask_devices
from gateway.config.backends import TelemetrySpec
from gateway.config.endpoint import endpoints
from gateway.config.load import load
from gateway.core.degrading.phase import Phase
from gateway.core.health.device_reading import DeviceReading
from gateway.device_agent import Agent, _Server
from gateway.engines.adapter import Answer, Probe
from gateway.fleet.device_watch import DeviceWatch
from gateway.fleet.probing import Prober, Target
from tests.shell.engine_double import vllm
from tests.shell.fixtures import Start


class Card(Agent):
    """An agent beside a card that does what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.hot = False

    def page(self) -> bytes:
        return (
            b'kvgate_device_sm_clock_hertz{gpu="0"} 1.2e9\nkvgate_device_sm_clock_max_hertz{gpu="0"} 2.1e9\n'
            b'kvgate_device_temperature_celsius{gpu="0"} 87\n'
            b'kvgate_device_throttled{gpu="0",by="thermal"} %d\n' % self.hot
        )


@pytest.fixture
def agent() -> Iterator[tuple[str, Card]]:
    card = Card()
    server = _Server(("127.0.0.1", 0), card, "agents-token-1")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/metrics", card
    server.shutdown()
    thread.join()
    server.server_close()


async def test_heat_is_named_where_the_device_tells_of_it(
    start: Start, agent: tuple[str, Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, card = agent
    card.hot = True
    monkeypatch.setenv("AGENT_TOKEN", "agents-token-1")
    gateway = await start({"b1": vllm()}, b1={"telemetry": f"{{agent: '{url}', key: '${{env.AGENT_TOKEN}}'}}"})
    member = gateway.app.roster["b1"]
    await gateway.until(lambda: member.devices is not None and member.devices.reading is not None)
    (row,) = (await gateway.admin("/admin/backends"))["backends"]
    told = row["device_reports"]
    assert (told["sm_clock_mhz"], told["temperature_c"], told["throttled"]) == (1200.0, 87.0, ["thermal"])
    assert (told["power_w"], told["trouble"]) == (None, None)
    assert row["cause"] is None, "hot, and not slower for it"
    for number in range(90):
        for phase in Phase:
            member.condition.paced(phase, 1.0 if number < 60 else 2.0, float(number))
    await gateway.until(lambda: member.condition.verdict.cause == "thermal", 8)
    assert "the device says that it slows down (thermal)" in member.condition.verdict.evidence


@pytest.mark.parametrize(
    ("spec", "trouble"),
    [
        ("{agent: 'http://127.0.0.1:9/metrics'}", "agent: Connection refused"),
        ("{agent: '%s'}", "agent: status 401"),
        ("{dcgm: '%s', labels: {gpu: ['0', '3']}}", "dcgm: status 401"),
    ],
)
async def test_an_exporter_that_tells_nothing_is_visible_and_harms_nothing(
    start: Start, agent: tuple[str, Card], spec: str, trouble: str
) -> None:
    gateway = await start({"b1": vllm()}, b1={"telemetry": spec.replace("%s", agent[0])})
    member = gateway.app.roster["b1"]
    await gateway.until(lambda: member.devices is not None and member.devices.trouble is not None)
    (row,) = (await gateway.admin("/admin/backends"))["backends"]
    assert row["device_reports"] == {"trouble": trouble}
    assert (await gateway.chat()).status == 200
    assert "agents-token-1" not in str(row)


async def test_a_cards_last_fault_counts_if_it_came_while_somebody_looked() -> None:
    class Exporter(Prober):
        xid = 31

        async def ask(self, target: Target, probes: Iterable[Probe], timeout: float) -> dict[str, Answer]:
            page = b'DCGM_FI_DEV_GPU_TEMP{gpu="0"} 60\nDCGM_FI_DEV_XID_ERRORS{gpu="0"} %d\n' % self.xid
            return {probe.key: Answer(200, "text/plain", page) for probe in probes}

    exporter = Exporter()
    watch = DeviceWatch("b1", TelemetrySpec(dcgm="http://127.0.0.1:9400"), exporter)
    for xid, told in ((31, set()), (79, {79}), (79, {79})):
        exporter.xid = xid
        await watch.look()
        assert watch.reading is not None
        assert watch.reading.xid_errors == told


def test_check_asks_the_devices_once_and_says_what_it_found(
    agent: tuple[str, Card],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", "agents-token-1")
    document = """
backends:
  - {name: a, url: "http://127.0.0.1:8", engine: vllm, telemetry: {agent: "%s", key: "${env.AGENT_TOKEN}"}}
  - {name: b, url: "http://127.0.0.1:7", engine: vllm, telemetry: {agent: "%s", key: "${env.NO_SUCH_TOKEN}"}}
  - {name: c, url: "http://127.0.0.1:6", engine: vllm}
"""
    file = tmp_path / "gateway.yaml"
    file.write_text(document % (agent[0], agent[0]))
    policy = load(file, lenient=True).policy
    told = ask_devices(tuple(endpoints(policy).values()))
    assert (told["a"]["temperature_c"], told["a"]["trouble"]) == (87.0, None)
    assert told["b"] == {"trouble": "agent: status 401"}
    assert set(told) == {"a", "b"}
    assert not caplog.records, "it is told on the screen"


async def test_what_is_too_old_shows_its_age_and_says_nothing_else(start: Start, agent: tuple[str, Card]) -> None:
    gateway = await start({"b1": vllm()}, b1={"telemetry": f"{{agent: '{agent[0]}'}}"})
    member = gateway.app.roster["b1"]
    await gateway.until(lambda: member.devices is not None and member.devices.trouble is not None)
    assert member.devices is not None
    member.devices.reading = DeviceReading(at=clock.monotonic() - 61.0, temperature_c=99.0)
    (row,) = (await gateway.admin("/admin/backends"))["backends"]
    assert row["device_reports"]["age_seconds"] >= 61.0
    assert "temperature_c" not in row["device_reports"]
