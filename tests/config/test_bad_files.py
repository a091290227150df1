"""Each file that can't be used, with what is said about it: place, path, sentence, hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.config.problems import Problems
from gateway.errors import ConfigError

BAD = sorted((Path(__file__).parent / "bad").glob("*.yaml"))
ENV = {"KEY_A": "k1"}


def said_about(text: str, name: str = "f.yaml") -> list[str]:
    with pytest.raises(Problems) as caught:
        load(text, ENV, file=name)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_every_problem_is_told_at_once_with_its_place(path: Path) -> None:
    expected = path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    assert expected
    assert said_about(path.read_text(encoding="utf-8"), path.name) == expected


def test_every_told_place_is_where_the_word_stands() -> None:
    text = (Path(__file__).parent / "bad" / "several_sections.yaml").read_text(encoding="utf-8")
    with pytest.raises(Problems) as caught:
        load(text, ENV)
    for problem in caught.value.problems:
        word = problem.path.rsplit(".", 1)[-1]
        assert text.splitlines()[problem.line - 1][problem.column - 1 :].startswith(word)


def test_problems_are_a_config_error_that_carries_them() -> None:
    with pytest.raises(ConfigError) as caught:
        load("backends: []")
    assert isinstance(caught.value, Problems)
    (problem,) = caught.value.problems
    assert (problem.path, problem.line, problem.place) == ("backends", 1, "<text>:1:1")
    assert str(caught.value) == str(problem) == caught.value.message


def test_no_message_holds_a_secret() -> None:
    text = (Path(__file__).parent / "bad" / "leaks.yaml").read_text(encoding="utf-8")
    with pytest.raises(Problems) as caught:
        load(text, ENV)
    said = str(caught.value) + repr(caught.value) + repr(caught.value.problems)
    assert "secret-" not in said
    assert "sk secret" not in said


@pytest.mark.parametrize(
    "url",
    [
        "http://h:1/v1?key=MARK",
        "ftp://h:1/?key=MARK",
        "http://h:1#MARK",
        "http://u:MARK@h:1",
        "http://u:a/MARK@h:1",
        "h:1?key=MARK",
        "http://u:MARK?x@h:1/?a=MARK",
        "http://h:1/?" + "a" * 80 + "MARK",
    ],
)
def test_what_follows_or_precedes_an_address_is_not_repeated(url: str) -> None:
    with pytest.raises(Problems) as caught:
        load(f'backends: [{{name: a, url: "{url}", engine: vllm}}]', ENV)
    assert "backends[0].url" in str(caught.value)
    assert "MARK" not in str(caught.value) + repr(caught.value.problems)


@pytest.mark.parametrize("text", ["[]", "- a\n- b\n", "[{name: a}]", "7", "some words"])
def test_a_file_that_is_no_mapping_is_told_so(text: str) -> None:
    assert said_about(text) == ["f.yaml:1:1: must be a mapping with `backends:` at its top"]


def test_a_value_from_the_environment_is_shown_as_it_was_written() -> None:
    env = {"HOST": "not a url and private"}
    with pytest.raises(Problems) as caught:
        load('backends: [{name: a, url: "${env.HOST}", engine: vllm}]', env)
    assert "private" not in str(caught.value)
    assert "`${env.HOST}` is not an http or https URL" in str(caught.value)


def test_files_that_cannot_be_read_are_problems_too(tmp_path: Path) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("name: caf\xe9".encode("latin-1"))
    for path, words in ((tmp_path / "none.yaml", "no such file"), (tmp_path, "is a directory"), (latin, "not UTF-8")):
        with pytest.raises(Problems, match=words):
            load(path)


def test_a_file_that_is_too_long_is_refused_before_it_is_parsed() -> None:
    assert said_about("#" * (1024 * 1024 + 1)) == ["f.yaml: is longer than 1024 KiB (split the fleet)"]
