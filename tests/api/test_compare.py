"""Several models from Python: ranks, correlations and regret, and the numbers of the tables."""

from __future__ import annotations

import contextlib
import io
import re

import made_up_study
import numpy as np
import polars as pl
import pytest
from project import ROOT
from scipy.stats import spearmanr

import stamp
from stamp.report.correlate import correlations
from stamp.report.outcomes import outcome_names, source_covariance, source_outcome, values

QUICK = stamp.Settings(resamples=200)


@pytest.fixture(scope="module")
def scored() -> dict[str, stamp.ScoredModel]:
    """Three models of falling quality, the worst first, and a constant one."""
    rng = np.random.default_rng(3)
    labels = np.repeat(np.arange(5), 20)
    noise = {"bad": 8.0, "constant": 0.0, "good": 0.5, "middle": 2.0}
    return {
        name: stamp.score(
            np.ones((100, 5))
            if name == "constant"
            else 4 * np.eye(5)[labels] + rng.normal(0, size, (100, 5)),
            stamp.Images(labels=labels),
            QUICK,
        )
        for name, size in noise.items()
    }


def test_models_are_ranked_with_intervals(scored: dict[str, stamp.ScoredModel]) -> None:
    found = stamp.rank(scored)
    assert found.models == ("good", "middle", "bad", "constant")
    assert np.array_equal(found.rank, [1, 2, 3, np.nan], equal_nan=True)
    assert (found.low[:3] <= found.rank[:3]).all() and (found.rank[:3] <= found.high[:3]).all()
    draws = [scored[name].score.draws for name in ("good", "middle")]
    assert found.outranks[0, 1] == np.mean(draws[0] > draws[1])


def test_scores_of_other_images_are_not_ranked(scored: dict[str, stamp.ScoredModel]) -> None:
    other = stamp.score(np.eye(4), stamp.Images(labels=[0, 0, 1, 1]), QUICK)
    with pytest.raises(stamp.UserError, match="'other'"):
        stamp.rank({**scored, "other": other})


def test_correlation_and_partials_are_those_of_the_workflows_table() -> None:
    study = made_up_study.study(count=14, excluded={})
    tidy, board, settings = study.outcomes, study.scores, study.settings
    table = correlations(board, tidy, settings, study.seed)
    models, outcome = board["model"].to_list(), outcome_names(tidy)[0]
    row = made_up_study.one(table, filter="declared", outcome=outcome, predictor="stamp")
    found = stamp.correlate(
        board["stamp"].to_numpy(),
        values(tidy, outcome, models),
        control=values(tidy, source_outcome(tidy, outcome), models),
        control_error=source_covariance(tidy, outcome, models),
        settings=stamp.CorrelationSettings(seed=study.seed, **settings),
    )
    assert found.partial is not None and found.corrected is not None
    assert found.correlation.rho == row["rho"]
    assert found.correlation.bootstrap_low == row["bootstrap_low"]
    assert found.partial.rho == row["partial_source"]
    assert found.corrected.corrected == row["partial_source_corrected"]
    assert found.corrected.low == row["partial_source_corrected_low"]
    assert np.isfinite(found.corrected.p)


def test_correlation_without_a_control_is_scipys() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 15))
    found = stamp.correlate(x, y, settings=stamp.CorrelationSettings(100, 100))
    assert found.correlation.rho == pytest.approx(spearmanr(x, y).statistic)
    assert found.partial is None and found.corrected is None
    with pytest.raises(stamp.UserError, match="control"):
        stamp.correlate(x, y, control_error=x)
    with pytest.raises(stamp.UserError, match=r"\(14,\)"):
        stamp.correlate(x, y, control=x[:14])


def test_regret_of_all_models_is_what_the_first_by_score_loses() -> None:
    outcomes = np.array([0.9, 0.7, 0.8, 0.6])
    found = stamp.regret([0.1, 0.9, 0.2, 0.3], outcomes, k=4, resampling=stamp.Resampling(50))
    assert found.regret[0, 0] == pytest.approx(0.2)
    assert found.random[0] == pytest.approx(0.9 - outcomes.mean())


def test_the_fitted_temperature_undoes_a_scaling() -> None:
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(3), 4000)
    labels = [rng.choice(3, p=row) for row in p]
    found = stamp.fit_temperature(2.5 * np.log(p), labels)
    assert found.value == pytest.approx(2.5, rel=0.1) and found.bound is None


def test_the_lines_of_the_page_print_what_it_shows() -> None:
    text = (ROOT / "docs" / "python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", text, re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for code, shown in blocks:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(code, names)
        assert said.getvalue() == shown
    assert pl.Series([code.count("\n") for code, _ in blocks]).max() <= 12
