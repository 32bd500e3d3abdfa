"""A mistake in any file is one line: the file, the key and what is right."""

from __future__ import annotations

from pathlib import Path

import pytest
from configured import mistake
from naming import check_named

from stamp.config.documents import read_yaml
from stamp.core.errors import UserError, suggest


def test_an_unknown_key_of_the_configuration_is_suggested(files: dict) -> None:
    line = mistake(files, devise="cpu")
    check_named(line, "config/config.yaml", "'devise'", "did you mean 'device'?")


def test_a_missing_key_is_named(files: dict) -> None:
    del files["studies/small_phantom.yaml"]["pairs"]["max_pairs"]
    line = mistake(files)
    assert line.endswith("small_phantom.yaml: pairs: the key 'max_pairs' is missing")


def test_a_key_given_twice_is_refused_with_its_line(files: dict) -> None:
    files["zoo/small_phantom.yaml"] = "a: 1\nb: 2\na: 3\n"
    check_named(mistake(files), "small_phantom.yaml, line 3", "'a'", "twice")


def test_broken_yaml_is_refused_with_its_line(files: dict) -> None:
    files["zoo/small_phantom.yaml"] = "a: [1, 2\nb: 3\n"
    assert "small_phantom.yaml, line 2" in mistake(files)


def test_a_line_never_lists_a_thousand_names() -> None:
    line = suggest("zzz", [f"name-{number:04d}" for number in range(1519)])
    assert line.startswith("known: name-0000, ") and line.endswith(" and 1,479 more")
    assert suggest("zzz", ["a", "b"]) == "known: a, b"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"a: {b: [}", "f.yaml, line 1: "),
        (b"a: {{nih}}/images", "f.yaml, line 1: "),
        (b"a: b\x00c", "f.yaml: not valid YAML"),
        ("a: M\u00fcnchen".encode("latin-1"), "f.yaml: is not UTF-8"),
    ],
)
def test_a_file_that_is_no_yaml_is_one_line(tmp_path: Path, content: bytes, line: str) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_yaml(file, "study")
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_key_without_a_value_and_a_value_out_of_range_are_named(files: dict) -> None:
    files["studies/small_phantom.yaml"]["source"]["train"] = None
    line = mistake(files)
    assert "small_phantom.yaml: source: " in line and "'train'" in line
    files["studies/small_phantom.yaml"]["source"]["train"] = "train"
    files["studies/small_phantom.yaml"]["pairs"]["max_pairs"] = 1
    line = mistake(files)
    assert "pairs.max_pairs: 1 " in line and "2" in line


def test_a_mistyped_key_is_suggested_before_it_is_called_missing(files: dict) -> None:
    pairs = files["studies/small_phantom.yaml"]["pairs"]
    pairs["max_pair"] = pairs.pop("max_pairs")
    assert "pairs: unknown key 'max_pair': did you mean 'max_pairs'?" in mistake(files)


def test_a_key_that_needs_another_says_so(files: dict) -> None:
    block = {"source": "checkpoint", "arch": "resnet18", "hub_file": "a.bin"}
    files["zoo/small_phantom.yaml"]["few"]["load"] = block
    line = mistake(files)
    assert "zoo/small_phantom.yaml: few.load: " in line
    assert "'hub_file'" in line and "'hub'" in line


def test_a_number_in_quotes_and_a_name_listed_twice_are_refused(files: dict) -> None:
    study = files["studies/small_phantom.yaml"]
    study["pairs"]["max_pairs"] = "80"
    assert "pairs.max_pairs: '80' " in mistake(files)
    study["pairs"]["max_pairs"] = 80
    study["zoo"] = ["small_phantom", "small_phantom"]
    check_named(mistake(files), "zoo", "'small_phantom'", "twice")
