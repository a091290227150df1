"""What can be wrong with a backend, in words for people."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["ADVICE", "FINE", "SENTENCES", "Cause"]


class Cause(StrEnum):
    """What is wrong with a backend."""

    NONE = "none"
    MISCONFIGURED = "misconfigured"
    DEAD = "dead"
    HUNG = "hung"
    LOADING = "loading"
    GARBAGE = "garbage"
    MEMORY = "memory"
    THERMAL = "thermal"
    POWER = "power"
    LINK = "link"
    FOREIGN = "foreign"
    CLOCK = "clock"
    BANDWIDTH = "bandwidth"
    COMPUTE = "compute"
    UNKNOWN = "unknown"
    QUEUEING = "queueing"


FINE = frozenset((Cause.NONE, Cause.QUEUEING))
"""Those that are no fault."""

SENTENCES: dict[Cause, str] = {
    Cause.NONE: "nothing is wrong that can be seen from here",
    Cause.MISCONFIGURED: "it refuses the gateway's own key or model name",
    Cause.DEAD: "it is dead, or its device has fallen off the bus",
    Cause.HUNG: "it takes requests and gives no tokens",
    Cause.LOADING: "it is loading its model",
    Cause.GARBAGE: "it answers with one character over and over",
    Cause.MEMORY: "its KV cache or memory is used up",
    Cause.THERMAL: "heat holds its clock down",
    Cause.POWER: "its power supply or power limit holds its clock down",
    Cause.LINK: "a link between its devices, or to it, is slow",
    Cause.FOREIGN: "others than this gateway use it",
    Cause.CLOCK: "its clock is low: heat or power",
    Cause.BANDWIDTH: "its memory is slow: another program on it, or weights or cache outside of it",
    Cause.COMPUTE: "its arithmetic is slow: another program on it, or a lower clock",
    Cause.UNKNOWN: "it fails, and nothing tells why",
    Cause.QUEUEING: "it is full, which is no fault",
}

ADVICE: dict[Cause, str] = {
    Cause.NONE: "Nothing to do.",
    Cause.MISCONFIGURED: "Compare `key` and `models` of this backend with what the engine was started with.",
    Cause.DEAD: "Look at the engine's log, and at `dmesg` for Xid or out-of-memory lines. Restart the "
    "engine, then the machine.",
    Cause.HUNG: "Look at the engine's log for a stuck worker and restart it. Its /health may be in good "
    "order all the same.",
    Cause.LOADING: "Wait. If it takes much longer than usual, look at the disk that the weights come from.",
    Cause.GARBAGE: "Restart the engine. If it does so again, look at its version, its kernels for this device and the "
    "file of the weights.",
    Cause.MEMORY: "Lower the engine's number of sequences or its window, or cap `context` here. Look for "
    "other programs on the "
    "device.",
    Cause.THERMAL: "Check fans, dust and room, and lower the power limit. The clock recovers once the "
    "device is cooler.",
    Cause.POWER: "Check power limit, supply and cables. A DGX Spark that stays at a third of its clock "
    "needs its plug pulled "
    "for a minute.",
    Cause.LINK: "Check the link's speed (ethtool, nvidia-smi topo -m, PCIe width) and its cables. Use "
    "one device a model where "
    "it fits.",
    Cause.FOREIGN: "Find who else sends it requests, and let them come through the gateway.",
    Cause.CLOCK: "Look at clock, temperature and power while it works (nvidia-smi -q -d CLOCK,PERFORMANCE).",
    Cause.BANDWIDTH: "Look for other programs on the device, and for weights or KV cache that spilled to "
    "the machine's memory.",
    Cause.COMPUTE: "Look for other programs on the device (nvidia-smi), and at its clock under load.",
    Cause.UNKNOWN: "Look at the engine's log from the time named above.",
    Cause.QUEUEING: "Add a device, or send less. Requests wait or go elsewhere meanwhile.",
}
