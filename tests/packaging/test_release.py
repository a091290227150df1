"""What is shipped: one version everywhere, a wheel with all its data files, workflows and the CI script that run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from yamllint import linter
from yamllint.config import YamlLintConfig

from gateway import __version__
from tests.architecture.source import PACKAGE, ROOT

YAML_FILES = sorted(
    path
    for folder in ("config", ".github", "gateway", "helm")
    for path in (ROOT / folder).rglob("*.yaml")
    if "templates" not in path.parts
) + sorted((ROOT / ".github").rglob("*.yml"))


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    chart = yaml.safe_load((ROOT / "helm/kvgate/Chart.yaml").read_text(encoding="utf-8"))
    changelog = re.findall(
        r"^## \[(\d+\.\d+\.\d+)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert project["version"] == __version__ == chart["appVersion"] == changelog[0]


def test_the_licence_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


@pytest.mark.parametrize("path", YAML_FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_yaml_is_tidy(path: Path) -> None:
    config = YamlLintConfig(file=str(ROOT / ".yamllint"))
    problems = list(linter.run(path.read_text(encoding="utf-8"), config, path.relative_to(ROOT).as_posix()))
    assert [str(problem) for problem in problems] == []


def test_the_wheel_holds_every_file_of_the_package(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(PACKAGE, source / "gateway", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    result = subprocess.run(
        [*pip, "--wheel-dir", str(tmp_path), str(source)], capture_output=True, text=True, timeout=110, check=False
    )
    assert result.returncode == 0, result.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if name.startswith("gateway/")}
        metadata = archive.read(f"kvgate-{__version__}.dist-info/entry_points.txt").decode()
    present = {path.relative_to(source).as_posix() for path in (source / "gateway").rglob("*") if path.is_file()}
    assert present - shipped == set()
    assert "kvgate = gateway.cli:main" in metadata


class TestTheCiScript:
    """Runs what the readme tells a newcomer to type."""

    @pytest.fixture
    def checkout(self, tmp_path: Path) -> Path:
        (tmp_path / ".ci").mkdir()
        shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
        return tmp_path

    def run(self, checkout: Path, readme: str) -> subprocess.CompletedProcess[str]:
        (checkout / "README.md").write_text(readme, encoding="utf-8")
        return subprocess.run(
            ["bash", ".ci/run"], cwd=checkout, capture_output=True, text=True, timeout=30, check=False
        )

    def readme(self, command: str) -> str:
        return (
            f"# x\n\n<!-- demo -->\n```sh\nexit 7\n```\n\n<!-- tests -->\n```sh\n{command}\n```\n\n```sh\nexit 8\n```\n"
        )

    def test_it_runs_the_marked_line_and_passes_on_its_status(self, checkout: Path) -> None:
        passed = self.run(checkout, self.readme("echo one && echo two"))
        assert (passed.returncode, passed.stdout.splitlines()[-2:]) == (0, ["one", "two"])
        assert self.run(checkout, self.readme("echo one && exit 3")).returncode == 3

    def test_a_readme_without_the_line_fails(self, checkout: Path) -> None:
        result = self.run(checkout, "# nothing here\n")
        assert result.returncode == 1
        assert "no fenced sh block" in result.stderr

    def test_the_readme_of_this_checkout_has_both_lines(self) -> None:
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        marked = dict(re.findall(r"^<!-- (\w+) -->\n```sh\n(.+)\n```$", readme, re.MULTILINE))
        assert marked["demo"].startswith("python3 -m venv .venv && ")
        assert marked["demo"].endswith(".venv/bin/kvgate demo")
        assert marked["tests"].startswith("python3 -m venv .venv && ")
        assert marked["tests"].endswith(".venv/bin/python -m tests")
