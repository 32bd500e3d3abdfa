"""The whole configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from configured import load, mistake
from project import ROOT

from stamp.config import plan


def test_an_unknown_study_is_suggested(files: dict) -> None:
    line = mistake(files, studies=["small_phantm"])
    assert "unknown study 'small_phantm'" in line
    assert "did you mean 'small_phantom'?" in line


def test_the_shipped_configuration_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = plan.load(yaml.safe_load((ROOT / "config" / "config.yaml").read_text()))
    assert {len(study.models) for study in found.studies.values()} == {12}
    assert "Generated data" in found.studies["phantom"].notice


def test_a_project_is_read_without_its_studies_and_outside_of_one_has_defaults(
    files: dict, tmp_path: Path
) -> None:
    assert plan.read_project().datasets == {}
    load(files)
    Path("config/config.yaml").write_text("studies: [none]\nseed: 3\nthreads: 2\n")
    project = plan.read_project()
    assert (project.seed, project.threads, project.studies) == (3, 2, {})
    assert project.has_study("small_digits") and not project.has_study("none")
    assert project.read_study("small_digits").name == "small_digits"


def test_a_model_s_seed_depends_on_its_name_and_the_configured_seed(files: dict) -> None:
    first = load(files)
    assert first.seed_of("few") != first.seed_of("mixer")
    assert load(files, seed=2).seed_of("few") - first.seed_of("few") == 2 * 1_000_003
