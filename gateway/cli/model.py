"""`kvgate model FILE|ID`: what a model's KV cache costs, line by line, and how many sessions a memory holds."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from gateway.cli.arguments import reads
from gateway.cli.model_json import as_json
from gateway.cli.model_report import ModelReport, memory_of, report, weights_of
from gateway.cli.model_view import show_model
from gateway.cli.terminal import Terminal
from gateway.config.formats import WEIGHT_BYTES
from gateway.config.model_files.found import FoundModel, find_model
from gateway.config.sizes import Unreadable, parse_bytes, parse_tokens, parse_whole
from gateway.core.kv.deployment import Deployment
from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.engine_limits import refused_format, refused_split
from gateway.errors import ConfigError

__all__ = ["add_parser", "run"]


_ENGINES = ("vllm", "sglang", "llama.cpp", "ollama")
_EXAMPLES = """\
  kvgate model Qwen/Qwen3-32B-FP8 --device rtx-5090 --devices 2
  kvgate model ~/models/Qwen3.6-27B --engine vllm --kv fp8 --pool 9.84GiB --tp 2 --context 262144
  kvgate model model-Q4_K_M.gguf --memory 24GiB --slots 4 --context 65536
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `model` to the command line."""
    parser = subparsers.add_parser(
        "model",
        help="say what a model's KV cache costs, line by line",
        description="Reads a config.json (or its folder), the header of a GGUF file, or the catalogue, and prints the "
        "arithmetic: bytes a token, a sequence and a block, what a pool holds, and sessions that fit. Exit status: 0, "
        "or 1 when the model is not known or its file can't be read.",
        epilog=f"examples:\n{_EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="FILE|ID", help="a folder, config.json, .gguf file, or a model's name")
    served = parser.add_argument_group("how it is served")
    served.add_argument("--engine", choices=_ENGINES, help="whose paging (llama.cpp for a GGUF file, else vllm)")
    served.add_argument("--kv", type=reads(_kv), metavar="FORMAT", help="KV cache: auto (16 bit), fp8, q8_0, q4_0 ...")
    served.add_argument("--weights", choices=sorted(WEIGHT_BYTES), default="auto", help="number format of the weights")
    served.add_argument("--context", type=reads(_context), default=0, metavar="TOKENS",
                        help="longest request; with llama.cpp all slots together (the model's own)")  # fmt: skip
    served.add_argument("--tp", type=reads(_count), metavar="N", help="tensor-parallel devices (all of --devices)")
    served.add_argument("--pp", type=reads(_count), default=1, metavar="N", help="pipeline-parallel stages (1)")
    served.add_argument("--slots", type=reads(_count), default=1, metavar="N", help="requests at once, llama.cpp (1)")
    served.add_argument("--draft", type=reads(parse_whole), default=0, metavar="N",
                        help="tokens that the model's own drafting head proposes a step (0)")  # fmt: skip
    room = parser.add_argument_group("how much room there is")
    sizes = room.add_mutually_exclusive_group()
    sizes.add_argument("--pool", type=reads(parse_bytes), metavar="SIZE", help="KV cache of one device: 6GiB")
    sizes.add_argument("--memory", type=reads(parse_bytes), metavar="SIZE", help="memory of one device: 24GiB")
    sizes.add_argument("--device", metavar="ID", help="a device of the catalogue")
    room.add_argument("--devices", type=reads(_count), metavar="N", help="how many of it (tp times pp)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the arithmetic of one model; 0. Raises ConfigError when there is no such model, file or device."""
    found = find_model(args.model)
    made = _report(args, found)
    if args.json:
        print(json.dumps(as_json(made), indent=2))
    else:
        show_model(Terminal(), made)
    return 0


def _report(args: argparse.Namespace, found: FoundModel) -> ModelReport:
    gguf = found.path is not None and found.path.suffix != ".json"
    engine = args.engine or ("llama.cpp" if gguf else "vllm")
    devices, pp = args.devices or 0, args.pp
    if engine in ("llama.cpp", "ollama"):
        tp, pp = 1, 1  # it splits layers over devices, and counts one cache over all of them
        devices = devices or (args.tp or 1) * args.pp
    else:
        tp = args.tp or max(1, devices // pp)
        devices = devices or tp * pp
    own = None if engine in ("llama.cpp", "ollama") else found.described.kv_dtype  # a checkpoint's fp8 scales
    dtype = KvDtype.parse(args.kv) if args.kv else own or KvDtype.F16
    shape = found.described.shape
    refused = refused_format(engine, args.kv or "auto") or refused_split(shape, engine, tp, pp)
    if refused:
        raise ConfigError(f"{args.model}: {refused}")
    if args.draft and not shape.draft_layers:
        lacks = "no drafting head of its own is known: what a separate draft model takes is not counted"
        found = replace(found, described=replace(found.described, caveats=(*found.described.caveats, lacks)))
    try:
        deployment = Deployment(
            engine, dtype, tensor_parallel=tp, pipeline_parallel=pp, context=args.context, slots=args.slots,
            draft_tokens=args.draft,
        )  # fmt: skip
        _, weights = weights_of(found, args.weights, engine)
        room = memory_of(deployment, weights, pool=args.pool, memory=args.memory, device=args.device, devices=devices)
        return report(found, deployment, room, args.weights)
    except ValueError as error:
        raise ConfigError(f"{args.model}: {error}") from None


def _context(text: str) -> int:
    tokens = parse_tokens(text)
    if not tokens:
        raise Unreadable("is no context", "leave it out for the model's own, or write a number like 8192")
    return tokens


def _kv(text: str) -> str:
    try:
        KvDtype.parse(text)
        return text
    except ValueError as error:
        raise Unreadable("is not a number format of a KV cache", str(error).partition("; ")[2]) from None


def _count(text: str) -> int:
    number = parse_whole(text)
    if not 1 <= number <= 4096:
        raise Unreadable("must be from 1 to 4096", "write a plain number like 2")
    return number
