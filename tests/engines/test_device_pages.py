"""What exporters' pages say of a device, in one unit each; what they lack stays unsaid."""

from __future__ import annotations

import pytest

from gateway.engines.device_pages import page_of, reading_of

DCGM = b"""\
# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-aa",device="nvidia0",modelName="NVIDIA GeForce RTX 3090",Hostname="rig"} 1695
DCGM_FI_DEV_SM_CLOCK{gpu="1",UUID="GPU-bb",device="nvidia1",modelName="NVIDIA GeForce RTX 3090",Hostname="rig"} 810
DCGM_FI_DEV_MAX_SM_CLOCK{gpu="0",UUID="GPU-aa",Hostname="rig"} 2100
DCGM_FI_DEV_MAX_SM_CLOCK{gpu="1",UUID="GPU-bb",Hostname="rig"} 2100
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-aa",Hostname="rig"} 71
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-bb",Hostname="rig"} 88
DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-bb",Hostname="rig"} 180.25
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="0",UUID="GPU-aa",Hostname="rig"} 4
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="1",UUID="GPU-bb",Hostname="rig"} 72
DCGM_FI_DEV_FB_FREE{gpu="1",UUID="GPU-bb",Hostname="rig"} 512
DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-bb",Hostname="rig"} 23721
DCGM_FI_DEV_FB_RESERVED{gpu="1",UUID="GPU-bb",Hostname="rig"} 331
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-aa",Hostname="rig"} 0
DCGM_FI_DEV_XID_ERRORS{gpu="1",UUID="GPU-bb",Hostname="rig"} 79
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-bb",Hostname="rig"} 97
DCGM_FI_DEV_POWER_MGMT_LIMIT{gpu="1",UUID="GPU-bb",Hostname="rig"} 9223372036854775794
"""
# A DGX Spark: nvidia-smi has no memory figures there, so the exporter has no such series.
SPARK = b"""\
nvidia_smi_clocks_current_sm_clock_hz{uuid="gb10"} 7.3e+08
nvidia_smi_clocks_max_sm_clock_hz{uuid="gb10"} 3.003e+09
nvidia_smi_temperature_gpu{uuid="gb10"} 52
nvidia_smi_power_draw_watts{uuid="gb10"} 14.2
nvidia_smi_utilization_gpu_ratio{uuid="gb10"} 0.96
nvidia_smi_clocks_event_reasons_sw_power_cap{uuid="gb10"} 1
nvidia_smi_clocks_event_reasons_hw_thermal_slowdown{uuid="gb10"} 0
"""
NODE = b"""\
node_memory_MemAvailable_bytes 7.5e+09
node_memory_MemTotal_bytes 1.28e+11
node_network_speed_bytes{device="enp1s0f0np0"} 2.5e+10
node_network_speed_bytes{device="lo"} -1.25e+05
node_network_speed_bytes{device="docker0"} 1.25e+09
"""


def test_the_worst_card_counts_and_is_named() -> None:
    reading = reading_of(page_of([DCGM], {}), {}, 5.0)
    assert reading is not None
    assert (reading.device, reading.at) == ("GPU-bb", 5.0)
    assert (reading.sm_clock_mhz, reading.temperature_c, reading.power_w) == (810, 88, 180.25)
    assert reading.throttled == {"hw_slowdown", "hw_thermal"}
    assert reading.clock == pytest.approx(810 / 2100)
    assert reading.memory_free_bytes == 512 * 2**20
    assert reading.memory_total_bytes == 24564 * 2**20
    assert page_of([DCGM], {}).last_xids == {"GPU-aa": 0, "GPU-bb": 79}
    assert reading.xid_errors == frozenset(), "the last one may be weeks old"
    assert reading.power_limit_w is None, "no figure there, but a number that says so"


def test_labels_say_whose_samples_they_are() -> None:
    reading = reading_of(page_of([DCGM], {"gpu": ["0"]}), {}, 0.0)
    assert reading is not None
    assert (reading.device, reading.throttled) == ("GPU-aa", {"power_cap"})
    assert page_of([DCGM], {"gpu": ["0"]}).last_xids == {"GPU-aa": 0}
    assert page_of([DCGM], {"Hostname": ["other"]}).is_empty
    assert set(page_of([DCGM, SPARK], {"gpu": ["1", "2"]}).cards) == {"GPU-bb", "gb10"}, (
        "this label the other one lacks"
    )


def test_several_pages_make_one_reading_and_the_machines_memory_stands_in() -> None:
    reading = reading_of(page_of([SPARK, NODE], {}), {}, 0.0)
    assert reading is not None
    assert (reading.sm_clock_mhz, reading.max_sm_clock_mhz) == (pytest.approx(730), pytest.approx(3003))
    assert (reading.memory_free_bytes, reading.memory_total_bytes) == (7_500_000_000, 128_000_000_000)
    assert reading.throttled == {"power_cap"}
    assert (reading.link_gbps, reading.max_link_gbps) == (200.0, 200.0)


def test_a_link_is_measured_by_the_best_it_was_seen_at() -> None:
    slow = NODE.replace(b"2.5e+10", b"1.625e+09")
    reading = reading_of(page_of([slow], {}), {"enp1s0f0np0": 200.0}, 0.0)
    assert reading is not None
    assert (reading.link_gbps, reading.max_link_gbps) == (13.0, 200.0)


def test_an_idle_cards_low_clock_says_nothing() -> None:
    idle = reading_of(page_of([SPARK.replace(b"0.96", b"0.01")], {}), {}, 0.0)
    assert idle is not None
    assert idle.clock is None


@pytest.mark.parametrize("page", [b"", b"<html>", b"go_goroutines 8\n", b"\xff\xfe\x00", b"DCGM_FI_DEV_SM_CLOCK NaN\n"])
def test_a_page_without_anything_known_is_no_reading(page: bytes) -> None:
    assert reading_of(page_of([page], {}), {}, 0.0) is None


def test_bits_that_are_not_told_are_not_taken_for_none_set() -> None:
    reading = reading_of(page_of([b'DCGM_FI_DEV_SM_CLOCK{gpu="0"} 1000\n'], {}), {}, 0.0)
    assert reading is not None
    assert reading.throttled is None


def test_faults_that_were_counted_lately_are_told_by_their_numbers() -> None:
    counted = b'DCGM_EXP_XID_ERRORS_COUNT{gpu="0",UUID="GPU-aa",window_size_in_ms="300000",xid="79"} 1\n'
    reading = reading_of(page_of([DCGM, counted], {}), {}, 0.0)
    assert reading is not None
    assert reading.xid_errors == {79}


def test_where_no_card_tells_its_heat_the_processors_counts_and_no_disks() -> None:
    node = b"""\
node_hwmon_temp_celsius{chip="platform_coretemp_0",sensor="temp1"} 74
node_hwmon_temp_celsius{chip="platform_coretemp_0",sensor="temp2"} 81
node_hwmon_temp_celsius{chip="nvme_nvme0",sensor="temp1"} 92.85
node_thermal_zone_temp{type="acpitz",zone="0"} 27.8
"""
    alone = reading_of(page_of([node], {}), {}, 0.0)
    beside = reading_of(page_of([SPARK, node], {}), {}, 0.0)
    assert alone is not None
    assert beside is not None
    assert (alone.temperature_c, beside.temperature_c) == (81, 52)
    assert alone.clock is None


def test_a_tool_of_the_agent_that_hangs_is_told() -> None:
    page = page_of([b'kvgate_device_agent_trouble{part="nvidia-smi",why="hangs"} 1\n'], {})
    assert page.is_empty
    assert page.troubles == ["nvidia-smi hangs"]
