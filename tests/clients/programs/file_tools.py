"""The tools that the Python programs offer, and how they report."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

TASK = "Write done.txt, read it back, then say that you are done."
_PATH = {"path": {"type": "string", "description": "Relative to the working folder"}}
TOOLS = [
    {
        "name": "write_file",
        "description": "Write a text file",
        "parameters": {
            "type": "object",
            "properties": {**_PATH, "content": {"type": "string"}},
            "required": ["path", "content"],
            "additionalProperties": False,
        },
    },
    {
        "name": "read_file",
        "description": "Read a text file",
        "parameters": {"type": "object", "properties": _PATH, "required": ["path"], "additionalProperties": False},
    },
]


def run(name: str, arguments: dict[str, str]) -> str:
    """Call a tool; its result, as text for the model."""
    path = Path(arguments["path"])
    if name == "read_file":
        return path.read_text(encoding="utf-8")
    path.write_text(arguments["content"], encoding="utf-8")
    return f"{path} is written"


@contextmanager
def way(name: str) -> Iterator[Callable[[str, int, int], None]]:
    """Work in a folder of that name; yields what is called with the outcome."""

    def report(text: str, input_tokens: int, output_tokens: int) -> None:
        print(json.dumps({"way": name, "text": text, "input": input_tokens, "output": output_tokens}), flush=True)

    folder = Path(name)
    folder.mkdir()
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield report
    finally:
        os.chdir(before)
