"""STAMP as a module of another workflow, from a path."""

from __future__ import annotations

from pathlib import Path

from importing import importer
from project import DIGITS, ZOOS, Project, checkout


def test_another_workflow_imports_ours_from_a_path_and_adds_a_rule(
    tmp_path: Path, finished: Project
) -> None:
    place = checkout(tmp_path / "theirs") / "Snakefile"
    mine = importer(tmp_path / "mine", repr(str(place)))
    mine.finish("best", "stamp_all")
    assert (mine.folder / "best.txt").read_text().strip() in ZOOS["small_digits"]
    board = mine.folder / "audit" / "results" / "small_digits" / "leaderboard.csv"
    assert board.read_bytes() == finished.result("small_digits/leaderboard.csv").read_bytes()
    assert not (mine.folder / "results" / "small_digits").exists()
    assert not mine.plan("best", "stamp_all")
    mistaken = mine.run("--dry-run", "--config", "stamp={seed: none}")
    assert mistaken.code and "stamp: config/config.yaml: seed" in mistaken.text


def test_status_of_a_snakefile_that_includes_ours_asks_for_everything(tmp_path: Path) -> None:
    project = Project.create(tmp_path / "project", {"small_digits": DIGITS})
    (project.folder / "ours.smk").write_text((project.folder / "Snakefile").read_text())
    (project.folder / "Snakefile").write_text('include: "ours.smk"\n')
    told = project.stamp("status")
    assert told.code == 0, told.text
    assert told.text.startswith("small_digits: 2 missing")
