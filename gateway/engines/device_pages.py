"""Pages of exporters to a reading of a device: NVIDIA's DCGM, nvidia_gpu_exporter, node_exporter, our own agent.

What a page lacks is None in the reading. Units are brought to those of `DeviceReading`. Bits of the clocks' reasons are
NVML's (nvmlClocksEventReasons).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from gateway.core.health.device_reading import DeviceReading
from gateway.engines.metrics_text import Sample, samples

__all__ = ["DevicePage", "page_of", "reading_of"]

_MIB: Final = 2.0**20
_BITS: Final = {0x04: "power_cap", 0x08: "hw_slowdown", 0x20: "thermal", 0x40: "hw_thermal", 0x80: "power_brake"}
_REASONS: Final = {
    "sw_power_cap": "power_cap",
    "hw_slowdown": "hw_slowdown",
    "sw_thermal_slowdown": "thermal",
    "hw_thermal_slowdown": "hw_thermal",
    "hw_power_brake_slowdown": "power_brake",
}

# Family: the figure of a card, and the factor that brings it to this figure's unit.
_CARD: Final[Mapping[str, tuple[str, float]]] = {
    "DCGM_FI_DEV_SM_CLOCK": ("sm_clock_mhz", 1.0),
    "DCGM_FI_DEV_MAX_SM_CLOCK": ("max_sm_clock_mhz", 1.0),
    "DCGM_FI_DEV_GPU_TEMP": ("temperature_c", 1.0),
    "DCGM_FI_DEV_SLOWDOWN_TEMP": ("slowdown_temperature_c", 1.0),
    "DCGM_FI_DEV_POWER_USAGE": ("power_w", 1.0),
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": ("power_limit_w", 1.0),
    "DCGM_FI_DEV_FB_FREE": ("memory_free_bytes", _MIB),
    "DCGM_FI_DEV_FB_USED": ("memory_used_bytes", _MIB),
    "DCGM_FI_DEV_FB_RESERVED": ("memory_reserved_bytes", _MIB),
    "DCGM_FI_DEV_FB_TOTAL": ("memory_total_bytes", _MIB),
    "DCGM_FI_DEV_GPU_UTIL": ("utilization", 0.01),
    "DCGM_FI_DEV_PCIE_LINK_GEN": ("pcie_gen", 1.0),
    "DCGM_FI_DEV_PCIE_LINK_WIDTH": ("pcie_width", 1.0),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("pcie_replays", 1.0),
    "nvidia_smi_clocks_current_sm_clock_hz": ("sm_clock_mhz", 1e-6),
    "nvidia_smi_clocks_max_sm_clock_hz": ("max_sm_clock_mhz", 1e-6),
    "nvidia_smi_temperature_gpu": ("temperature_c", 1.0),
    "nvidia_smi_power_draw_watts": ("power_w", 1.0),
    "nvidia_smi_enforced_power_limit_watts": ("power_limit_w", 1.0),
    "nvidia_smi_memory_free_bytes": ("memory_free_bytes", 1.0),
    "nvidia_smi_memory_total_bytes": ("memory_total_bytes", 1.0),
    "nvidia_smi_utilization_gpu_ratio": ("utilization", 1.0),
    "nvidia_smi_pcie_link_gen_current": ("pcie_gen", 1.0),
    "nvidia_smi_pcie_link_width_current": ("pcie_width", 1.0),
    "kvgate_device_sm_clock_hertz": ("sm_clock_mhz", 1e-6),
    "kvgate_device_sm_clock_max_hertz": ("max_sm_clock_mhz", 1e-6),
    "kvgate_device_temperature_celsius": ("temperature_c", 1.0),
    "kvgate_device_slowdown_temperature_celsius": ("slowdown_temperature_c", 1.0),
    "kvgate_device_power_watts": ("power_w", 1.0),
    "kvgate_device_power_limit_watts": ("power_limit_w", 1.0),
    "kvgate_device_memory_free_bytes": ("memory_free_bytes", 1.0),
    "kvgate_device_memory_total_bytes": ("memory_total_bytes", 1.0),
    "kvgate_device_utilization_ratio": ("utilization", 1.0),
    "kvgate_device_pcie_generation": ("pcie_gen", 1.0),
    "kvgate_device_pcie_width": ("pcie_width", 1.0),
}
_MASKS: Final = ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS")
_FLAGS: Final = {
    f"nvidia_smi_clocks_{kind}_reasons_{reason}": word
    for kind in ("throttle", "event")
    for reason, word in _REASONS.items()
}
_THROTTLED: Final = "kvgate_device_throttled"
_LAST_XID: Final = "DCGM_FI_DEV_XID_ERRORS"
_XIDS: Final = ("DCGM_EXP_XID_ERRORS_COUNT", "kvgate_device_xid")
"""Of the last minutes, by their label."""
_HOST: Final = {
    "node_memory_MemAvailable_bytes": "memory_free_bytes",
    "node_memory_MemTotal_bytes": "memory_total_bytes",
    "kvgate_device_host_memory_available_bytes": "memory_free_bytes",
    "kvgate_device_host_memory_total_bytes": "memory_total_bytes",
}
_LINKS: Final = {"node_network_speed_bytes": 8e-9, "kvgate_device_link_bits_per_second": 1e-9}
_SENSORS: Final = {
    "node_hwmon_temp_celsius": "chip",
    "node_thermal_zone_temp": "type",
    "kvgate_device_sensor_celsius": "sensor",
}
_PROCESSORS: Final = re.compile(r"coretemp|k10temp|zenpower|acpitz|x86_pkg_temp|thermal_zone|cpu|soc|macsmc")
"""Sensors of what computes; the others are of disks and network cards."""
_TROUBLE: Final = "kvgate_device_agent_trouble"
_ALL: Final = (*_CARD, *_MASKS, *_FLAGS, _THROTTLED, _LAST_XID, *_XIDS, *_HOST, *_LINKS, *_SENSORS, _TROUBLE)
_CARD_LABELS: Final = ("UUID", "uuid", "gpu")
_LINK_LABELS: Final = ("device", "link")
_VIRTUAL: Final = ("lo", "docker", "veth", "br-", "virbr", "cni", "flannel", "tun", "tap", "wg")


@dataclass(slots=True)
class DevicePage:
    """What pages told. Cards by their names; links in Gb/s by theirs; the machine's memory in bytes."""

    cards: dict[str, dict[str, float]] = field(default_factory=dict)
    throttled: dict[str, set[str]] = field(default_factory=dict)
    """Of cards that tell their reasons at all."""
    xids: set[int] = field(default_factory=set)
    """Faults of the last minutes."""
    last_xids: dict[str, int] = field(default_factory=dict)
    """By card its last fault, however long ago; 0: none since the driver was loaded."""
    links: dict[str, float] = field(default_factory=dict)
    host: dict[str, float] = field(default_factory=dict)
    heat: float | None = None
    """Of the machine's own processor, where it has a sensor."""
    troubles: list[str] = field(default_factory=list)
    """Tools beside the device that say nothing, and why."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found that is known here."""
        return not (self.cards or self.throttled or self.links or self.host or self.heat)


def page_of(pages: Iterable[bytes], only: Mapping[str, Collection[str]]) -> DevicePage:
    """What is in these pages; `only`: by label the values that a sample may have if it has the label at all, where one
    exporter serves several boxes or cards. Proportional to the pages' length: a DCGM page is 20 kB a card."""
    found = DevicePage()
    for page in pages:
        for family, told in samples(page, _ALL).items():
            for sample in told:
                if all(key not in sample.labels or sample.labels[key] in values for key, values in only.items()):
                    _take(found, family, sample)
    return found


def _take(found: DevicePage, family: str, sample: Sample) -> None:
    labels, value = sample
    card = next((labels[key] for key in _CARD_LABELS if key in labels), "0")
    if family in _CARD:
        figure, scale = _CARD[family]
        if value >= 0.0 and value < 1e15:  # DCGM writes huge numbers where there is no figure
            found.cards.setdefault(card, {})[figure] = value * scale
    elif family in _MASKS:
        found.throttled.setdefault(card, set()).update(word for bit, word in _BITS.items() if int(value) & bit)
    elif family in _FLAGS or family == _THROTTLED:
        word = _FLAGS.get(family) or labels.get("by", "")
        found.throttled.setdefault(card, set()).update({word} if value > 0.0 else ())
    elif family == _LAST_XID:
        found.last_xids[card] = int(value)
    elif family in _XIDS:
        number = labels.get("xid", "")
        if number.isdecimal() and int(number) > 0 and value > 0.0:
            found.xids.add(int(number))
    elif family in _HOST:
        found.host[_HOST[family]] = value
    elif family in _SENSORS:
        if 0.0 < value < 200.0 and _PROCESSORS.search(labels.get(_SENSORS[family], "").lower()):
            found.heat = max(value, found.heat or 0.0)
    elif family == _TROUBLE:
        found.troubles.append(f"{labels.get('part', 'a tool')} {labels.get('why', 'says nothing')}")
    else:
        link = next((labels[key] for key in _LINK_LABELS if key in labels), "")
        if link and value > 0.0 and not link.startswith(_VIRTUAL):
            found.links[link] = value * _LINKS[family]


def reading_of(page: DevicePage, best_links: Mapping[str, float], at: float) -> DeviceReading | None:
    """One reading: of the card that fares worst, and of the link that is furthest below the best it was seen at
    (`best_links`, Gb/s). None of an empty page. Where the cards tell no memory or heat, the machine's count."""
    if page.is_empty:
        return None
    names = {*page.cards, *page.throttled}
    worst = max(names, key=lambda name: _badness(page, name), default=None)
    reading = DeviceReading(at=at, device=worst, xid_errors=frozenset(page.xids))
    figures: dict[str, float] = dict(page.cards.get(worst, {})) if worst is not None else {}
    parts = [figures.pop(f"memory_{part}_bytes", None) for part in ("used", "reserved")]
    if parts[0] is not None and "memory_free_bytes" in figures:
        figures.setdefault("memory_total_bytes", figures["memory_free_bytes"] + parts[0] + (parts[1] or 0.0))
    if page.heat is not None:
        figures.setdefault("temperature_c", page.heat)
    if "memory_free_bytes" not in figures:
        figures |= page.host
    for whole in ("memory_free_bytes", "memory_total_bytes", "pcie_gen", "pcie_width"):
        if whole in figures:
            figures[whole] = int(figures[whole])
    if worst in page.throttled:
        reading = replace(reading, throttled=frozenset(page.throttled[worst]))
    if page.links:
        link = min(page.links, key=lambda name: page.links[name] / best_links.get(name, page.links[name]))
        best = best_links.get(link, page.links[link])
        reading = replace(reading, link_gbps=page.links[link], max_link_gbps=best)
    return replace(reading, **figures)  # type: ignore[arg-type]


def _badness(page: DevicePage, card: str) -> tuple[int, float, float]:
    figures, held = page.cards.get(card, {}), page.throttled.get(card, set())
    clock, most = figures.get("sm_clock_mhz", 0.0), figures.get("max_sm_clock_mhz", 0.0)
    return len(held - {"power_cap"}), 1.0 - clock / most if most > 0.0 else 0.0, figures.get("temperature_c", 0.0)
