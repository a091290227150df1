"""`python -m gateway.sim`: one emulated engine on loopback until SIGINT or SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import Sequence

import uvloop

from gateway.sim.hardware import DEVICES, MODELS
from gateway.sim.serve import EmulatedEngine, start_emulated

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve as the command line says; 2 for a wrong one, 1 where the model does not fit or the port is taken."""
    parser = argparse.ArgumentParser(prog="python -m gateway.sim", description="An emulated vLLM engine on loopback.")
    parser.add_argument("--profile", choices=sorted(DEVICES), required=True, help="device to emulate")
    parser.add_argument("--model", choices=sorted(MODELS), default="Qwen3-30B-A3B", help="model to serve")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="0 for any free port")
    parser.add_argument("--speed", type=float, default=1.0, help="times faster than the device")
    parser.add_argument("--answer-tokens", type=int, default=None, help="natural length of every answer")
    parser.add_argument("--max-queued", type=int, default=None, help="503 beyond this many requests inside")
    parser.add_argument("--admin", action="store_true", help="serve POST /sim/fault")
    chosen = parser.parse_args(arguments)
    try:
        engine = start_emulated(
            chosen.profile,
            model=chosen.model,
            speed=chosen.speed,
            host=chosen.host,
            port=chosen.port,
            answer_tokens=chosen.answer_tokens,
            max_queued_requests=chosen.max_queued,
            admin=chosen.admin,
        )
        uvloop.run(_serve(engine))
    except (OSError, ValueError) as error:
        print(f"{parser.prog}: {error}")
        return 1
    return 0


async def _serve(engine: EmulatedEngine) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with engine:
        print(engine.url, flush=True)
        await stopped.wait()


if __name__ == "__main__":
    raise SystemExit(main())
