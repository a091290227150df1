"""The file made for an emulated fleet can be used, and names its devices as fast as its clock runs."""

from __future__ import annotations

import yaml

from gateway.config.compile import compile_policy
from gateway.config.load import load
from tests.race.config_of import config_of


def test_a_fleet_of_unlike_replicas() -> None:
    one = {
        "name": "a",
        "url": "http://127.0.0.1:21000",
        "device": "dgx-spark",
        "engine": "vllm",
        "model": "moe-30b-a3b",
    }
    one["model"] = "moe-30b-a3b"
    other = one | {"name": "b", "url": "http://127.0.0.1:21001", "device": "rtx-pro-6000", "engine": "sglang"}
    replicas = [one, other]
    plan = compile_policy(load(yaml.safe_dump(config_of({"replicas": replicas}, 21060, 8.0))).policy)
    spark, pro = plan.backends
    assert (spark.device.bandwidth, pro.device.bandwidth) == (8 * 273e9, 8 * 1792e9)
    route = plan.routes["moe-30b-a3b"]
    assert (route.goal(8000), route.tpot, route.sheds) == (3 / 8 + 8000 / 2000 / 8, 0.1 / 8, True)
