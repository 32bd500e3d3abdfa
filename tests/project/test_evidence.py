"""The page of evidence says what the tables say, by the rules that it states."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks import evidence
from benchmarks.testbed import HEADING, MATCHED, STRESS, section_of_testbed
from scipy.stats import norm

from stamp.core.artifacts import write_table
from stamp.report.analyses.baselines import table as baselines
from stamp.report.analyses.regret import table as regrets
from stamp.report.analysis import frame
from stamp.report.comparison import predictors
from stamp.report.wording import MINUS
from stamp.stats.correlations.partial_correlation import partial_spearman

MODELS = [f"m{k}" for k in range(6)]
# corrected partial with its ends, p after Holm, and the difference of regrets at twelve
PREDICTORS: dict[str, tuple[tuple[float, float, float], float | None, tuple[float, float]]] = {
    "stamp": ((0.3, 0.1, 0.5), 0.9, (-0.02, -0.01)),
    "entropy": ((0.4, 0.2, 0.6), 0.01, (0.01, 0.02)),
    "doc": ((0.4, 0.2, 0.6), 0.2, (-0.01, 0.01)),
    "ece": ((-0.4, -0.6, -0.2), 0.01, (-0.01, 0.01)),
}


def predictor_rows(outcome: str) -> list[dict[str, Any]]:
    common = {"models": "declared", "outcome": outcome, "title": "Mean of targets", "n": 6}
    rows = [
        {**common, **predictors.about(name), "common": True, "oriented": 0.5}
        for name in ("source_metric", "source_matched")
    ]
    for name, ((value, low, high), p, _) in PREDICTORS.items():
        found = {"corrected": value, "corrected_low": low, "corrected_high": high}
        row = {**common, **predictors.about(name), "common": True, "oriented": 0.7}
        rows.append({**row, **found, "corrected_holm": p, "low": 0.1, "high": 0.9})
    return rows


def regret_rows(outcome: str) -> list[dict[str, Any]]:
    common = {"outcome": outcome, "title": "Mean of targets", "n": 6}
    rows = []
    for k in (5, 12):
        for name, (_, _, (low, high)) in PREDICTORS.items():
            ends = {"minus_matched": 0.0, "minus_matched_low": low, "minus_matched_high": high}
            own = {**common, **predictors.about(name), "k": k, "regret": k / 1000, "low": 0.001}
            rows.append({**own, "high": 0.02, **ends})
        rows.append({**common, "predictor": "random", "name": "Random choice", "k": k})
        rows[-1]["regret"] = 0.123
    return rows


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The tables of a finished run of the embedded digits."""
    own = tmp_path / "digits"
    names = ("elsewhere/uci", "mean")
    rng = np.random.default_rng(0)
    board = pl.DataFrame(
        {
            "model": MODELS,
            "excluded": pl.Series([None] * 5 + ["T above 3"], dtype=pl.String),
            "degenerate": False,
            "parameters": range(6),
        }
    )
    tidy = pl.DataFrame(
        [
            {"model": key, "outcome": name, "value": float(rng.random())}
            for name in ("source", "source:mean", *names)
            for key in MODELS
        ]
    )
    write_table(own / "statistics" / "scores.parquet", board, {"study": "digits"})
    write_table(own / "statistics" / "outcomes.parquet", tidy, {"study": "digits"})
    every = [row for name in names for row in predictor_rows(name)]
    write_table(own / "analyses" / "baselines.csv", frame(every, baselines.TABLE), {})
    lacking = [
        {"model": key, "metric": "ece", "name": "ECE", "value": None if key == "m0" else 0.1}
        for key in MODELS
    ]
    write_table(own / "analyses" / "baselines_models.csv", frame(lacking, baselines.MODELS), {})
    lost = [row for name in names for row in regret_rows(name)]
    write_table(own / "analyses" / "regret.csv", frame(lost, regrets.TABLE), {})
    return tmp_path


def test_what_holds_follows_from_intervals_and_corrected_p_alone(folder: Path) -> None:
    text = evidence.page([folder], ["digits"], HEADING)
    assert "Primary: STAMP adds to the class-matched source metric" in text
    assert "Of 3 exploratory predictors 1 add to it: Entropy (0.40)." in text
    assert f"Of 3 exploratory predictors 1 are negative given it: ECE ({MINUS}0.40)." in text
    assert "1 of 4 pick better than the class-matched source metric at k = 12: STAMP." in text
    assert "1 of 4 pick worse than the class-matched source metric at k = 12: Entropy." in text
    assert "6 models" in text and "1 of them excluded" in text and "1 seed)" in text
    row = next(line for line in text.splitlines() if line.startswith("| DoC |"))
    assert "0.40 [0.20, 0.60]" in row and "0.012 [0.001, 0.020]" in row and "| no |" in row
    assert next(line for line in text.splitlines() if line.startswith("| Random")).count("0.123")


def test_the_models_that_are_not_compared_are_explained(folder: Path) -> None:
    text = evidence.page([folder], ["digits"], HEADING)
    assert "over the 6 models that have every common predictor" in text
    assert "some of the others lack ECE (1 models)" in text


def test_several_runs_stand_beside_each_other(folder: Path, tmp_path_factory: Any) -> None:
    other = tmp_path_factory.mktemp("other") / "large-1"
    shutil.copytree(folder, other)
    file = other / "digits" / "analyses" / "baselines.csv"
    changed = pl.read_csv(file, schema=baselines.TABLE).with_columns(
        corrected_low=pl.when(predictor="entropy").then(-0.2).otherwise("corrected_low")
    )
    write_table(file, changed, {})
    text = evidence.page([folder, other], ["digits"], HEADING)
    assert "2 seeds)" in text and "### What holds, large-1" in text
    table = text.partition("### Over the runs")[2].partition("### Every predictor")[0]
    rows = {line.split(" | ")[0].strip("| "): line for line in table.splitlines()}
    assert "| 1 of 2 |" in rows["Entropy"] and "| 2 of 2 |" in rows["STAMP"]
    assert f"0.40 [{MINUS}0.20, 0.60]" in rows["Entropy"] and "0.40 [0.20, 0.60]" in rows["Entropy"]
    assert text.count("### Every predictor") == 1


def test_an_interval_around_zero_shows_nothing(folder: Path) -> None:
    study = evidence._plan(["digits"])["digits"]
    found = evidence.read_evidence(study, folder / "digits")
    around = found.predictors.with_columns(corrected_low=pl.lit(-0.1))
    text = evidence.verdict(dataclasses.replace(found, predictors=around))
    assert "STAMP is not shown to add" in text and "0 add to it: none" in text


def test_the_plan_is_that_of_the_study_file() -> None:
    text = (evidence.ROOT / "config" / "studies" / "digits_large.yaml").read_text()
    found = dict(evidence.plan_of(text))
    assert {"question", "outcome", "predictors", "covariate", "comparisons"} <= set(found)
    assert all(f"{what}" in text and said in text for what, said in found.items())


def test_the_testbeds_section_is_kept_where_its_file_is_not_given() -> None:
    page = f"# Evidence\n\nold\n\n{HEADING}\n\n| a | b |\n"
    assert evidence.kept_section(page) == f"{HEADING}\n\n| a | b |"
    assert evidence.kept_section("# Evidence\n") == ""


def test_the_testbeds_numbers_are_those_of_its_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    quality = rng.normal(0.5, 0.5, size=40)

    def percent(noise: float) -> np.ndarray:
        return 100 * norm.cdf(quality + noise * rng.normal(size=40))

    columns = {"model": [f"net {k}" for k in range(40)], "val": percent(0.05)}
    columns |= {name: percent(0.05) for name in MATCHED.values() if name}
    columns |= {name: percent(0.2) for name in MATCHED}
    stress = {STRESS.replace("*", name): percent(0.2) for name in ("blur", "fog")}
    file = tmp_path / "robustness_top1s.csv"
    pl.DataFrame(columns | stress).write_csv(file)
    text = section_of_testbed(file)
    assert "40 distinct models" in text
    score = np.mean(list(stress.values()), axis=0)
    row = next(line for line in text.splitlines() if line.startswith("| ObjectNet"))
    y, z = columns["objectnet-1.0-beta"], columns["val-on-objectnet-classes"]
    assert f"| {partial_spearman(score, y, z).rho:.2f} [".replace("-", MINUS) in row
    slope, cut = np.polyfit(norm.ppf(z / 100), norm.ppf(y / 100), 1)
    assert f"slope {slope:.3f}" in text and f"intercept {cut:.3f}".replace("-", MINUS) in text
