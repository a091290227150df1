"""The SDKs, each in a program that a user of it would write (`programs/`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.clients.client import Client, Command, Prepare, Room
from tests.clients.installs import Install
from tests.clients.scripted_engine import MODEL

__all__ = ["SDKS"]

PROGRAMS = Path(__file__).with_name("programs")
_PYTHON = Install(
    "python-sdks",
    "pypi",
    ("openai==3.57.0", "anthropic==2.14.0", "ollama==0.6.3", "langchain-openai==1.7.4"),
    "bin/python",
)
_NODE = Install(
    "node-sdks", "npm", ("openai@6.49.0", "@anthropic-ai/sdk@1.14.0"), "node_modules/@anthropic-ai/sdk/package.json"
)


def _python(program: str) -> Prepare:
    def prepare(room: Room) -> Command:
        return Command((str(room.packages / "bin/python"), "-W", "error", str(PROGRAMS / program), room.base, MODEL))

    return prepare


def _node(program: str) -> Prepare:
    def prepare(room: Room) -> Command:
        packages = {"CLIENT_PACKAGES": str(room.packages)}
        return Command(("node", str(PROGRAMS / program), room.base, MODEL), packages)

    return prepare


_OPENAI_WAYS = ("chat-whole", "chat-streamed", "responses-whole", "responses-streamed")
_ANTHROPIC_WAYS = ("messages-whole", "messages-streamed")
_OPENAI, _ANTHROPIC = frozenset({"chat", "responses"}), frozenset({"messages"})
_OLLAMA = frozenset({"ollama_chat", "ollama_generate"})


def _sdk(name: str, prepare: Prepare, surfaces: frozenset[str], ways: tuple[str, ...], module: str = "") -> Client:
    return Client(
        name, _PYTHON if module else _NODE, prepare, surfaces, ways=ways, reports=True, module=module, seconds=60.0
    )


SDKS = (
    _sdk("openai (Python)", _python("openai_python.py"), _OPENAI, _OPENAI_WAYS, "openai"),
    _sdk("openai (Node)", _node("openai_node.mjs"), _OPENAI, _OPENAI_WAYS),
    _sdk("anthropic (Python)", _python("anthropic_python.py"), _ANTHROPIC, _ANTHROPIC_WAYS, "anthropic"),
    _sdk("anthropic (Node)", _node("anthropic_node.mjs"), _ANTHROPIC, _ANTHROPIC_WAYS),
    replace(
        _sdk("ollama (Python)", _python("ollama_python.py"), _OLLAMA, ("chat-whole", "chat-streamed"), "ollama"),
        flavour="ollama",
        side=1,
    ),
    _sdk("langchain-openai", _python("langchain_openai_python.py"), _OPENAI, _OPENAI_WAYS, "langchain_openai"),
)
"""In the order of the table."""
