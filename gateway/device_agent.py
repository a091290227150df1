#!/usr/bin/env python3
"""Tells what a box's devices do: clocks, power, heat, memory, network links; for Prometheus, and for kvgate beside it.

    python3 device_agent.py [--listen 127.0.0.1:9836] [--once]

One file and nothing but the standard library, so that it can be copied to a box alone. Reads nvidia-smi where it is
there, AMD's and Intel's cards through sysfs, memory, network and sensors through /proc and /sys, a Mac through its own
tools. What can't be read is left out: a figure that is absent is never zero. A tool that hangs keeps nobody waiting,
and that is told. With KVGATE_AGENT_TOKEN set, whoever asks needs `Authorization: Bearer` and that.
"""

from __future__ import annotations

import argparse
import hmac
import os
import platform
import re
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WAIT_S = 1.5
"""Seconds that a page waits for a tool; whoever asks has patience for a few."""
TOOL_S = 10.0
"""Seconds after which a tool is killed."""
LATE_S = 15.0
"""Seconds for which what a slow tool said still counts."""
FRESH_S = 2.0
"""Seconds for which one look at the devices serves everybody who asks."""
XID_S = 600.0
"""Seconds for which a fault that the driver logged is told of."""

Line = tuple[str, dict[str, str], float]
"""Name without its prefix, labels, value."""

NVIDIA = {
    "clocks.current.sm": ("sm_clock_hertz", 1e6),
    "clocks.max.sm": ("sm_clock_max_hertz", 1e6),
    "temperature.gpu": ("temperature_celsius", 1.0),
    "power.draw": ("power_watts", 1.0),
    "enforced.power.limit": ("power_limit_watts", 1.0),
    "memory.free": ("memory_free_bytes", 2.0**20),
    "memory.total": ("memory_total_bytes", 2.0**20),
    "utilization.gpu": ("utilization_ratio", 0.01),
    "pcie.link.gen.current": ("pcie_generation", 1.0),
    "pcie.link.width.current": ("pcie_width", 1.0),
}
REASONS = {
    "hw_slowdown": "hw_slowdown",
    "hw_thermal_slowdown": "hw_thermal",
    "sw_thermal_slowdown": "thermal",
    "hw_power_brake_slowdown": "power_brake",
    "sw_power_cap": "power_cap",
}
_XID = re.compile(r"NVRM: Xid \([^)]*\): (\d+)")


class _Run(threading.Thread):
    """One run of a tool. One that waits inside a driver can't even be killed: then only this thread stays with it."""

    def __init__(self, command: tuple[str, ...]) -> None:
        super().__init__(daemon=True)
        self.command = command
        self.said: str | None = None
        self.trouble: str | None = None
        self.began = self.ended = time.monotonic()

    def run(self) -> None:
        try:
            done = subprocess.run(
                self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                timeout=TOOL_S, check=False, env={**os.environ, "LC_ALL": "C"},
            )  # fmt: skip
            self.trouble = "fails" if done.returncode else None
            self.said = None if done.returncode else done.stdout.decode("utf-8", "replace")
        except FileNotFoundError:
            pass
        except subprocess.TimeoutExpired:
            self.trouble = "hangs"
        except OSError:
            self.trouble = "can't be run"
        self.ended = time.monotonic()


class Tools:
    """Runs tools, each at most once at a time; `troubles`: by name, why one says nothing."""

    def __init__(self) -> None:
        self.troubles: dict[str, str] = {}
        self._running: dict[tuple[str, ...], _Run] = {}
        self._ended: dict[tuple[str, ...], _Run] = {}

    def said(self, *command: str) -> str | None:
        """What a tool prints, or printed a moment ago where it is slow; None when it is not there, fails or hangs."""
        run, patience = self._running.get(command), 0.0
        if run is not None and not run.is_alive():
            self._ended[command], run = run, None
        last = self._ended.get(command)
        late = last is not None and last.ended - last.began > WAIT_S and time.monotonic() - last.ended < LATE_S
        if run is None:
            run = self._running[command] = _Run(command)
            run.start()
            patience = 0.0 if late else WAIT_S
        run.join(patience)
        if not run.is_alive():
            self._ended[command] = last = self._running.pop(command)
        elif not late:
            last = None
        trouble = "hangs" if last is None else last.trouble
        self.troubles.pop(command[0], None)
        if trouble is not None:
            self.troubles[command[0]] = trouble
        return last.said if last is not None else None


class Agent:
    """One box. Thread-safe."""

    def __init__(self, root: Path = Path("/"), system: str = platform.system()) -> None:
        self._root = root
        self._system = system
        self._tools = Tools()
        self._reasons = "clocks_event_reasons"
        self._xids: dict[str, float] = {}
        self._xids_before: dict[str, int] | None = None
        self._lock = threading.Lock()
        self._page = b""
        self._read_at = -1e9

    def page(self) -> bytes:
        """The figures in Prometheus' text format."""
        with self._lock:
            if time.monotonic() - self._read_at > FRESH_S:
                self._page = rendered(self.lines())
                self._read_at = time.monotonic()
            return self._page

    def lines(self) -> list[Line]:
        """Every figure that could be read."""
        found: list[Line] = []
        for part in (self._nvidia, self._xid, self._drm, self._memory, self._network, self._sensors, self._mac):
            try:
                found += part()
            except (OSError, ValueError) as error:  # a file that vanished, a tool that says something new
                self._tools.troubles[part.__name__.strip("_")] = type(error).__name__
        found += [("agent_trouble", {"part": part, "why": why}, 1.0) for part, why in self._tools.troubles.items()]
        return [*found, ("agent_up", {}, 1.0)]

    # --- NVIDIA

    def _nvidia(self) -> Iterator[Line]:
        said = self._asked(self._reasons)
        if said is None and "hangs" not in self._tools.troubles.get("nvidia-smi", ""):
            other = "clocks_throttle_reasons"  # drivers before 535
            said = self._asked(other)
            if said is not None:
                self._reasons = other
        for row in (said or "").splitlines():
            index, name, *values = [cell.strip() for cell in row.split(",")]
            labels = {"gpu": index, "name": name}
            for (figure, scale), value in zip(NVIDIA.values(), values, strict=False):
                number = _number(value)
                if number is not None:
                    yield figure, labels, number * scale
            for word, value in zip(REASONS.values(), values[len(NVIDIA) :], strict=False):
                if value in ("Active", "Not Active"):
                    yield "throttled", {**labels, "by": word}, float(value == "Active")

    def _asked(self, reasons: str) -> str | None:
        fields = ["index", "name", *NVIDIA, *(f"{reasons}.{reason}" for reason in REASONS)]
        return self._tools.said("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")

    def _xid(self) -> Iterator[Line]:
        said = self._tools.said("dmesg") if self._system == "Linux" else None
        self._tools.troubles.pop("dmesg", None)  # most boxes keep it to root
        if said is None:
            return
        counts: dict[str, int] = {}
        for xid in _XID.findall(said):
            counts[xid] = counts.get(xid, 0) + 1
        now, before = time.monotonic(), self._xids_before
        if before is not None:  # what was logged before this began may be years old
            self._xids.update({xid: now for xid, count in counts.items() if count > before.get(xid, 0)})
        self._xids_before = counts
        for xid, at in self._xids.items():
            if now - at < XID_S:
                yield "xid", {"xid": xid}, 1.0

    # --- AMD and Intel

    def _drm(self) -> Iterator[Line]:
        for card in sorted((self._root / "sys/class/drm").glob("card[0-9]*")):
            device = card / "device"
            total, used = _read(device / "mem_info_vram_total"), _read(device / "mem_info_vram_used")
            if "-" in card.name or total is None:
                continue
            labels = {"gpu": card.name, "name": "amd"}
            yield "memory_total_bytes", labels, total
            if used is not None:
                yield "memory_free_bytes", labels, total - used
            table = device / "pp_dpm_sclk"
            clocks = re.findall(r"(\d+)mhz", table.read_text().lower()) if table.is_file() else []
            if clocks:
                yield "sm_clock_max_hertz", labels, max(map(float, clocks)) * 1e6
            figures = {"utilization_ratio": (device / "gpu_busy_percent", 0.01)}
            for monitor in (device / "hwmon").glob("hwmon*"):
                figures |= {
                    "temperature_celsius": (monitor / "temp1_input", 1e-3),
                    "power_watts": (monitor / "power1_average", 1e-6),
                    "power_limit_watts": (monitor / "power1_cap", 1e-6),
                    "sm_clock_hertz": (monitor / "freq1_input", 1.0),
                    "slowdown_temperature_celsius": (monitor / "temp1_crit", 1e-3),
                }
            for figure, (path, scale) in figures.items():
                value = _read(path)
                if value is not None:
                    yield figure, labels, value * scale

    # --- the machine

    def _memory(self) -> Iterator[Line]:
        path = self._root / "proc/meminfo"
        if not path.is_file():
            return
        told = dict(re.findall(r"^(\w+):\s+(\d+) kB", path.read_text(), re.MULTILINE))
        for key, figure in (("MemTotal", "host_memory_total_bytes"), ("MemAvailable", "host_memory_available_bytes")):
            if key in told:
                yield figure, {}, float(told[key]) * 1024

    def _network(self) -> Iterator[Line]:
        for link in sorted((self._root / "sys/class/net").glob("*")):
            if not (link / "device").exists():  # loopback, bridges, tunnels
                continue
            labels = {"link": link.name}
            state = link / "operstate"
            up = state.is_file() and state.read_text().strip() == "up"
            yield "link_up", labels, float(up)
            speed = _read(link / "speed")
            if up and speed is not None and speed > 0:
                yield "link_bits_per_second", labels, speed * 1e6
            for counter in ("rx_bytes", "rx_errors", "rx_dropped", "tx_bytes", "tx_errors", "tx_dropped"):
                count = _read(link / "statistics" / counter)
                if count is not None:
                    yield f"link_{counter}_total", labels, count

    def _sensors(self) -> Iterator[Line]:
        for zone in sorted((self._root / "sys/class/thermal").glob("thermal_zone*")):
            value, kind = _read(zone / "temp"), zone / "type"
            if value is not None and value > 0:
                name = kind.read_text().strip() if kind.is_file() else zone.name
                yield "sensor_celsius", {"sensor": name, "zone": zone.name}, value / 1000
        for monitor in sorted((self._root / "sys/class/hwmon").glob("hwmon*")):
            about = monitor / "name"
            chip = about.read_text().strip() if about.is_file() else monitor.name
            for probe in sorted(monitor.glob("temp*_input")):
                value, label = _read(probe), probe.with_name(probe.name.replace("_input", "_label"))
                if value is not None and value > 0:
                    where = f"{monitor.name}/{probe.name.removesuffix('_input')}"
                    said = {"label": label.read_text().strip()} if label.is_file() else {}
                    yield "sensor_celsius", {"sensor": chip, "zone": where, **said}, value / 1000

    def _mac(self) -> Iterator[Line]:
        if self._system != "Darwin":
            return
        size, pages = self._tools.said("sysctl", "-n", "hw.memsize"), self._tools.said("vm_stat")
        if size and (total := _number(size)) is not None:
            yield "host_memory_total_bytes", {}, total
        if pages and (page := re.search(r"page size of (\d+) bytes", pages)):
            free = sum(
                float(n) for n in re.findall(r"^Pages (?:free|inactive|speculative):\s+(\d+)", pages, re.MULTILINE)
            )
            yield "host_memory_available_bytes", {}, free * float(page[1])
        heat = self._tools.said("pmset", "-g", "therm")
        if heat and (limit := re.search(r"CPU_Speed_Limit\s*=\s*(\d+)", heat)):
            yield "throttled", {"gpu": "0", "name": "mac", "by": "thermal"}, float(int(limit[1]) < 100)


def rendered(lines: list[Line]) -> bytes:
    """Prometheus' text format, families together."""
    families: dict[str, list[str]] = {}
    for name, labels, value in lines:
        told = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        line = f"kvgate_device_{name}{{{told}}} {value:.17g}" if told else f"kvgate_device_{name} {value:.17g}"
        families.setdefault(name, []).append(line)
    out = []
    for name, members in families.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        out += [f"# TYPE kvgate_device_{name} {kind}", *members]
    return "\n".join([*out, ""]).encode()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None  # [N/A], [Not Supported], [Unknown Error]
    return value if value == value and abs(value) != float("inf") else None


def _read(path: Path) -> float | None:
    try:
        return _number(path.read_text())
    except OSError:
        return None


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10.0

    def do_GET(self) -> None:
        token = self.server.token
        given = self.headers.get("Authorization", "")
        if token and not hmac.compare_digest(given.encode(), b"Bearer " + token.encode()):
            self._answer(401, b"a token is needed: Authorization: Bearer ...\n")
        elif self.path.split("?")[0] in ("/metrics", "/"):
            self._answer(200, self.server.agent.page())
        else:
            self._answer(404, b"nothing here but /metrics\n")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: it is asked every few seconds."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], agent: Agent, token: str) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)
        self.agent = agent
        self.token = token

    def server_bind(self) -> None:
        """Without asking a name server for this box's name, as HTTPServer does: it may not answer."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])


def main(argv: list[str] | None = None) -> int:
    """Serve, or print once."""
    about, _, rest = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        prog="device_agent", description=about, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--listen", default="127.0.0.1:9836", metavar="HOST:PORT", help="where (127.0.0.1:9836)")
    parser.add_argument("--once", action="store_true", help="print the figures and end")
    given = parser.parse_args(argv)
    agent = Agent()
    if given.once:
        sys.stdout.write(agent.page().decode())
        return 0
    host, _, port = given.listen.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        parser.error(f"--listen takes HOST:PORT, not {given.listen!r}")
    try:
        server = _Server((host.strip("[]"), int(port)), agent, os.environ.get("KVGATE_AGENT_TOKEN", ""))
    except OSError as error:
        print(f"device_agent: can't listen on {given.listen}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"device_agent: http://{given.listen}/metrics", file=sys.stderr)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
