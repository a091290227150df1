from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console, RenderableType

from gateway.cli.top_bars import Bar, Part, cells_of
from gateway.cli.top_rates import Rate, Rates
from gateway.cli.top_view import Frame, View
from gateway.cli.top_words import compact, span, why_text
from tests.cli.top_documents import backend, documents, waiter


def printed(what: RenderableType, width: int = 80, height: int | None = None) -> list[str]:
    console = Console(file=io.StringIO(), width=width, record=True, highlight=False, color_system=None)
    console.print(what, height=height)
    return [line.rstrip() for line in console.export_text().splitlines()]


def frame(*rows: dict[str, Any], waiting: int = 0, **changes: Any) -> Frame:
    found = documents(*rows, waiting=waiting)
    return Frame("http://gate:9090", "14:03:22", found["/admin/backends"]["backends"], found["/admin/queue"], **changes)


def line_of(lines: list[str], start: str) -> str:
    return next(line for line in lines if line.startswith(start))


def test_a_backend_is_one_line_with_its_pool_as_a_bar() -> None:
    lines = printed(View(frame(backend())))
    assert lines[0].startswith("kvgate top  http://gate:9090  14:03:22 ──")
    assert lines[1] == "1 of 1 backends work   3 running   0 waiting   KV 73 %"
    shown = line_of(lines, "● rig")
    assert shown.split() == ["●", "rig", "3/64", "slots", shown.split()[4], "73k/100k", "2.1", "s", "–", "–"]
    bar = shown.split()[4]
    assert set(bar) == set("█▓░·")
    assert bar == "".join(sorted(bar, key="█▓░·".index))
    assert bar.count("█") == pytest.approx(0.61 * len(bar), abs=1)
    assert "Nothing waits." in "\n".join(lines)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_every_line_fits_and_each_request_has_one(width: int) -> None:
    rows = (backend(), backend("a-backend-with-a-name-that-is-far-too-long-for-its-column", running=64))
    lines = printed(View(frame(*rows, waiting=7)), width)
    assert max(map(len, lines)) <= width
    assert [line.split()[0] for line in lines if line.startswith("key-")] == [f"key-{number}" for number in range(7)]


def test_a_wide_screen_shows_more() -> None:
    narrow, wide = (printed(View(frame(backend(), waiting=1)), width) for width in (80, 120))
    assert "headroom" not in "\n".join(narrow)
    assert line_of(wide, "● rig").endswith("92 %   0.8 s")
    assert "9f3a01bc" in line_of(wide, "key-0")
    assert "request-0" in line_of(wide, "key-0")
    assert any("Queue" in line and "Keys" in line for line in wide)


@pytest.mark.parametrize("height", [20, 24, 40])
def test_as_many_waiting_requests_as_the_screen_has_room_for(height: int) -> None:
    lines = printed(View(frame(backend(), waiting=50)), 80, height)
    shown = sum(line.startswith("key-") for line in lines)
    assert shown >= 1
    assert f"  and {50 - shown} more" in lines
    assert len(lines) <= height


def test_what_is_odd_about_a_backend_is_told_below() -> None:
    down = backend(
        "mac", health="down", health_since_seconds=340.0, error="connection refused", running=0, kv_pool_tokens=0
    )
    odd = backend(
        foreign_running=2, foreign_waiting=1, preemptions=3, decode_factor=1.8, lingering=1, overcommitted=True,
        waiting_for={"kv_full": 9, "slots_full": 2},
        mismatches=[{"fact": "KV pool", "engine": 60_000, "expected": 100_000, "unit": "tokens"}],
    )  # fmt: skip
    trial = backend("trial", health="open", health_since_seconds=3.0, retry_in_seconds=12.0)
    lines = printed(View(frame(down, odd, trial)), 100)
    assert "  ✗ mac down for 6 min: connection refused" in lines
    assert "not known" in line_of(lines, "✗ mac")
    assert "  ✗ trial open for 3.0 s, next trial in 12 s" in lines
    assert "  ▲ rig KV pool: 60,000 by its engine, 100,000 tokens expected" in lines
    assert "  ▲ rig an answer outgrew its reservation; nothing new until there is room" in lines
    assert "  ▲ rig 1 abandoned requests still hold their places" in lines
    assert "  · rig others run 2 and queue 1 there" in lines
    assert "  ▲ rig 3 preemptions seen" in lines
    assert "  ▲ rig slower than predicted: decode ×1.8" in lines
    assert "  · rig keeps waiting: KV full 9, slots full 2" in lines
    assert lines[1].startswith("1 of 3 backends work")


def test_a_quiet_backend_has_no_remarks() -> None:
    lines = printed(View(frame(backend())))
    assert lines[lines.index(line_of(lines, "● rig")) + 1] == ""


def test_what_a_device_says_of_itself() -> None:
    told = {
        "device": "GPU-bb", "sm_clock_mhz": 810.0, "max_sm_clock_mhz": 2100.0, "temperature_c": 88.0, "power_w": 180.3,
        "power_limit_w": None, "memory_free_bytes": 2**29, "memory_total_bytes": 24 * 2**30, "link_gbps": 200.0,
        "max_link_gbps": 200.0, "throttled": ["power_cap"], "xid_errors": [], "trouble": None, "age_seconds": 3.0,
    }  # fmt: skip
    words = "810 of 2,100 MHz, 88 °C, 180 W, 0.5 of 24 GiB free, 200 of 200 Gb/s link, slowed by power_cap, by GPU-bb"
    hot = told | {"throttled": ["hw_thermal"], "xid_errors": [79], "trouble": "node: Connection refused"}
    lines = printed(
        View(
            frame(
                backend(device_reports=told),
                backend("hot", device_reports=hot),
                backend("stale", device_reports={"age_seconds": 75.2, "trouble": "agent: no answer within 4 s"}),
                backend("new", device_reports={"trouble": None}),
            )
        ),
        200,
    )
    assert f"  · rig device: {words}" in lines
    line = line_of(lines, "  ▲ hot device")
    assert "slowed by hw_thermal, Xid 79, by GPU-bb, not told: node: Connection refused" in line
    assert "  ▲ stale device: nothing for 75 s, not told: agent: no answer within 4 s" in lines
    assert "  · new device: nothing told yet" in lines


def test_why_a_request_waits() -> None:
    assert why_text(waiter()) == "KV full: rig; slots full: spark; down: mac"
    assert why_text(
        waiter(reason="worth_waiting", backends={"a": "worth_waiting", "b": "kv_full", "c": "kv_full"})
    ) == ("worth waiting: a; KV full: b, c")
    assert why_text(waiter(backends={"a": "not_served"})) == "not served: a"
    assert (
        why_text(waiter(reason="over_quota", why="a limit of this key is reached")) == "a limit of this key is reached"
    )
    assert why_text(waiter(reason=None, backends={}, why="others go first, and there is no room for them yet")) == (
        "others go first, and there is no room for them yet"
    )


def test_what_marks_a_waiting_request() -> None:
    found = documents(backend(), waiting=2)
    found["/admin/queue"]["requests"] = [waiter(0, attempt=1), waiter(1, promised=True, tier="C")]
    shown = Frame("http://gate", "", found["/admin/backends"]["backends"], found["/admin/queue"])
    lines = printed(View(shown), 120)
    assert "attempt 2; KV full: rig" in line_of(lines, "key-0")
    assert "≈4.6k" in line_of(lines, "key-0")
    assert "told to come back; KV full" in line_of(lines, "key-1")
    assert " 4.6k" in line_of(lines, "key-1")


def test_a_gateway_that_is_gone_and_one_that_was_never_there() -> None:
    gone = printed(View(frame(backend(), problem="no gateway answers")), 80)
    assert gone[1] == "✗ no gateway answers; trying again"
    assert line_of(gone, "● rig")
    never = printed(View(Frame("http://gate", "", problem="no gateway answers", known=False)), 80)
    assert never[1:] == ["✗ no gateway answers; trying again"]


def test_a_document_with_nothing_but_names() -> None:
    lines = printed(View(Frame("http://gate", "", [{"name": "new"}], {"models": {}})), 80)
    assert line_of(lines, "▲ new").split()[2] == "0/0"
    assert "  No backends are configured." in printed(View(Frame("http://gate", "")), 80)


def test_names_can_not_drive_the_terminal_or_the_markup() -> None:
    row = backend("\x1b[2Jrig[red]", error="\x1b]0;boo\x07 [bold]x", health="down", health_since_seconds=1.0)
    found = documents(row, waiting=1)
    found["/admin/queue"]["requests"] = [waiter(client="\x9b31m[b]", why="\x07", backends={"\x1b": "kv_full"})]
    console = Console(file=io.StringIO(), width=120, force_terminal=False, highlight=False)
    console.print(View(Frame("http://gate\x1b", "", [row], found["/admin/queue"])))
    written = console.file.getvalue()  # type: ignore[attr-defined]
    assert not set("\x1b\x07\x9b") & set(written)
    assert "rig[red]" in written
    assert "[bold]x" in written


@pytest.mark.parametrize(
    ("amounts", "whole", "width", "cells"),
    [
        ([61, 12, 19], 100, 10, [6, 1, 2]),
        ([1, 0, 99], 100, 10, [1, 0, 9]),
        ([250, 100], 100, 10, [10, 0]),
        ([0, 0], 0, 10, [0, 0]),
        ([1, 1, 1], 1000, 2, [1, 1, 0]),
    ],
)
def test_cells_of_a_bar(amounts: list[float], whole: float, width: int, cells: list[int]) -> None:
    assert cells_of(amounts, whole, width) == cells
    parts = [Part(amount, letter, "") for amount, letter in zip(amounts, "█▓░", strict=False)]
    assert len(printed(Bar(parts, whole), width)[0]) == width


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (950, "950"), (1200, "1.2k"), (61_400, "61k"), (999_900, "1.0M"), (1_310_000, "1.3M"), (None, "–")],
)
def test_compact_numbers(value: object, said: str) -> None:
    assert compact(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.01, "0 s"), (0.8, "0.8 s"), (38.4, "38 s"), (340, "6 min"), (10_000, "3 h"), (None, "–"), (True, "–")],
)
def test_spans(value: object, said: str) -> None:
    assert span(value) == said


def test_rates_come_from_how_counters_moved() -> None:
    rates = Rates()
    rates.take([backend(prefilled_tokens=1000, generated_tokens=10)], 0.0)
    assert rates.of("rig") == Rate(None, None)
    assert rates.total == Rate(None, None)
    rates.take([backend(prefilled_tokens=5000, generated_tokens=110), backend("new")], 2.0)
    assert rates.of("rig") == Rate(2000.0, 50.0)
    assert rates.of("new") == Rate(None, None)
    assert rates.total == Rate(2000.0, 50.0)
    for second in range(3, 20):  # it stands still
        rates.take([backend(prefilled_tokens=5000, generated_tokens=110), backend("new")], float(second))
    assert rates.of("rig") == Rate(0.0, 0.0)
    rates.take([backend(prefilled_tokens=0, generated_tokens=0)], 20.0)  # the gateway was started anew
    assert rates.of("rig") == Rate(None, None)
    assert rates.of("new") == Rate(None, None)
