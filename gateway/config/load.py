"""One way from a file to a policy, for start, reload and `check`: all problems at once, or a whole configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from gateway.config.document import Config
from gateway.config.messages import problems_of
from gateway.config.policy import Policy
from gateway.config.problems import Path, Problem, Problems
from gateway.config.rules import Findings, judge
from gateway.config.secrets import Resolved, resolve
from gateway.config.settings import Settings
from gateway.config.sizes import Unreadable
from gateway.config.source import holds, read

__all__ = ["Loaded", "load"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file that can be used. `warnings` are worth a look and stop nothing."""

    config: Config
    settings: Settings
    policy: Policy
    warnings: tuple[Problem, ...] = ()


def load(
    source: FilePath | str, env: Mapping[str, str] | None = None, *, file: str = "", lenient: bool = False
) -> Loaded:
    """Read a file (a Path) or YAML text (a str) and check it whole; raises Problems with everything that is wrong.

    `env` is what `${env.NAME}` reads, the process's own by default. `lenient` is for a check on another machine than
    the one that serves: environment variables and files that are not there become warnings. `file` names the text in
    messages.
    """
    path = source if isinstance(source, FilePath) else None
    name = file or (str(path) if path else "<text>")
    base = path.resolve().parent if path else FilePath.cwd()
    text = source if isinstance(source, str) else _text(source, name)
    read_in = read(text, name)
    if read_in.data is None:
        raise Problems(read_in.problems)
    if not isinstance(read_in.data, dict):
        raise Problems([*read_in.problems, Problem(name, 1, 1, "", "must be a mapping with `backends:` at its top")])
    findings = Findings(read_in, base, lenient)
    findings.problems += read_in.problems
    data = _resolved(read_in.data, (), findings, os.environ if env is None else env)
    config, sound = _validated(data, findings)
    if config is not None:
        judge(config, findings, sound)
    if findings.problems or config is None:
        raise Problems(findings.problems)
    warnings = tuple(sorted(findings.warnings, key=lambda p: (p.line, p.column)))
    return Loaded(config, config.settings, config.policy, warnings)


def _text(path: FilePath, name: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise Problems([Problem(name, 0, 0, "", "is not UTF-8 text")]) from None
    except (OSError, ValueError) as error:
        what = (getattr(error, "strerror", None) or "no such file").lower()
        raise Problems([Problem(name, 0, 0, "", f"can't be read: {what}")]) from None


def _resolved(value: Any, path: Path, findings: Findings, env: Mapping[str, str]) -> Any:
    """The values with their references replaced."""
    if isinstance(value, dict):
        return {key: _resolved(item, (*path, key), findings, env) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, (*path, i), findings, env) for i, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    try:
        return resolve(value, env, findings.base, required=True)
    except Unreadable as error:
        findings.unresolved.add(path)
        if not error.absent:
            findings.error(path, str(error), error.hint)
            return Resolved("", missing=True)
        say = findings.warn if findings.lenient else findings.error
        say(path, str(error), error.hint)
        return resolve(value, env, findings.base, required=False)


def _validated(data: dict[str, Any], findings: Findings) -> tuple[Config | None, frozenset[str]]:
    """The configuration, and the sections without a problem of form.

    What can't be read is reported and replaced, and the rest read again, so that the rules still see everything else.
    The second value names the sections where nothing was replaced: rules about the whole fleet judge only those.
    """
    stand_ins = _StandIns(data)
    excused = findings.unresolved | findings.source.broken
    bad = {re.split(r"[.\[]", problem.path)[0] for problem in findings.problems}
    for _ in range(12):
        try:
            config = Config.model_validate(data, context={"base": findings.base})
        except ValidationError as error:
            for path, problem in problems_of(error, findings.source, data):
                bad.add(str(path[0]) if path else "")
                if problem and path not in excused and not stand_ins.cover(path):
                    findings.problems.append(problem)
                stand_ins.replace(path)
        else:
            return config, frozenset(Config.model_fields) - bad
    return None, frozenset()


class _StandIns:
    """Replaces what can't be read, so that the positions of everything else stay as they are in the file."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.tries: dict[Path, int] = {}

    def cover(self, path: Path) -> bool:
        """Whether the value at this path, or one around it, is a stand-in already."""
        return any(path[:n] in self.tries for n in range(1, len(path) + 1))

    def replace(self, path: Path) -> None:
        """Leave an optional key out; then, and for list entries, a stand-in; at last replace what is around."""
        if not path:
            return
        holder: Any = self.data
        for part in path[:-1]:
            if not holds(holder, part):
                return
            holder = holder[part]
        last, serial = path[-1], "-".join(map(str, path))
        words = (f"unnamed-{serial}", f"http://unnamed-{serial}.invalid", "openai")
        tried = self.tries[path] = self.tries.get(path, 0) + 1
        if isinstance(holder, dict) and tried == 1 and last in holder:
            del holder[last]
        elif isinstance(holder, dict) and tried <= 4:
            holder[last] = words[max(tried - 2, 0)]
        elif isinstance(holder, list) and isinstance(last, int) and tried <= 4:
            holder[last] = ({}, *words)[tried - 1]
        else:
            self.replace(path[:-1])
