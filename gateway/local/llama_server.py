"""llama.cpp's own HTTP server in one process, from the `xllamacpp` wheel: `python -m gateway.local.llama_server`.

The flags are those of the `llama-server` binary, as far as a demo or a test of a gateway needs them. `/metrics` and
`/slots` are on. Threads default to one: ggml's threads spin at barriers, and where other work shares the cores two of
them decode many times slower than one.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.local.models import NotInstalled, require_engine

__all__ = ["arguments", "main", "parameters"]


def arguments() -> argparse.ArgumentParser:
    """The flags, named as in `llama-server`; `--exit-with-stdin` is ours."""
    flags = argparse.ArgumentParser(prog="llama_server", description=__doc__, allow_abbrev=False)
    add = flags.add_argument
    add("-m", "--model", type=Path, required=True, help="GGUF file")
    add("-a", "--alias", help="model id to report (default: the file's name)")
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=8080)
    add("-c", "--ctx-size", type=int, default=4096, help="tokens of KV cache, shared by all slots")
    add("-np", "--parallel", type=int, default=2, help="slots")
    add("-b", "--batch-size", type=int, default=256, help="tokens; an abort waits for the end of a batch of prefill")
    add("-ub", "--ubatch-size", type=int, default=256)
    add("-t", "--threads", type=int, default=1)
    add("-n", "--predict", type=int, default=-1, help="most output tokens; -1: until the slot is full")
    add("--cache-ram", type=int, default=64, help="MiB of prompt cache beside the slots; 0: off")
    add("--kv-unified", action="store_true", help="one KV pool for all slots instead of equal shares")
    add("--chat-template-file", type=Path, help="Jinja template instead of the GGUF's own")
    add("--api-key", action="append", default=[])
    add("--no-metrics", action="store_true")
    add("--no-slots", action="store_true")
    add("--embeddings", action="store_true")
    add("--sse-ping-interval", type=int, help="seconds between comment lines while a prompt is read")
    add("--slot-prompt-similarity", type=float, help="share of a prompt that must match to prefer a slot")
    add("--slot-save-path", type=Path, help="directory to which slots may be saved")
    add("-lv", "--verbosity", type=int)
    add("--exit-with-stdin", action="store_true", help="end when standard input closes, so never outlive the parent")
    return flags


def parameters(given: argparse.Namespace) -> Any:
    """llama.cpp's parameter struct for the flags that were given."""
    import xllamacpp

    made = xllamacpp.CommonParams()
    made.model.path = str(given.model)
    made.model_alias = {given.alias or given.model.stem}
    made.hostnames, made.port, made.reuse_port = [given.host], given.port, True
    made.n_ctx, made.n_parallel, made.kv_unified = given.ctx_size, given.parallel, given.kv_unified
    made.n_batch, made.n_ubatch, made.n_predict = given.batch_size, given.ubatch_size, given.predict
    made.cpuparams.n_threads = made.cpuparams_batch.n_threads = given.threads
    made.cache_ram_mib, made.cont_batching = given.cache_ram, True
    made.endpoint_metrics, made.endpoint_slots = not given.no_metrics, not given.no_slots
    made.api_keys = given.api_key
    # Nothing is fetched, no web page is served, and the sizes are the given ones, not what llama.cpp thinks fits.
    made.offline, made.ui, made.fit_params = True, False, False
    if given.chat_template_file is not None:
        made.chat_template = given.chat_template_file.read_text(encoding="utf-8")
    if given.embeddings:
        made.embedding, made.pooling_type = True, xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    if given.slot_save_path is not None:
        made.slot_save_path = f"{given.slot_save_path}/"
    for name in ("sse_ping_interval", "slot_prompt_similarity", "verbosity"):
        if (value := getattr(given, name)) is not None:
            setattr(made, name, value)
    return made


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; exits with a sentence when the wheel or the model is missing."""
    given = arguments().parse_args(argv)
    try:
        require_engine()
    except NotInstalled as error:
        sys.exit(error.message)
    if not given.model.is_file():
        sys.exit(f"no such model file: {given.model}")
    # Loading and serving are C++ threads: a Python signal handler would run too late, and there is nothing to flush.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if given.exit_with_stdin:
        threading.Thread(target=_exit_with_stdin, daemon=True).start()

    import xllamacpp

    server = xllamacpp.Server(parameters(given))
    print("listening", server.listening_address, flush=True)
    threading.Event().wait()


def _exit_with_stdin() -> None:
    """The parent holds the other end of the pipe and writes nothing: an end of file means that it is gone."""
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
