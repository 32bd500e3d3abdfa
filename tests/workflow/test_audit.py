"""`snakemake audit` runs on its own, without images, and is no part of a study."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from project import Project

from stamp.core.artifacts import write_table
from stamp.paper.claims import VERDICTS


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project.create(tmp_path_factory.mktemp("audit") / "project")
    project.finish("audit")
    return project


def test_the_audit_ends_with_claims_and_a_page_and_makes_nothing_else(audited: Project) -> None:
    claims = pl.read_csv(audited.result("audit/claims.csv"), infer_schema=False)
    assert claims.columns[:5] == ["claim", "where", "printed", "recomputed", "verdict"]
    assert set(claims["verdict"]) == set(VERDICTS)
    assert "# The paper's numbers" in audited.result("audit/reproduction.md").read_text()
    shown = [one.name for one in audited.result("").iterdir() if not one.name.startswith(".")]
    assert shown == ["audit"]


def test_a_second_audit_has_nothing_to_do_and_a_study_does_not_audit(audited: Project) -> None:
    assert not audited.plan("audit")
    assert not [job for job in audited.plan() if job.startswith("audit")]


def test_an_edited_table_is_audited_again(audited: Project, tmp_path: Path) -> None:
    project = audited.copy(tmp_path / "edited")
    # results of the copy were made from files in another place: settle that first
    project.finish("audit")
    file = project.folder / "resources" / "paper" / "natural.csv"
    file.write_text(file.read_text().replace("0.984", "0.884"))
    assert set(project.plan("audit")) == {"audit", "audit_claims"}
    project.finish("audit")
    text = project.result("audit/claims.csv").read_text()
    assert "[0.9636 to 0.9658" not in text


def test_a_finished_study_is_set_beside_the_paper(audited: Project, tmp_path: Path) -> None:
    project = audited.copy(tmp_path / "finished")
    names = ("target", "score", "models", "n", "rho", "partial")
    row = ("VinDr-CXR", "STAMP", "all", 40, 0.5, 0.25)
    table = pl.DataFrame([row], schema=names, orient="row")
    write_table(project.result("medical/statistics/main.csv"), table, {})
    board = pl.DataFrame({"label": ["ResNet-18"], "stamp": [0.7]})
    write_table(project.result("medical/leaderboard.csv"), board, {})
    project.finish("audit")
    found = pl.read_csv(project.result("audit/study.csv"))
    assert found.filter(pl.col("quantity") == "STAMP")["found"].to_list() == [0.7]
    assert "| STAMP (ours) | src | .855 |" in project.result("audit/predictors.md").read_text()
    write_table(project.result("medical/leaderboard.csv"), board.with_columns(stamp=0.8), {})
    assert "audit_study" in project.plan("audit"), "other results are compared anew"
