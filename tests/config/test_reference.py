"""Schemas and tables are those of the declarations, and editors find them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from project import ROOT

from stamp.config import reference
from stamp.config.registries.model_sources import SOURCES

YAMLS = sorted((ROOT / "config").rglob("*.yaml"))


@pytest.mark.parametrize("name", sorted(reference.FILES))
def test_a_schema_is_written_from_its_declaration(name: str) -> None:
    file = reference.SCHEMAS / f"{name}.schema.json"
    assert file.read_text() == reference.schema(name), "run python -m stamp.config.reference"


def test_the_tables_of_the_readme_are_written_from_the_declarations() -> None:
    text = reference.README.read_text()
    assert text == reference.readme(text), "run python -m stamp.config.reference"
    marked = {found[1] for found in reference.MARKED.findall(text)}
    assert marked == {*reference.TABLES, "changes", "sources"}


@pytest.mark.parametrize("file", YAMLS, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_a_file_names_the_schema_that_it_follows(file: Path) -> None:
    first = file.read_text().partition("\n")[0]
    mark = "# yaml-language-server: $schema="
    assert first.startswith(mark)
    schema = json.loads((file.parent / first.removeprefix(mark)).read_text())
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(file.read_text()))


def test_every_source_of_models_is_declared() -> None:
    assert set(reference.SOURCES) == set(SOURCES)


def test_every_key_of_the_schemas_is_documented() -> None:
    text = reference.README.read_text()
    for name in reference.FILES:
        for key in _keys(json.loads(reference.schema(name))):
            assert f"`{key}`" in text, f"{name}: '{key}' is not in config/README.md"


def _keys(node: Any) -> set[str]:
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    found = set(node.get("properties", ())) if isinstance(node, dict) else set()
    return found.union(*(_keys(one) for one in inner))


def test_no_schema_has_a_default() -> None:
    """Snakemake's validation would write it into the configuration, and a new one rerun the zoo."""
    for name in reference.FILES:
        assert '"default"' not in reference.schema(name)
