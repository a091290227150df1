"""A long body measured in a process of its own: the interpreter's lock is not shared with it, nor its memory kept.

The body goes in by a pipe, what was found comes back by another; one process a body, which costs about 0.2 s.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from threading import Timer

from gateway.errors import GatewayError, Unavailable

__all__ = ["main", "measure_apart"]

TIMEOUT_S = 60.0
"""Seconds for one body; 60 MB take 1 to 3."""
_NICER = 5
"""Steps of priority below the gateway: what it does for everybody else comes first."""


def measure_apart(surface: str, body: bytes, salt: bytes) -> object:
    """Return what `measure` returns in a fresh process, or the GatewayError that it raises there.

    Blocks its thread, without holding the interpreter. Unavailable when the process did not come to an end.
    """
    command = [sys.executable, "-P", "-c", "from gateway.tokens.apart import main; main()", surface, str(len(salt))]
    # No secrets in its surroundings, and signals of a terminal are not for it.
    env = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, start_new_session=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        timer = Timer(TIMEOUT_S, process.kill)
        timer.start()
        try:
            with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
                pipe.write(salt)  # not an argument, which everybody on the machine can read
                pipe.write(body)
            answer = process.stdout.read()
        finally:
            timer.cancel()
    if process.returncode != 0 or not answer:
        return Unavailable("The body could not be measured.", code="not_measured", retry_after=5.0)
    return pickle.loads(answer)


def main() -> None:
    """Run as that process: the body from standard input, the result to standard output."""
    from gateway.tokens.measure import measure

    os.nice(_NICER)
    surface, salt_bytes = sys.argv[1:]
    salt = sys.stdin.buffer.read(int(salt_bytes))
    body = sys.stdin.buffer.read()
    found: object
    try:
        found = measure(surface, body, salt)
    except GatewayError as error:
        error.__cause__ = error.__context__ = None
        found = error
    sys.stdout.buffer.write(pickle.dumps(found))
