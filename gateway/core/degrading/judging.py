"""Why a backend works worse than it should: ordered rules over its signs; each verdict says how it is known.

The first rule that holds is the cause, the next one its runner-up. What tells causes apart without a look at the device
is the pair of phases: prefill is bound by arithmetic, decode by memory bandwidth. Prefill alone slow: arithmetic has
other work. Decode alone: bandwidth or a link between devices. Both: the clock. Neither, but first tokens are late: a
queue, which is no fault at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.core.degrading.causes import Cause
from gateway.core.degrading.phase import Phase
from gateway.core.degrading.signs import Signs
from gateway.core.failure import FailureKind
from gateway.core.health.states import SILENT
from gateway.core.snapshot import Health

__all__ = ["Verdict", "judge"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A cause, what speaks for it, and the next likely one."""

    cause: Cause = Cause.NONE
    evidence: tuple[str, ...] = ()
    runner_up: Cause | None = None


_REFUSALS = frozenset((FailureKind.CONNECT, FailureKind.BROKEN))
_SILENCES = frozenset((FailureKind.FIRST_TOKEN, FailureKind.TOKEN_GAP))
_LOST = frozenset((48, 79, 95, 119, 120))
"""Xid errors after which a GPU is gone until a reset: double-bit ECC, off the bus, contained ECC, GSP."""
_LINK_XID = 74
_PREEMPTIONS = 0.05
"""A second."""
_FULL, _NEARLY_FULL = 0.97, 0.9
_LOW_CLOCK = 0.85
_NEAR_LIMIT = 5.0
"""Kelvin below the temperature at which a device slows down."""
_HOT = frozenset(("thermal", "hw_thermal", "hw_slowdown"))
_FOREIGN = 0.1
_BUSY = 0.7
_MUCH_LESS = 0.3
"""Part of one phase's excess up to which the other one counts as not slow."""

_Rule = Callable[[Signs], tuple[str, ...]]


def judge(signs: Signs) -> Verdict:
    """The cause by the first rule that holds."""
    found: list[tuple[Cause, tuple[str, ...]]] = []
    for cause, rule in _RULES:
        evidence = rule(signs)
        if evidence:
            found.append((cause, evidence))
            if len(found) == 2:
                break
    if not found:
        return Verdict()
    (cause, evidence), *others = found
    return Verdict(cause, evidence, others[0][0] if others else None)


def _misconfigured(signs: Signs) -> tuple[str, ...]:
    if signs.failure is FailureKind.CREDENTIALS and signs.health in (Health.OPEN, Health.TRIAL):
        return ("it answered 401, 403 or 404 to the gateway's own key or model name",)
    return ()


def _dead(signs: Signs) -> tuple[str, ...]:
    told = []
    lost = sorted(_LOST & signs.reading.xid_errors) if signs.reading is not None else []
    if lost:
        told.append(f"the driver logged Xid {', '.join(map(str, lost))}")
    if signs.health is Health.DOWN:
        told.append(f"it has not answered for {signs.health_s:.0f} s" + (f": {signs.error}" if signs.error else ""))
    elif signs.health is Health.OPEN and signs.failure in _REFUSALS:
        told.append("connections to it fail or break")
    return tuple(told)


def _hung(signs: Signs) -> tuple[str, ...]:
    if signs.running and signs.silent_s > SILENT:
        return (f"{signs.running} requests there got no token for {signs.silent_s:.0f} s longer than predicted",)
    if signs.health is Health.OPEN and signs.failure in _SILENCES:
        return ("it took requests and gave no token within their limits",)
    return ()


def _garbage(signs: Signs) -> tuple[str, ...]:
    if signs.failure is FailureKind.GARBAGE and signs.health in (Health.OPEN, Health.TRIAL):
        return ("several answers in a row were one character, hundreds of times",)
    return ()


def _loading(signs: Signs) -> tuple[str, ...]:
    return (f"it has said so for {signs.health_s:.0f} s",) if signs.health is Health.LOADING else ()


def _memory(signs: Signs) -> tuple[str, ...]:
    told = []
    if signs.preemptions is not None and signs.preemptions > _PREEMPTIONS:
        told.append(f"it preempts {60 * signs.preemptions:.0f} requests a minute")
    if signs.memory_errors:
        told.append(f"{signs.memory_errors} answers of the last ten minutes told of too little memory")
    if signs.kv_usage is not None and signs.kv_usage > _FULL and signs.waiting:
        told.append(f"its KV cache is {signs.kv_usage:.0%} full while {signs.waiting} requests wait inside")
    return tuple(told)


def _slow(signs: Signs) -> tuple[str, ...]:
    told = []
    if signs.prefill is not None and signs.prefill > 1.0:
        told.append(f"prompts take {signs.prefill:.1f} times as long as usual")
    if signs.decode is not None and signs.decode > 1.0:
        told.append(f"tokens take {signs.decode:.1f} times as long as usual")
    return tuple(told)


def _thermal(signs: Signs) -> tuple[str, ...]:
    reading, slow = signs.reading, _slow(signs)
    if reading is None or not slow:
        return ()
    told, clock = [], reading.clock
    hot = sorted(_HOT & reading.throttled) if reading.throttled is not None else []
    if hot:
        told.append(f"the device says that it slows down ({', '.join(hot)})")
    limit = reading.slowdown_temperature_c
    at_limit = limit is not None and reading.temperature_c is not None and reading.temperature_c > limit - _NEAR_LIMIT
    if at_limit and clock is not None and clock < _LOW_CLOCK:
        told.append(f"{reading.temperature_c:.0f} °C, and its clock is at {clock:.0%}")
    return (*told, *slow) if told else ()


def _power(signs: Signs) -> tuple[str, ...]:
    reading, slow = signs.reading, _slow(signs)
    if reading is None or not slow:
        return ()
    if reading.throttled is not None and "power_brake" in reading.throttled:
        return ("the device says that its power is cut (power brake)", *slow)
    clock = reading.clock
    if clock is None or clock >= _LOW_CLOCK or len(slow) < 2:
        return ()
    if reading.throttled is not None and "power_cap" in reading.throttled:
        return (f"its clock is at {clock:.0%} under its power limit", *slow)
    cool = reading.temperature_c is not None and reading.temperature_c < 70.0
    return (f"its clock is at {clock:.0%} though it is cool ({reading.temperature_c:.0f} °C)", *slow) if cool else ()


def _link(signs: Signs) -> tuple[str, ...]:
    reading, told = signs.reading, []
    if reading is not None:
        if _LINK_XID in reading.xid_errors:
            told.append("the driver logged Xid 74 (NVLink)")
        if reading.link_gbps is not None and reading.link_gbps < 0.5 * (reading.max_link_gbps or 0.0):
            told.append(f"a link runs at {reading.link_gbps:g} of {reading.max_link_gbps:g} Gb/s")
    alone = _decode_alone(signs)
    if signs.devices > 1 and alone:
        told.append(f"{signs.devices} devices share each layer, and decoding suffers more than prompts")
    return (*told, *_slow(signs)) if told and _slow(signs) else ()


def _foreign(signs: Signs) -> tuple[str, ...]:
    if not _slow(signs) or (signs.foreign_running < 1 and signs.foreign < _FOREIGN):
        return ()
    return (
        f"others have {signs.foreign_running} requests and {signs.foreign:.0%} of the KV cache there",
        *_slow(signs),
    )


def _slow_in(signs: Signs) -> tuple[frozenset[Phase], frozenset[Phase]]:
    """Phases that are slow, and those that are or seem to become so."""
    times = {Phase.PREFILL: signs.prefill, Phase.DECODE: signs.decode}
    slow = frozenset(phase for phase, slower in times.items() if slower is not None and slower > 1.0)
    return slow, slow | signs.leaning


def _clock(signs: Signs) -> tuple[str, ...]:
    slow, leaning = _slow_in(signs)
    if not slow or len(leaning) < 2:
        return ()
    silent = " (the device tells nothing of clock and heat)" if signs.reading is None else ""
    return (f"both phases are slow{silent}", *_slow(signs))


def _decode_alone(signs: Signs) -> bool:
    slow, leaning = _slow_in(signs)
    if Phase.DECODE not in slow:
        return False
    if leaning == {Phase.DECODE}:
        return True
    return Phase.PREFILL in slow and _is_less(signs.prefill, signs.decode)


def _is_less(one: float | None, other: float | None) -> bool:
    return (one or 1.0) - 1.0 < _MUCH_LESS * ((other or 1.0) - 1.0)


def _bandwidth(signs: Signs) -> tuple[str, ...]:
    return ("decoding is slow, prompts are not", *_slow(signs)) if _decode_alone(signs) else ()


def _compute(signs: Signs) -> tuple[str, ...]:
    slow, leaning = _slow_in(signs)
    if Phase.PREFILL not in slow:
        return ()
    alone = leaning == {Phase.PREFILL} or (Phase.DECODE in slow and _is_less(signs.decode, signs.prefill))
    return ("prompts are slow, decoding is not", *_slow(signs)) if alone else ()


def _unknown(signs: Signs) -> tuple[str, ...]:
    if signs.health is Health.OPEN and signs.failure is not None:
        return (f"requests there fail ({signs.failure})",)
    return _slow(signs)


def _queueing(signs: Signs) -> tuple[str, ...]:
    told = []
    if signs.busy > _BUSY:
        told.append(f"prompts took {signs.busy:.0%} of its last 20 s")
    if signs.waiting:
        told.append(f"{signs.waiting} requests wait inside")
    if signs.kv_usage is not None and signs.kv_usage > _NEARLY_FULL:
        told.append(f"its KV cache is {signs.kv_usage:.0%} full")
    return tuple(told)


_RULES: tuple[tuple[Cause, _Rule], ...] = (
    (Cause.MISCONFIGURED, _misconfigured),
    (Cause.DEAD, _dead),
    (Cause.HUNG, _hung),
    (Cause.GARBAGE, _garbage),
    (Cause.LOADING, _loading),
    (Cause.MEMORY, _memory),
    (Cause.THERMAL, _thermal),
    (Cause.POWER, _power),
    (Cause.LINK, _link),
    (Cause.FOREIGN, _foreign),
    (Cause.BANDWIDTH, _bandwidth),
    (Cause.COMPUTE, _compute),
    (Cause.CLOCK, _clock),
    (Cause.UNKNOWN, _unknown),
    (Cause.QUEUEING, _queueing),
)
