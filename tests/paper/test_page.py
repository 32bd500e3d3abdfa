"""The page and the comparison with finished studies."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from stamp.config.registries.metrics import METRICS
from stamp.core.artifacts import write_table
from stamp.core.errors import UserError
from stamp.data.label_tables import shipped
from stamp.paper import predictor_table
from stamp.paper.audit_claims import THEMES, audit
from stamp.paper.audit_inputs import finished_studies, training_list
from stamp.paper.audit_study import beside
from stamp.paper.claims import VERDICTS, table
from stamp.paper.page import markdown, page
from stamp.paper.printed_tables import read

ROOT = Path(__file__).resolve().parents[2]
PAPER = read()
# statements of the text that other claims are recomputed from
INPUTS = {
    "permutations", "corruption_permutations", "raw_rho", "partial_rho", "partial2_rho",
    "residual_vindr_appendix", "residual_chexpert_appendix", "residual_mimic_appendix",
    "controlled_names", "id_dollar_street", "trend_figure", "noise_suppresses", "probit_vindr",
    "probit_chexpert", "probit_mimic", "probit_rsna_appendix",
}  # fmt: skip
real = pytest.mark.skipif(
    shipped("Data_Entry_2017_v2020.csv.gz") is None, reason="torchxrayvision is not installed"
)


@pytest.fixture(scope="module")
def claims() -> pl.DataFrame:
    return table(audit(PAPER))


@pytest.fixture(scope="module")
def text(claims: pl.DataFrame) -> str:
    return page(claims)


@real
def test_the_committed_page_is_what_the_code_writes(text):
    assert (ROOT / "docs" / "reproduction.md").read_text() == text, "run `make audit`"


def test_every_statement_of_the_text_is_a_claim_or_what_a_claim_is_recomputed_from(claims):
    found = set(claims.select("claim", "where").iter_rows())
    rows = PAPER.table("text").select("key", "claim", "where").iter_rows()
    assert {key for key, *statement in rows if tuple(statement) not in found} == INPUTS


def test_verdicts_are_the_four_and_the_page_counts_them(claims, text):
    assert set(claims["verdict"]) == set(VERDICTS)
    whole = Counter(claims["verdict"])
    row = " | ".join(str(whole[name]) for name in VERDICTS)
    assert f"| All | {row} | {claims.height} |" in text
    assert set(claims["theme"]) == set(THEMES)


def test_rows_of_a_series_are_summed_up_and_only_the_others_listed(claims, text):
    assert "- Delta of Table 9: 31 rows, 29 reproduced, 2 differs." in text
    assert "| Delta of ViT-Base/16 |" in text
    assert "| Delta of Swin-S |" not in text


def test_a_bar_does_not_end_a_cell():
    assert markdown(["a"], [["x | y"]]).splitlines()[-1] == "| x \\| y |"


# finished studies


def main_table(rows: list[tuple]) -> pl.DataFrame:
    names = ("target", "score", "models", "n", "rho", "partial")
    return pl.DataFrame(rows, schema=names, orient="row")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two finished studies with made-up numbers."""
    medical = [
        ("VinDr-CXR", "STAMP", "all", 40, 0.5, 0.25),
        ("VinDr-CXR", "class-matched STAMP", "all", 40, 0.4, 0.2),
        ("RSNA", "STAMP", "all", 40, 0.1, None),
        ("RSNA", "class-matched STAMP", "all", 40, 0.2, None),
        ("Mean of targets", "STAMP", "all", 40, 0.45, 0.1),
    ]
    natural = [("ObjectNet", "STAMP", "declared", 26, 0.9, 0.6)]
    for name, rows in (("medical", medical), ("natural", natural)):
        write_table(tmp_path / name / "statistics" / "main.csv", main_table(rows), {})
        board = pl.DataFrame({"label": ["ResNet-18", "Mine"], "stamp": [0.7, 0.9]})
        write_table(tmp_path / name / "leaderboard.csv", board, {})
    return tmp_path


def test_a_finished_study_stands_beside_the_paper(results):
    found = beside(PAPER, [results / "medical", results / "natural"])
    rows = {(row[0], row[1], row[2]): row for row in found.iter_rows()}
    assert rows["medical", "rho", "VinDr-CXR"][3:] == ("all", "0.855", 0.5, 0.5 - 0.855)
    assert rows["medical", "partial rho", "VinDr-CXR"][4:6] == ("+0.545", 0.25)
    assert rows["medical", "n", "VinDr-CXR"][4:] == ("44", 40.0, -4.0)
    assert rows["medical", "rho", "RSNA (macro)"][4:6] == ("0.311", 0.1)
    assert rows["medical", "rho", "RSNA (CM, Pneu.)"][4:6] == ("0.663", 0.2)
    assert rows["medical", "STAMP", "ResNet-18"][4:6] == ("0.7764", 0.7)
    assert rows["natural", "rho", "ObjectNet"][3:6] == ("declared", "0.984", 0.9)
    assert rows["natural", "partial rho", "ObjectNet"][4:6] == ("0.949", 0.6)
    assert rows["natural", "n", "ObjectNet"][4:6] == ("27", 26.0)
    assert not any("Mine" in key or "Mean of targets" in key for key in rows)
    assert ("medical", "partial rho", "RSNA (macro)") not in rows, "the paper prints none"


def predictors(results: Path, rows: list[tuple]) -> Path:
    """The table of predictors of a finished study: models, outcome, predictor, n, common, rho."""
    names = ("models", "outcome", "predictor", "n", "common", "rho")
    table = pl.DataFrame(rows, schema=names, orient="row")
    write_table(results / "medical" / "analyses" / "baselines.csv", table, {})
    return results / "medical"


def test_predictors_stand_in_the_layout_of_table_2_over_their_own_and_over_common_models(results):
    targets = ("vindr", "chexpert", "rsna", "mimic")
    own = [("mixed", key, "entropy", 40 + at, False, at / 10) for at, key in enumerate(targets)]
    shared = [("declared", key, "entropy", 31, True, -0.5) for key in targets]
    lost = [("declared", key, "mc_dropout", 12, False, 0.9) for key in targets]
    folder = predictors(results, [*own, *shared, *lost, ("mixed", "mean", "entropy", 40, False, 1)])
    text = predictor_table.page(PAPER, [folder])
    assert "| Entropy | src | -.242 | -.126 | +.030 | -.186 | -.131 | 40 |" in text, "as printed"
    assert "| Entropy | src | +0.000 | +0.100 | +0.200 | +0.300 | +0.150 | 40-43 |" in text
    assert "| Entropy | src | -0.500 | -0.500 | -0.500 | -0.500 | -0.500 | 31 |" in text
    assert text.count("| MC Dropout |") == 1, "one that few models have is in no common set"
    found = beside(PAPER, [folder])
    rows = {(row[1], row[2], row[3]): row for row in found.iter_rows() if "Entropy" in row[1]}
    assert rows["rho of Entropy", "chexpert", "mixed"][4:] == ("-.126", 0.1, 0.1 + 0.126)
    assert rows["rho of Entropy", "average", "mixed"][4:6] == ("-.131", pytest.approx(0.15))
    assert rows["rho of Entropy", "average", "declared"][5] == -0.5
    assert len(rows) == 10


def test_without_the_papers_layout_a_study_is_told_how_to_get_it(results):
    folder = predictors(results, [("declared", "vindr", "stamp", 31, True, 0.5)])
    text = predictor_table.page(PAPER, [folder])
    assert "`mixed: true`" in text
    assert "| STAMP (ours) | src | +0.500 | - | - | - | - | 31 |" in text


def test_every_method_of_table_2_has_a_predictor_of_ours():
    known = {metric.name for metric in METRICS} | {"stamp", "source_metric"}
    assert (
        list(predictor_table.PREDICTORS) == PAPER.table(predictor_table.TABLE)["method"].to_list()
    )
    assert set(predictor_table.PREDICTORS.values()) <= known


def test_a_changed_table_of_predictors_is_noticed(results):
    before = finished_studies(results)
    predictors(results, [("declared", "vindr", "stamp", 31, True, 0.5)])
    after = finished_studies(results)
    assert before["medical"] != after["medical"] and before["natural"] == after["natural"]


def test_a_missing_number_of_a_study_stays_missing(results):
    file = results / "natural" / "statistics" / "main.csv"
    write_table(file, main_table([("ObjectNet", "STAMP", "all", 3, None, None)]), {})
    found = beside(PAPER, [results / "natural"])
    assert found.filter(pl.col("quantity") == "rho")["found"].to_list() == [None]
    assert found.filter(pl.col("quantity") == "rho")["difference"].to_list() == [None]


def test_studies_that_the_paper_does_not_have_and_old_tables_are_refused(results):
    with pytest.raises(UserError, match="has no study 'digits'"):
        beside(PAPER, [results / "digits"])
    write_table(
        results / "natural" / "statistics" / "main.csv", pl.DataFrame({"target": ["x"]}), {}
    )
    with pytest.raises(UserError, match="no column 'score'; run the study again"):
        beside(PAPER, [results / "natural"])


def test_only_whole_results_count_as_finished_and_their_digest_follows_them(results):
    before = finished_studies(results)
    assert list(before) == ["medical", "natural"]
    (results / "natural" / "leaderboard.csv").unlink()
    (results / "medical" / "leaderboard.csv").write_text("label,stamp\n")
    after = finished_studies(results)
    assert list(after) == ["medical"]
    assert after["medical"] != before["medical"]


def test_a_training_list_is_found_only_where_there_is_one(tmp_path):
    assert training_list(None) == training_list(tmp_path) == []
    (tmp_path / "train_val_list.txt").touch()
    assert training_list(tmp_path) == [str(tmp_path / "train_val_list.txt")]
