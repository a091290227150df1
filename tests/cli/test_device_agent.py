"""The agent that runs beside the devices: what tools and files say, on a page that the gateway reads."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway import device_agent
from gateway.cli.main import main
from gateway.device_agent import Agent
from gateway.engines.device_pages import page_of, reading_of

NOT = "Not Active"
RTX = "0, NVIDIA GeForce RTX 3090, 1695, 2100, 71, 274.81, 275.00, 1024, 24576, 98, 4, 16, " + f"{NOT}, " * 4 + "Active"
GB10 = f"0, NVIDIA GB10, 730, 3003, 52, 14.20, -, -, -, 96, -, -, {NOT}, Active, {NOT}, {NOT}, {NOT}".replace(
    "-", "[N/A]"
)


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with /proc and /sys as on a Linux box, and a PATH with nothing but what a test puts there."""
    for name, text in {
        "proc/meminfo": "MemTotal:       125000000 kB\nMemFree:  1 kB\nMemAvailable:   5000000 kB\n",
        "sys/class/net/enp1s0/speed": "200000\n",
        "sys/class/net/enp1s0/operstate": "up\n",
        "sys/class/net/enp1s0/device/vendor": "0x15b3\n",
        "sys/class/net/lo/speed": "0\n",
        "sys/class/thermal/thermal_zone0/temp": "61000\n",
        "sys/class/thermal/thermal_zone0/type": "acpitz\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def tool(box: Path, name: str, script: str) -> None:
    path = box / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_card_that_tells_everything(box: Path) -> None:
    tool(box, "nvidia-smi", f"echo '{RTX}'")
    reading = reading_of(page_of([Agent(box, "Linux").page()], {}), {}, 0.0)
    assert reading is not None
    assert (reading.sm_clock_mhz, reading.temperature_c, reading.power_w) == (1695, 71, pytest.approx(274.81))
    assert (reading.memory_free_bytes, reading.pcie_width, reading.utilization) == (2**30, 16, pytest.approx(0.98))
    assert reading.throttled == {"power_cap"}
    assert reading.link_gbps == 200.0


def test_a_spark_whose_driver_tells_no_memory(box: Path) -> None:
    tool(box, "nvidia-smi", f"echo '{GB10}'")
    reading = reading_of(page_of([Agent(box, "Linux").page()], {}), {}, 0.0)
    assert reading is not None
    assert (reading.memory_free_bytes, reading.memory_total_bytes) == (5_000_000 * 1024, 125_000_000 * 1024)
    assert (reading.power_limit_w, reading.pcie_gen) == (None, None)
    assert reading.throttled == {"hw_thermal"}


def test_an_older_driver_knows_the_reasons_by_another_name(box: Path) -> None:
    tool(box, "nvidia-smi", f'case "$*" in *clocks_event_reasons*) exit 2;; *) echo "{RTX}";; esac')
    agent = Agent(box, "Linux")
    assert b'throttled{gpu="0",name="NVIDIA GeForce RTX 3090",by="power_cap"} 1' in agent.page()
    assert b"agent_trouble" not in agent.page()


def test_a_tool_that_hangs_is_given_up_and_that_is_told(box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_agent, "WAIT_S", 0.05)
    monkeypatch.setattr(device_agent, "TOOL_S", 0.2)
    tool(box, "nvidia-smi", "exec /bin/sleep 60")
    page = Agent(box, "Linux").page()
    assert b'kvgate_device_agent_trouble{part="nvidia-smi",why="hangs"} 1' in page
    assert b"kvgate_device_host_memory_available_bytes" in page


def test_a_tool_that_cannot_even_be_killed_is_started_once_and_keeps_nobody_waiting(
    box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, begun = threading.Event(), []

    def inside_the_driver(command: tuple[str, ...], **_: object) -> None:
        if command[0] == "nvidia-smi":
            begun.append(command)
            let_go.wait(10)
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", inside_the_driver)
    monkeypatch.setattr(device_agent, "WAIT_S", 0.05)
    agent = Agent(box, "Linux")
    for _ in range(3):
        assert ("agent_trouble", {"part": "nvidia-smi", "why": "hangs"}, 1.0) in agent.lines()
    assert len(begun) == 1
    let_go.set()


def test_what_a_slow_tool_said_meanwhile_is_told_at_the_next_look(box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_agent, "WAIT_S", 0.02)
    tool(box, "nvidia-smi", f"/bin/sleep 0.15; echo '{RTX}'")
    agent = Agent(box, "Linux")
    assert not any(name == "power_watts" for name, _, _ in agent.lines())
    (run,) = (run for command, run in agent._tools._running.items() if command[0] == "nvidia-smi")
    run.join(10)
    for _ in range(2):
        found = agent.lines()
        assert any(name == "power_watts" for name, _, _ in found)
        assert not any(name == "agent_trouble" for name, _, _ in found)


def test_sensors_and_counters_are_told_by_their_names(box: Path) -> None:
    for name, text in {
        "hwmon/hwmon4/name": "k10temp", "hwmon/hwmon4/temp1_input": "83125", "hwmon/hwmon4/temp1_label": "Tctl",
        "net/enp1s0/statistics/rx_bytes": "918273645",
    }.items():  # fmt: skip
        path = box / "sys/class" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    page = Agent(box, "Linux").page()
    assert b'sensor_celsius{sensor="k10temp",zone="hwmon4/temp1",label="Tctl"} 83.125' in page
    assert b'link_rx_bytes_total{link="enp1s0"} 918273645' in page
    reading = reading_of(page_of([page], {}), {}, 0.0)
    assert reading is not None
    assert reading.temperature_c == 83.125


def test_without_tools_there_is_what_the_system_tells_and_nothing_made_up(box: Path) -> None:
    page = Agent(box, "Linux").page().decode()
    assert "sm_clock" not in page
    assert "throttled" not in page
    assert 'kvgate_device_sensor_celsius{sensor="acpitz",zone="thermal_zone0"} 61' in page
    assert "agent_trouble" not in page


def test_a_fault_is_told_only_if_it_came_while_the_agent_ran(box: Path) -> None:
    old = "[1.0] NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus."
    tool(box, "dmesg", f"echo '{old}'")
    agent = Agent(box, "Linux")
    assert not any(name == "xid" for name, _, _ in agent.lines())
    tool(box, "dmesg", f"echo '{old}'; echo '[9.0] NVRM: Xid (PCI:0000:01:00): 119, GSP timeout'")
    assert ("xid", {"xid": "119"}, 1.0) in agent.lines()
    assert ("xid", {"xid": "79"}, 1.0) not in agent.lines()


def test_an_amd_card_by_its_files(box: Path) -> None:
    for name, text in {
        "mem_info_vram_total": "17163091968", "mem_info_vram_used": "1163091968", "gpu_busy_percent": "40",
        "hwmon/hwmon3/temp1_input": "66000", "hwmon/hwmon3/power1_average": "210000000",
        "hwmon/hwmon3/freq1_input": "1250000000", "pp_dpm_sclk": "0: 500Mhz\n1: 1250Mhz *\n2: 2500Mhz",
    }.items():  # fmt: skip
        path = box / "sys/class/drm/card1/device" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    reading = reading_of(page_of([Agent(box, "Linux").page()], {}), {}, 0.0)
    assert reading is not None
    assert (reading.memory_free_bytes, reading.temperature_c, reading.power_w) == (16_000_000_000, 66, 210)
    assert reading.clock == pytest.approx(0.5)


def test_a_mac_by_its_own_tools(box: Path) -> None:
    tool(box, "sysctl", "echo 68719476736")
    tool(box, "vm_stat", "echo 'Mach Virtual Memory Statistics: (page size of 16384 bytes)'; echo 'Pages free:  1000.'")
    tool(box, "pmset", "echo ' CPU_Speed_Limit \t= 80'")
    page = Agent(box, "Darwin").page().decode()
    assert "kvgate_device_host_memory_total_bytes 68719476736" in page
    assert 'kvgate_device_throttled{gpu="0",name="mac",by="thermal"} 1' in page


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = device_agent._Server(("127.0.0.1", 0), Agent(), "a-token")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [("/metrics", "a-token", 200), ("/metrics", "b", 401), ("/metrics", "", 401), ("/x", "a-token", 404)],
)
def test_whoever_asks_needs_the_token(served: str, path: str, token: str, status: int) -> None:
    request = urllib.request.Request(served + path, headers={"Authorization": f"Bearer {token}"} if token else {})
    if status == 200:
        with urllib.request.urlopen(request, timeout=5) as answer:
            assert b"kvgate_device_agent_up 1" in answer.read()
        return
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=5)
    with refused.value:
        assert refused.value.code == status


def test_it_listens_on_ipv6_and_asks_no_name_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(_: str = "") -> str:
        raise AssertionError("a name server was asked")

    monkeypatch.setattr(socket, "getfqdn", asked)
    with device_agent._Server(("127.0.0.1", 0), Agent(), ""):
        pass
    try:
        server = device_agent._Server(("::1", 0), Agent(), "")
    except OSError:
        pytest.skip("no IPv6 here")
    with server:
        assert server.socket.family == socket.AF_INET6


def test_the_file_runs_alone_with_nothing_but_python(tmp_path: Path) -> None:
    copy = tmp_path / "device_agent.py"
    copy.write_bytes(Path(device_agent.__file__).read_bytes())
    command = [sys.executable, "-I", "-S", str(copy), "--once"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PATH": os.environ["PATH"]}, capture_output=True, timeout=30, check=True
    )
    assert b"kvgate_device_agent_up 1\n" in done.stdout


def test_the_command_names_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["device-agent", "--where"]) == 0
    assert capsys.readouterr().out.strip() == device_agent.__file__
