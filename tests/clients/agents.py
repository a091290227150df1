"""The coding agents, headless, each configured as its manual says, with nothing but loopback to talk to."""

from __future__ import annotations

import json
import subprocess

from tests.clients.client import Client, Command, Room
from tests.clients.engine.script import CONTENT, FILE
from tests.clients.installs import Install
from tests.clients.scripted_engine import MODEL, SMALL, WINDOW

__all__ = ["AGENTS", "AIDER_REPLIES"]

TASK = f"Write {FILE} with one line of text, read it back, then say that you are done."
KEY = "sk-none"


def _codex(room: Room) -> Command:
    settings = room.home / ".codex"
    settings.mkdir()
    (settings / "config.toml").write_text(
        f"""model = "{MODEL}"
model_provider = "kvgate"
model_context_window = {WINDOW}
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.kvgate]
name = "kvgate"
base_url = "{room.base}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
    )
    flags = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    return Command((str(room.packages / "node_modules/.bin/codex"), "exec", *flags, TASK), {"OPENAI_API_KEY": KEY})


def _claude_code(room: Room) -> Command:
    flags = ("--print", TASK, "--model", MODEL, "--dangerously-skip-permissions")
    return Command(
        (str(room.packages / "node_modules/.bin/claude"), *flags),
        {
            "ANTHROPIC_BASE_URL": room.base,
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_SMALL_FAST_MODEL": SMALL,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": SMALL,
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "IS_SANDBOX": "1",  # it asks for permission as root otherwise
        },
    )


def _opencode(room: Room) -> Command:
    limit = {"context": WINDOW, "output": 8192}
    settings = {
        "model": f"kvgate/{MODEL}",
        "small_model": f"kvgate/{SMALL}",
        "autoupdate": False,
        "share": "disabled",
        "enabled_providers": ["kvgate"],
        "permission": {"bash": "allow", "edit": "allow"},
        "provider": {
            "kvgate": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "kvgate",
                "options": {"baseURL": f"{room.base}/v1", "apiKey": KEY},
                "models": {name: {"name": name, "limit": limit, "tool_call": True} for name in (MODEL, SMALL)},
            }
        },
    }
    (room.work / "opencode.json").write_text(json.dumps(settings))
    quiet = ("AUTOUPDATE", "LSP_DOWNLOAD", "MODELS_FETCH", "DEFAULT_PLUGINS")
    return Command(
        (str(room.packages / "node_modules/.bin/opencode"), "run", TASK),
        {f"OPENCODE_DISABLE_{name}": "1" for name in quiet},
    )


def _aider(room: Room) -> Command:
    subprocess.run(("git", "init", "-q", str(room.work)), check=True, stdin=subprocess.DEVNULL)
    known = {f"openai/{MODEL}": {"max_input_tokens": WINDOW, "max_output_tokens": 8192, "litellm_provider": "openai"}}
    (room.home / "models.json").write_text(json.dumps(known))
    switches = (
        *("yes-always", "no-check-update", "no-show-release-notes", "no-analytics", "analytics-disable"),
        *("no-show-model-warnings", "no-gitignore", "no-detect-urls", "no-pretty", "no-suggest-shell-commands"),
    )
    flags = [f"--{switch}" for switch in switches]
    named = (
        "--edit-format",
        "diff",
        "--model",
        f"openai/{MODEL}",
        "--model-metadata-file",
        str(room.home / "models.json"),
    )
    return Command(
        (str(room.packages / "bin/aider"), *flags, *named, "--message", TASK, FILE),
        {"OPENAI_API_BASE": f"{room.base}/v1", "OPENAI_API_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )


AIDER_REPLIES = (
    ("commit message", f"feat: add {FILE}"),
    ("SEARCH/REPLACE", f"Here it is.\n\n{FILE}\n```\n<<<<<<< SEARCH\n=======\n{CONTENT}\n>>>>>>> REPLACE\n```\n"),
)
"""What makes aider write the file: it reads edits from text instead of calling tools."""

_CODEX = Install("codex", "npm", ("@openai/codex@0.171.0",), "node_modules/.bin/codex")
_CLAUDE = Install("claude-code", "npm", ("@anthropic-ai/claude-code@2.1.197",), "node_modules/.bin/claude")
_OPENCODE = Install("opencode", "npm", ("opencode-ai@1.18.33",), "node_modules/.bin/opencode")
_AIDER = Install("aider", "pypi", ("aider-chat==0.86.2",), "bin/aider")

AGENTS = (
    Client("codex", _CODEX, _codex, frozenset({"responses"})),
    Client(
        "claude-code",
        _CLAUDE,
        _claude_code,
        frozenset({"messages"}),
        asked_in=frozenset({"messages", "chat"}),  # its turns of the system's are translated
        side=2,
    ),
    Client("opencode", _OPENCODE, _opencode, frozenset({"chat"}), side=1),
    Client("aider", _AIDER, _aider, frozenset({"chat"}), edits=True, side=2),
)
"""In the order of the table."""
