"""The file that an operator would write for an emulated fleet whose clock runs faster.

    python -m tests.race.config_of FLEET.json OUT.yaml PORT SPEED [--no-shed]

FLEET.json says what an operator knows: `replicas` with name, url, device, engine and model. The devices are those of
the shipped catalogue, SPEED times as fast; every goal and time of the file is so many times shorter. Nothing of the
emulator's own constants is read.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import yaml

CATALOGUE = Path(__file__).parents[2] / "gateway" / "config" / "catalog" / "devices.yaml"
MODELS = {
    "moe-30b-a3b": ("Qwen3-30B-A3B", "q4_k_m"),
    "hybrid-27b": ("Qwen3.6-27B", "q4_k_m"),
    "dense-27b": ("Qwen3-32B", "q4_k_m"),
    "dense-8b": ("Qwen3-8B", "q4_k_m"),
}
"""Emulated models by the ids of those that they are like."""


def config_of(fleet: dict[str, Any], port: int, speed: float, *, shed: bool = True) -> dict[str, Any]:
    """The file as a mapping."""
    replicas = fleet["replicas"]
    shipped = {}
    for entry in yaml.safe_load(CATALOGUE.read_text(encoding="utf-8"))["devices"]:
        shipped |= dict.fromkeys((entry["id"], *entry.get("aliases", ())), entry)
    slo = {
        "ttft": f"{3 / speed:.4f}s",
        "ttft_per_1k": f"{500 / speed:.2f}ms",
        "tpot": f"{100 / speed:.2f}ms",
        "shed": shed,
    }
    return {
        "server": {"listen": f"127.0.0.1:{port}", "admin": f"127.0.0.1:{port + 1}"},
        "catalogue": {"devices": [_fast(shipped[one], one, speed) for one in {r["device"]: 0 for r in replicas}]},
        "backends": [
            {
                "name": replica["name"],
                "url": replica["url"],
                "engine": replica["engine"],
                "device": f"fast-{replica['device']}",
                "models": [
                    dict(zip(("id", "weights"), MODELS[replica["model"]], strict=True))
                    | {"served_as": replica["model"]}
                ],
                "queued_prefill": f"{2 / speed:.3f}s",
                "timeouts": {"first_token": f"{120 / speed:.0f}s", "token_gap": f"{60 / speed:.0f}s"},
            }
            for replica in replicas
        ],
        "models": [{"name": name, "serves": MODELS[name][0], "slo": slo} for name in {r["model"]: 0 for r in replicas}],
        "queue": {"wait": f"{60 / speed:.1f}s", "aging": f"{15 / speed:.2f}s"},
    }


def _served(name: str) -> dict[str, str]:
    model, weights = MODELS[name]
    return {"id": model, "served_as": name, "weights": weights}


def _fast(entry: dict[str, Any], name: str, speed: float) -> dict[str, Any]:
    kept = {
        key: entry[key] for key in ("memory_bytes", "memory_type", "prefill_reach", "memory_budget") if key in entry
    }
    rates = {"bandwidth_gbs": entry["bandwidth_gbs"] * speed, "tflops": {"fp16": entry["tflops"]["fp16"] * speed}}
    return {"id": f"fast-{name}", **kept, **rates}


def main() -> None:
    """Write it."""
    parser = argparse.ArgumentParser(prog="python -m tests.race.config_of", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("fleet", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("speed", type=float)
    parser.add_argument("--no-shed", action="store_true", help="turn nothing away for a goal that can't be kept")
    given = parser.parse_args()
    fleet = json.loads(given.fleet.read_text(encoding="utf-8"))
    made = config_of(fleet, given.port, given.speed, shed=not given.no_shed)
    given.out.write_text(yaml.safe_dump(made, sort_keys=False), encoding="utf-8")


if __name__ == "__main__":
    main()
