"""Text that is not YAML: what a person should look at, where."""

from __future__ import annotations

from ruamel.yaml.error import MarkedYAMLError

from gateway.config.problems import Problem

__all__ = ["syntax_problem"]


def syntax_problem(error: MarkedYAMLError, text: str, file: str) -> Problem:
    """The parser's complaint as a problem; `text` is the whole file."""
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    lines = text.splitlines()
    before = lines[line - 1] if 0 < line <= len(lines) else ""
    said = str(error.problem or error.context or "")
    if "\t" in before[: len(before) - len(before.lstrip())] or "'\\t'" in said:
        return Problem(file, line, before.find("\t") + 1, "", "has a tab where YAML wants spaces", "indent with spaces")
    if "undefined alias" in said:
        return Problem(
            file, line, column, "", "uses an alias that is defined nowhere above", "define it with &name first"
        )
    if "mapping values are not allowed" in said:
        hint = "check the indentation, and put text that holds `: ` in quotes"
        return Problem(file, line, column, "", "has a `:` where no key can stand", hint)
    if "expected a single document" in str(error.context or "") + said:
        return Problem(file, line, column, "", "holds a second document", "remove the `---` between them")
    opened = error.context_mark
    if opened and opened.line + 1 < line and "flow" in str(error.context):
        hint = f"is the bracket of line {opened.line + 1} closed?"
        return Problem(file, line, column, "", f"is not readable as YAML: {_one_line(said)}", hint)
    hint = "a quote or bracket may be open, or a line indented differently from its neighbours"
    return Problem(file, line, column, "", f"is not readable as YAML: {_one_line(said)}", hint)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:120]
