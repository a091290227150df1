"""House rules that a linter does not know: sizes, names, docstrings, nothing unfinished, every Reason in use."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from gateway.core.reasons import SENTENCES, Reason
from tests.architecture.source import LIMIT_LINES, PACKAGE, line_count, python_files, shown, text_of

# Names that say nothing about what is inside.
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "base", "stuff"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|raise NotImplementedError")
REASONS_FILE = PACKAGE / "core" / "reasons.py"


def test_no_file_is_over_the_limit() -> None:
    too_long = {shown(path): line_count(path) for path in python_files() if line_count(path) >= LIMIT_LINES}
    assert too_long == {}


def test_no_file_or_folder_has_a_vague_name() -> None:
    vague = [shown(path) for path in python_files() if VAGUE & {path.stem, *path.relative_to(PACKAGE).parent.parts}]
    assert vague == []


def test_nothing_is_left_unfinished() -> None:
    found = [
        f"{shown(path)}:{number}: {line.strip()}"
        for path in python_files()
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    assert found == []


def test_annotations_are_never_evaluated() -> None:
    annotated = ast.AnnAssign | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    missing = [
        shown(path)
        for path in python_files()
        if any(isinstance(node, annotated) for node in ast.walk(ast.parse(text_of(path))))
        and "from __future__ import annotations" not in text_of(path)
    ]
    assert missing == []


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_a_sentence_and_is_used(reason: Reason) -> None:
    assert SENTENCES[reason].strip()
    said = re.compile(rf"\bReason\.{reason.name}\b")
    others = (path for path in python_files() if path != REASONS_FILE)
    assert any(said.search(text_of(path)) for path in others), f"nothing ever says {reason.value}"


def test_public_names_have_docstrings() -> None:
    bare = []
    for path in python_files():
        bare += [f"{shown(path)}:{line} {name}" for name, line in undocumented(ast.parse(text_of(path)))]
    assert bare == []


def test_a_missing_docstring_is_found() -> None:
    source = '"""Module."""\nclass Thing:\n    """Thing."""\n    def act(self): ...\n    def _own(self): ...\n'
    assert [name for name, _ in undocumented(ast.parse(source))] == ["Thing.act"]


def undocumented(module: ast.Module) -> Iterator[tuple[str, int]]:
    """Public modules, classes, functions and methods without a docstring, as (name, line)."""
    if module.body and ast.get_docstring(module) is None:
        yield "module", 1
    yield from _undocumented_in(module, "")


def _undocumented_in(scope: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, int]]:
    for node in scope.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        if ast.get_docstring(node) is None and not _inherits_its_docstring(node):
            yield prefix + node.name, node.lineno
        if isinstance(node, ast.ClassDef):
            yield from _undocumented_in(node, f"{prefix}{node.name}.")


def _inherits_its_docstring(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """An overload, a setter or a marked override says nothing new."""
    names = {ast.unparse(decorator).rsplit(".", 1)[-1] for decorator in node.decorator_list}
    return bool(names & {"overload", "override", "setter"})
