"""`kvgate plan`: what it takes to serve models to so many people, before anything is bought or started."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path

from gateway.cli.arguments import reads
from gateway.cli.plan_report import COUNTS, Wanted, candidates, instances
from gateway.cli.plan_traffic import Workload, described, from_file, parse_rate
from gateway.cli.plan_view import as_json, show_plan
from gateway.cli.terminal import Terminal
from gateway.config.backends import ENGINES
from gateway.config.catalog.book import SHIPPED, Catalogue
from gateway.config.formats import KV_FORMATS, WEIGHT_BYTES
from gateway.config.load import load
from gateway.config.model_files.found import FoundModel, find_model
from gateway.config.policy import Policy
from gateway.config.sizes import Unreadable, parse_duration, parse_number, parse_share, parse_tokens
from gateway.core.forecast import Goals
from gateway.core.kv.engine_limits import refused_format
from gateway.errors import ConfigError

__all__ = ["add_parser", "run"]


_COUNTED = re.compile(r"(?:(\d+)\s*[x*]\s*)?(\S+)")
_EXAMPLES = """\
  kvgate plan Qwen3.6-27B --weights fp8 --device rtx-3090 --device 2xrtx-5090 --prompt 8192 --output 400 --rate 0.5/s
  kvgate plan gpt-oss-120b --ttft 5s --tpot 50ms --rate 1/s --price dgx-spark=0.20 --price h200=3.50
  kvgate plan config/gateway.yaml --traffic journal.jsonl
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `plan` to the command line."""
    parser = subparsers.add_parser(
        "plan",
        help="say which devices hold a model, how fast they serve it, and which is the smallest that will do",
        description="Weights, KV cache and headroom on each device; sequences that fit; time to first token and per "
        "token under a described or recorded load; the smallest instance that serves it, and what it costs.",
        epilog=f"examples:\n{_EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "what",
        nargs="+",
        metavar="MODEL|FILE",
        help="models of the catalogue, a config.json or .gguf, or one policy file",
    )
    parser.add_argument(
        "--device", action="append", default=[], metavar="[N x]ID", type=reads(_device),
        help=f"a device, and how many of it make one instance ({', '.join(map(str, COUNTS))} are tried where it isn't "
        "said); again for each; left out: those with a price, else all of the catalogue",
    )  # fmt: skip
    parser.add_argument("--engine", choices=ENGINES, default="vllm", help="what serves it (vllm)")
    parser.add_argument("--weights", choices=sorted(WEIGHT_BYTES), default="auto", help="number format of the weights")
    parser.add_argument("--kv", choices=sorted(KV_FORMATS), default="auto", help="number format of the KV cache")
    parser.add_argument("--context", type=reads(parse_tokens), metavar="TOKENS", help="window that the engine is given")
    parser.add_argument("--running", type=int, metavar="N", help="requests that the engine runs at once")
    load_of = parser.add_argument_group("traffic")
    load_of.add_argument(
        "--prompt", type=reads(parse_tokens), default=8192, metavar="TOKENS", help="mean prompt (8192)"
    )
    load_of.add_argument("--output", type=reads(parse_tokens), default=400, metavar="TOKENS", help="mean answer (400)")
    load_of.add_argument("--cached", type=reads(parse_share), default=0.0, metavar="SHARE",
                         help="part of each prompt that is in the prefix cache (0%%; agents reach 90%%)")  # fmt: skip
    load_of.add_argument("--traffic", type=Path, metavar="FILE",
                         help="a journal of this gateway, or lines with input_tokens, output_tokens")  # fmt: skip
    load_of.add_argument("--of", metavar="NAME", help="of a journal, only requests for this name")
    load_of.add_argument("--rate", type=reads(parse_rate), default=0.0, metavar="N/s", help="requests: 0.5/s, 30/min")
    goals = parser.add_argument_group("goals and prices")
    goals.add_argument("--ttft", type=reads(parse_duration), metavar="TIME", default=10.0,
                       help="first token, for 95 in 100 requests (10s)")  # fmt: skip
    goals.add_argument("--tpot", type=reads(parse_duration), metavar="TIME", default=0.1,
                       help="time per output token (100ms)")  # fmt: skip
    goals.add_argument("--price", action="append", default=[], metavar="ID=N", type=reads(_price),
                       help="price of one device an hour, in any currency")  # fmt: skip
    parser.add_argument("--all", action="store_true", help="show what does not fit or falls behind too")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plan; 0 when something serves the traffic, 1 when nothing does. Raises ConfigError for what is not known."""
    goals = Goals(args.ttft, args.tpot)
    policy, catalogue = _policy(args)
    workload = _workload(args)
    prices = {_device_id(name, catalogue): price for name, price in args.price}
    found = instances(policy, workload, goals, prices)
    if args.json:
        print(json.dumps(as_json(found, workload, goals), indent=2))
    else:
        show_plan(
            Terminal(),
            found,
            workload,
            goals,
            everything=args.all or bool(args.device) or _is_file(args.what),
        )
    return 0 if any(each.serves for each in found) else 1


def _policy(args: argparse.Namespace) -> tuple[Policy, Catalogue]:
    """The backends to plan for: a file's own, or one for each model on each device."""
    names: Sequence[str] = args.what
    if _is_file(names):
        policy = load(Path(names[0]), lenient=True).policy
        return policy, policy.catalogue.catalogue
    found = [find_model(name) for name in names]
    ids = [name if each.path is None else _id_of(each) for name, each in zip(names, found, strict=True)]
    files = tuple((name, each.path) for name, each in zip(ids, found, strict=True) if each.path is not None)
    weights = args.weights
    if weights == "auto" and len(found) == 1 and found[0].described.weights_format in WEIGHT_BYTES:
        weights = found[0].described.weights_format
    wanted = Wanted(tuple(ids), args.engine, weights, args.kv, args.context, args.running, files)
    named = args.device or [(None, name) for name, _ in args.price]
    places = [(count, _device_id(name, SHIPPED)) for count, name in named]
    _refuse(wanted, found)
    policy = candidates(wanted, places)
    return policy, policy.catalogue.catalogue


def _refuse(wanted: Wanted, found: Sequence[FoundModel]) -> None:
    """Raise ConfigError for a cache format that the engine doesn't have, with what it has."""
    if refused := refused_format(wanted.engine, wanted.kv):
        raise ConfigError(f"{found[0].described.shape.id}: {refused}")


def _id_of(found: FoundModel) -> str:
    """A name without spaces, whatever the file calls its model."""
    return "-".join(found.described.shape.id.split()) or "model"


def _is_file(names: Sequence[str]) -> bool:
    return len(names) == 1 and names[0].endswith((".yaml", ".yml"))


def _workload(args: argparse.Namespace) -> Workload:
    if args.traffic is not None:
        return from_file(args.traffic, args.of, args.rate)
    return described(args.prompt, args.output, args.cached, args.rate)


def _device_id(name: str, catalogue: Catalogue) -> str:
    found = catalogue.device(name)
    if found is None:
        near = catalogue.nearest_device(name)
        raise ConfigError(f"the catalogue has no device {name}" + (f"; did you mean {near}?" if near else ""))
    return found.id


def _device(text: str) -> tuple[int | None, str]:
    found = _COUNTED.fullmatch(text.strip())
    if found is None or found[1] == "0":
        raise Unreadable("is not a device", "write its id, or 2xrtx-3090 for a pair")
    return (int(found[1]) if found[1] else None), found[2]


def _price(text: str) -> tuple[str, float]:
    name, equals, number = text.partition("=")
    if not name or not equals:
        raise Unreadable("is not a price", "write it like dgx-spark=0.20, an hour")
    return name, parse_number(number)
