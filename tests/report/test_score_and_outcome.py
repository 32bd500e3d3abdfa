"""Analyses of a score, an outcome and the source metric: against scipy, loops and closed forms."""

from __future__ import annotations

import itertools
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from analysis_job import check_from_files
from benchmarks.made_up import study as made_up
from figures_check import check_texts, points_of
from scipy.stats import norm, rankdata, spearmanr, t

from stamp.config.registries.analyses import ANALYSES
from stamp.report.analyses.alarm import table as alarm
from stamp.report.analyses.failures import table as failures
from stamp.report.analyses.leave_one_out import table as leave_one_out
from stamp.report.analyses.partials import table as partials
from stamp.report.analyses.power import table as power
from stamp.report.analyses.probit import table as probit
from stamp.report.analyses.residuals import table as residuals
from stamp.report.analysis import NO_TARGETS, AnalysisData
from stamp.report.comparison.paired import Paired, pairings
from stamp.report.outcomes import source_covariance, values
from stamp.stats.correlations.correlation import asymptotic_p
from stamp.stats.correlations.noisy_control import SimulationSettings, partial_given_noisy_control
from stamp.stats.correlations.partial_correlation import partial_spearman

MODULES = {
    "alarm": alarm,
    "failures": failures,
    "leave_one_out": leave_one_out,
    "partials": partials,
    "power": power,
    "probit": probit,
    "residuals": residuals,
}
DRAWN = ("alarm", "probit", "residuals")


def study(models: int = 14, targets: int = 2, **changes: Any) -> AnalysisData:
    """A made-up study with few draws; changes of ``scores`` are of its columns."""
    data = made_up(models, targets, permutations=300, resamples=200, seed=3)
    columns = changes.pop("columns", {})
    return replace(data, scores=data.scores.with_columns(**columns), **changes)


def one(table: pl.DataFrame, **where: Any) -> dict[str, Any]:
    rows = table.filter([pl.col(name) == wanted for name, wanted in where.items()])
    assert len(rows) == 1, rows
    return rows.row(0, named=True)


def sides(
    data: AnalysisData, outcome: str = "target_2"
) -> tuple[list[str], np.ndarray, np.ndarray, Any]:
    """Keys, score, outcome and source metric of the models that the study counts."""
    board = data.scores.filter(~pl.col("degenerate") & pl.col("excluded").is_null())
    keys = board["model"].to_list()
    truth, source = (values(data.outcomes, name, keys) for name in (outcome, "source"))
    return keys, board["stamp"].to_numpy(), truth, source


def without_outcomes(data: AnalysisData) -> AnalysisData:
    return replace(data, outcomes=data.outcomes.filter(pl.col("outcome") == "source"))


DECLARED = {"models": "declared", "outcome": "target_2", "score": "STAMP"}


# Pairings ----------------------------------------------------------------------------------------


def test_every_filter_outcome_and_score_is_paired_once_in_the_order_of_the_models() -> None:
    data = study()
    matched = pl.Series("matched:target_1", np.arange(14.0))
    data = replace(data, scores=data.scores.with_columns(matched))
    found = {(p.models, p.outcome, p.score): p for p in pairings(data)}
    names = ("target_1", "target_2", "mean")
    plain = set(itertools.product(("all", "declared", "uncontaminated"), names, ["STAMP"]))
    of_matched = {(which, "target_1", "class-matched STAMP") for which, _, _ in plain}
    assert set(found) == plain | of_matched
    keys, x, y, source = sides(data)
    mine = found["declared", "target_2", "STAMP"]
    assert mine.keys == keys
    for ours, theirs in ((mine.x, x), (mine.y, y), (mine.source, source)):
        assert np.array_equal(ours, theirs)
    kept = [int(key[-2:]) for key in found["declared", "target_1", "class-matched STAMP"].keys]
    assert found["declared", "target_1", "class-matched STAMP"].x.tolist() == kept
    assert 6 not in [int(key[-2:]) for key in found["uncontaminated", "target_1", "STAMP"].keys]
    assert (mine.n_source, mine.n_target) == (2000, 2000)


# Partial correlations ----------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_residuals_and_the_inverse_matrix_agree(k: int, seed: int) -> None:
    rng = np.random.default_rng([seed, k])
    common = rng.normal(size=30)
    rows = np.round(0.8 * common + rng.normal(size=(k + 2, 30)), 1)  # with ties
    x, y, given = rows[0], rows[1], rows[2:]
    inverse = np.linalg.inv(spearmanr(rows.T)[0])
    expected = -inverse[0, 1] / np.sqrt(inverse[0, 0] * inverse[1, 1])
    assert partial_spearman(x, y, given, permutations=10).rho == pytest.approx(expected)


def test_the_partial_given_one_control_is_kendall_s_and_its_p_has_n_minus_3_degrees() -> None:
    data = study()
    _, x, y, z = sides(data)
    xy, xz, yz = spearmanr(x, y)[0], spearmanr(x, z)[0], spearmanr(y, z)[0]
    expected = (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))
    row = one(partials.table(data), **DECLARED, controls="source metric")
    assert row["partial"] == pytest.approx(expected)
    assert (row["k"], row["n"], row["df"]) == (1, 12, 9)
    assert row["rho"] == pytest.approx(xy)
    statistic = abs(expected) * np.sqrt(9 / (1 - expected**2))
    assert row["p_asymptotic"] == pytest.approx(2 * t.sf(statistic, 9))
    reach = norm.ppf(0.975) * np.sqrt((1 + expected**2 / 2) / (12 - 1 - 3))
    ends = np.tanh(np.arctanh(expected) + np.array([-reach, reach]))
    assert [row["low"], row["high"]] == pytest.approx(list(ends))


def test_degrees_of_freedom_fall_with_every_control_as_the_paper_s_should_have() -> None:
    assert float(asymptotic_p(0.545, 44, controls=1)) == pytest.approx(1.6e-4, abs=0.05e-4)
    assert float(asymptotic_p(0.536, 43, controls=2)) == pytest.approx(3.0e-4, abs=0.05e-4)
    rows = partials.table(study()).filter(models="declared", outcome="target_2", score="STAMP")
    assert dict(rows.select("controls", "df").iter_rows()) == {
        "source metric": 9,
        "parameters": 9,
        "temperature": 9,
        "source metric + parameters": 8,
        "source metric + temperature": 8,
        "source metric + parameters + temperature": 7,
    }


def test_a_logarithm_of_a_control_changes_nothing_and_a_missing_one_takes_its_model_out() -> None:
    data = study()
    logs = study(columns={"parameters": pl.col("parameters").log()})
    columns = ("partial", "p", "n")
    where = {**DECLARED, "controls": "source metric + parameters"}
    rows = [one(partials.table(each), **where) for each in (data, logs)]
    assert [rows[0][name] for name in columns] == [rows[1][name] for name in columns]
    gap = pl.when(pl.col("model") == "model_05").then(None).otherwise(pl.col("parameters"))
    holed = one(partials.table(study(columns={"parameters": gap})), **where)
    assert (holed["n"], holed["df"]) == (11, 7)


def test_a_control_that_a_study_does_not_have_is_not_listed_and_a_user_s_own_is() -> None:
    own = pl.Series("control:depth", np.arange(14) % 5)
    data = study(columns={"parameters": pl.lit(None, dtype=pl.Float64), "control:depth": own})
    names = set(partials.table(data).filter(score="STAMP")["controls"])
    assert "depth" in names and "source metric + depth" in names
    assert not any("parameters" in name for name in names)


def test_the_question_is_turned_round_too() -> None:
    data = study()
    _, x, y, z = sides(data)
    row = one(
        partials.table(data),
        models="declared",
        outcome="target_2",
        score="source metric",
        controls="STAMP",
    )
    zy, zx, xy = spearmanr(z, y)[0], spearmanr(z, x)[0], spearmanr(x, y)[0]
    expected = (zy - zx * xy) / np.sqrt((1 - zx**2) * (1 - xy**2))
    assert row["partial"] == pytest.approx(expected)
    assert row["corrected"] is None  # the score's error is not in question


def test_the_partial_given_the_source_metric_alone_is_corrected_for_its_error() -> None:
    data = study()
    keys, x, y, z = sides(data)
    errors = source_covariance(data.outcomes, "target_2", keys)
    expected = partial_given_noisy_control(
        x, y, z, errors, SimulationSettings(seed=data.seed, level=data.settings["level"])
    )
    rows = partials.table(data).filter(**DECLARED)
    row = one(rows, controls="source metric")
    found = [row[name] for name in ("corrected", "corrected_low", "corrected_high", "corrected_p")]
    assert found == pytest.approx([expected.corrected, expected.low, expected.high, expected.p])
    assert row["error"] == pytest.approx(expected.error) and row["reliability"] < 1
    assert rows.filter(controls="parameters")["corrected"][0] is None


def test_a_control_that_orders_the_models_as_the_score_does_leaves_nothing() -> None:
    data = study(columns={"parameters": pl.col("raw").rank() * 1000})
    row = one(partials.table(data), **DECLARED, controls="parameters")
    assert row["partial"] is None
    assert row["reason"] == "the ranks of the score are determined by the controls"


# Leave one out -----------------------------------------------------------------------------------


def test_rho_without_each_model_is_that_of_the_others_and_the_furthest_is_named() -> None:
    data = study()
    keys, x, y, _ = sides(data)
    each = {
        key: spearmanr(np.delete(x, place), np.delete(y, place))[0]
        for place, key in enumerate(keys)
    }
    whole = spearmanr(x, y)[0]
    row = one(leave_one_out.table(data), **DECLARED)
    worst = max(each, key=lambda key: abs(each[key] - whole))
    assert (row["most_influential"], row["label"]) == (worst, data.models[worst]["label"])
    assert row["rho_without"] == pytest.approx(each[worst])
    least = max(2 * t.sf(abs(r) * np.sqrt(9 / (1 - r**2)), 9) for r in each.values())
    assert row["largest_p_asymptotic"] == pytest.approx(least)
    models = leave_one_out.models(data).filter(**DECLARED)
    found = dict(models.select("model", "rho_without").iter_rows())
    assert found == pytest.approx(each)
    assert models["change"].to_numpy() == pytest.approx(np.array(list(each.values())) - whole)


def test_four_models_are_too_few_to_leave_one_out() -> None:
    data = study(models=6)
    row = one(leave_one_out.table(data), **DECLARED)
    assert row["rho"] is None and row["reason"] == "4 models are too few: at least 5 are needed"
    assert "4 models are too few" in leave_one_out.sentence(leave_one_out.table(data))


# Failures ----------------------------------------------------------------------------------------


def test_the_models_whose_ranks_are_furthest_apart_come_first() -> None:
    data = study()
    keys, x, y, z = sides(data)
    gaps = rankdata(-y) - rankdata(-x)
    rows = failures.table(data).filter(**DECLARED)
    assert rows["place"].to_list() == [1, 2, 3, 4, 5]
    assert rows["difference"].abs().to_list() == sorted(np.abs(gaps), reverse=True)[:5]
    for row in rows.iter_rows(named=True):
        at = keys.index(row["model"])
        assert row["rank_score"] == rankdata(-x)[at] and row["rank_outcome"] == rankdata(-y)[at]
        assert row["rank_source"] == rankdata(-z)[at]
        assert row["far"] == (abs(gaps[at]) >= 12 / 3)
    assert rows["models_far"][0] == (np.abs(gaps) >= 4).sum()
    saturated = [key for key in keys if int(key[-2:]) % 9 == 7]
    flagged = np.isin(keys, [*saturated, "model_06"])
    assert rows["flagged"][0] == flagged.sum() == 2
    assert rows["flagged_mean"][0] == pytest.approx(np.abs(gaps[flagged]).mean())
    assert rows["others_mean"][0] == pytest.approx(np.abs(gaps[~flagged]).mean())
    assert len(failures.models(data).filter(**DECLARED)) == 12


def test_a_model_that_promises_what_it_does_not_keep_has_a_positive_difference() -> None:
    raised = pl.when(pl.col("model") == "model_08").then(2.0)
    data = study(columns={"stamp": raised.otherwise(pl.col("stamp"))})
    low = (pl.col("model") == "model_08") & (pl.col("outcome") == "target_2")
    data = replace(
        data,
        outcomes=data.outcomes.with_columns(value=pl.when(low).then(0.0).otherwise("value")),
    )
    row = one(failures.table(data), **DECLARED, place=1)
    assert (row["model"], row["difference"], row["far"]) == ("model_08", 11, True)
    assert "rank 1 by score, 12 by outcome; no flag" in failures.sentence(failures.table(data))


def test_flags_say_everything_that_was_known_without_target_data() -> None:
    row: dict[str, Any] = {"saturated": True, "contaminated": "far", "excluded": None}
    row |= {"excluded_temperature": "temperature 9 is above 3", "temperature_bound": "upper"}
    assert failures.flags(row) == (
        "saturated; temperature at its upper bound; trained or selected on far; "
        "by the other rule: temperature 9 is above 3"
    )
    assert failures.flags({"excluded": "near chance", "excluded_chance": "near chance"}) == (
        "excluded: near chance"
    )
    assert failures.flags({"excluded": None}) is None


# Alarm -------------------------------------------------------------------------------------------


def f1_of(alarmed: np.ndarray, fails: np.ndarray) -> float:
    hits = (alarmed & fails).sum()
    return 2 * hits / (alarmed.sum() + fails.sum())


@pytest.mark.parametrize("rule", [alarm.F1, alarm.PRECISE])
@pytest.mark.parametrize("ties", [False, True])
def test_each_split_calibrates_and_tests_as_a_plain_loop_does(rule: str, ties: bool) -> None:
    rng = np.random.default_rng(8)
    score = rng.normal(size=23)
    score = np.round(score, 0) if ties else score
    fails = score + rng.normal(0, 0.8, 23) < 0
    chosen = alarm.calibration_splits(fails, 60, seed=1)
    found = alarm.tested(score, fails, chosen, rule)
    for split, own in enumerate(chosen):
        ordered = np.unique(score[own])
        candidates = [*((ordered[:-1] + ordered[1:]) / 2), np.inf]
        if rule == alarm.F1:
            rated = [f1_of(score[own] < at, fails[own]) for at in candidates]
            best = candidates[int(np.argmax(rated))]
        else:
            clean = [at for at in candidates if fails[own][score[own] < at].all()]
            best = max(clean, default=-np.inf)
        alarmed, truth = score[~own] < best, fails[~own]
        assert found.thresholds[split] == pytest.approx(best)
        assert found.f1[split] == pytest.approx(f1_of(alarmed, truth))
        assert found.recall[split] == pytest.approx((alarmed & truth).sum() / truth.sum())
        assert found.always[split] == pytest.approx(f1_of(np.ones(len(truth), bool), truth))
        assert found.silent[split] == (not alarmed.any())
        if alarmed.any():
            assert found.precision[split] == pytest.approx(truth[alarmed].mean())
        else:
            assert np.isnan(found.precision[split])


def test_splits_keep_the_share_of_failing_models_and_both_kinds_on_both_sides() -> None:
    fails = np.arange(44) < 14
    chosen = alarm.calibration_splits(fails, 500, seed=0)
    assert (chosen[:, fails].sum(axis=1) == 5).all()  # round(0.35 * 14)
    assert (chosen[:, ~fails].sum(axis=1) == 10).all()  # round(0.35 * 30), to even
    assert np.abs(chosen.mean(axis=0) - np.where(fails, 5 / 14, 1 / 3)).max() < 0.1
    few = alarm.calibration_splits(np.arange(9) < 2, 50, seed=0)
    assert (few[:, :2].sum(axis=1) == 1).all()
    assert not np.array_equal(chosen, alarm.calibration_splits(fails, 500, seed=1))


def test_a_score_that_separates_beats_always_and_one_of_noise_does_not() -> None:
    rng = np.random.default_rng(0)
    fails = np.arange(40) < 12
    chosen = alarm.calibration_splits(fails, 400, seed=0)
    apart = alarm.tested(np.where(fails, 0.0, 1.0) + 0.01 * rng.random(40), fails, chosen, alarm.F1)
    assert (apart.f1 == 1).all() and (apart.precision == 1).all()
    noise = alarm.tested(rng.normal(size=40), fails, chosen, alarm.F1)
    assert noise.f1.mean() < noise.always.mean()


def test_delta_is_the_median_or_the_study_s_or_that_of_the_outcome() -> None:
    data = study()
    _, _, y, _ = sides(data)
    plain = one(alarm.table(data), **DECLARED, delta_is="median", predictor="STAMP", rule=alarm.F1)
    assert plain["delta"] == pytest.approx(np.median(y)) and plain["failing"] == 6
    assert (plain["calibrating"], plain["testing"], plain["splits"]) == (4, 8, 1000)
    wanted = float(np.sort(y)[3])
    for given in (wanted, {"target_2": wanted}):
        table = alarm.table(replace(data, options={"delta": given}))
        row = one(table, **DECLARED, delta_is="study", predictor="STAMP", rule=alarm.F1)
        assert (row["delta"], row["failing"]) == (wanted, 3)
        if isinstance(given, dict):
            other = table.filter(models="declared", outcome="target_1", delta_is="median")
            assert len(other) == 4
    nobody = replace(data, options={"delta": 0.0})
    row = one(alarm.table(nobody), **DECLARED, delta_is="study")
    assert row["f1"] is None and row["reason"].startswith("0 of 12 models fail")


def test_the_threshold_is_that_of_the_median_split_and_none_where_that_alarms_for_all() -> None:
    rng = np.random.default_rng(4)
    fails = np.arange(30) < 24
    score = np.where(fails, 0.0, 1.0) + rng.normal(0, 2, 30)  # mostly best to alarm for all
    chosen = alarm.calibration_splits(fails, 301, seed=0)
    found = alarm.tested(score, fails, chosen, alarm.F1)
    assert np.isinf(found.thresholds).mean() > 0.5 > np.isfinite(found.thresholds).mean() > 0
    assert np.isnan(alarm.summary(found, 0.95)["threshold"])
    sound = alarm.tested(-np.arange(30.0), ~fails, chosen, alarm.F1)
    assert alarm.summary(sound, 0.95)["threshold"] == np.median(sound.thresholds)


def test_a_sweep_s_delta_is_named_by_its_quantile_and_not_by_how_many_fail() -> None:
    y = np.array([0.5] * 6 + [0.7, 0.8, 0.9, 1.0])
    found = {name: float((y < delta).mean()) for delta, name in alarm.deltas(y, "far", 0.75)}
    assert found["50 % quantile"] == 0  # six of ten are tied there, and none is below
    assert found["90 % quantile"] == 0.9


def test_the_alarm_says_that_it_uses_target_labels_and_who_was_alarmed() -> None:
    data = study(models=44)
    table = alarm.table(data)
    assert "whose target labels it uses" in alarm.sentence(table)
    assert set(table["uses"]) == {"calibration models' target labels"}
    models = alarm.models(data).filter(**DECLARED)
    fails = models["fails"].to_numpy()
    shares = models["alarmed"].to_numpy()
    assert fails.sum() == 21 and ((shares >= 0) & (shares <= 1)).all()
    assert shares[fails].mean() > shares[~fails].mean()


# Lines and residuals -----------------------------------------------------------------------------


def probits(data: AnalysisData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    _, x, y, z = sides(data)
    ends = (0.5 / 2000, 1 - 0.5 / 2000)
    return x, norm.ppf(np.clip(y, *ends)), norm.ppf(np.clip(z, *ends))


def left_out(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Residuals from the line through all others, refitted for each."""
    found = []
    for at in range(len(x)):
        line = np.polyfit(np.delete(x, at), np.delete(y, at), 1)
        found.append(y[at] - np.polyval(line, x[at]))
    return np.array(found)


def test_both_lines_are_least_squares_of_the_probit_of_the_outcome() -> None:
    data = study()
    x, y, z = probits(data)
    row = one(probit.table(data), **DECLARED)
    assert row["n"] == 12
    for name, of in (("score", x), ("source", z)):
        slope, intercept = np.polyfit(of, y, 1)
        assert row[f"slope_{name}"] == pytest.approx(slope)
        assert row[f"intercept_{name}"] == pytest.approx(intercept)
        assert row[f"r_{name}"] == pytest.approx(np.corrcoef(of, y)[0, 1])
        errors = np.abs(norm.cdf(y - left_out(of, y)) - norm.cdf(y))
        assert row[f"loo_error_{name}"] == pytest.approx(errors.mean())
        models = probit.models(data).filter(**DECLARED)
        expected = y - slope * of - intercept
        assert models[f"residual_{name}"].to_numpy() == pytest.approx(expected)
        assert models[f"loo_residual_{name}"].to_numpy() == pytest.approx(left_out(of, y))
    assert row["r_between"] == pytest.approx(np.corrcoef(x, z)[0, 1])


def test_the_difference_of_the_two_is_tested_as_steiger_and_williams_write_it() -> None:
    row = one(probit.table(study()), **DECLARED)
    a, b, c, n = row["r_score"], row["r_source"], row["r_between"], row["n"]
    assert row["difference"] == pytest.approx(a - b)
    m = (a + b) / 2
    psi = c * (1 - 2 * m**2) - 0.5 * m**2 * (1 - 2 * m**2 - c**2)
    z = (np.arctanh(a) - np.arctanh(b)) * np.sqrt((n - 3) / (2 - 2 * psi / (1 - m**2) ** 2))
    assert (row["steiger_z"], row["steiger_p"]) == pytest.approx((z, 2 * norm.sf(abs(z))))
    det = np.linalg.det([[1, a, b], [a, 1, c], [b, c, 1]])
    under = 2 * det * (n - 1) / (n - 3) + m**2 * (1 - c) ** 3
    statistic = (a - b) * np.sqrt((n - 1) * (1 + c) / under)
    assert row["williams_t"] == pytest.approx(statistic)
    assert row["williams_p"] == pytest.approx(2 * t.sf(abs(statistic), n - 3))
    assert row["low"] < row["tost_low"] < row["difference"] < row["tost_high"] < row["high"]
    within = max(abs(row["tost_low"]), abs(row["tost_high"]))
    assert row["equivalent_within"] == pytest.approx(within)
    assert row["equivalent"] == (within < row["margin"])


def test_the_margin_of_equivalence_is_the_study_s() -> None:
    data = study()
    plain = one(probit.table(data), **DECLARED)
    assert plain["margin"] == 0.1 == one(probit.table(study(options={})), **DECLARED)["margin"]
    for margin in (plain["equivalent_within"] - 0.001, plain["equivalent_within"] + 0.001):
        given = replace(data, options={"equivalence": margin})
        row = one(probit.table(given), **DECLARED)
        assert row["margin"] == margin and row["equivalent"] == (margin > row["equivalent_within"])
        assert row["equivalent"] == (row["tost_p"] < 0.05)
        assert f"within a margin of {margin:g}" in probit.sentence(probit.table(given))


def test_without_a_number_of_images_shares_of_0_and_1_are_left_out_and_others_are_refused() -> None:
    data = study()
    whole = (pl.col("outcome") == "target_2") & (pl.col("model") == "model_09")
    edge = data.outcomes.with_columns(value=pl.when(whole).then(1.0).otherwise("value"))
    known = one(probit.table(replace(data, outcomes=edge)), **DECLARED)
    unknown = edge.with_columns(n=pl.lit(None, dtype=pl.Int64))
    assert known["n"] == 12
    assert one(probit.table(replace(data, outcomes=unknown)), **DECLARED)["n"] == 11
    percent = data.outcomes.with_columns(value=100 * pl.col("value"))
    for module in (probit, residuals):
        table = module.table(replace(data, outcomes=percent))
        assert one(table, **DECLARED)["reason"] == "a value outside 0 to 1 has no probit"
        assert "outside 0 to 1" in module.sentence(table)


def test_residuals_are_from_the_line_through_all_other_models() -> None:
    data = study()
    x, y, z = probits(data)
    expected = left_out(z, y)
    row = one(residuals.table(data), **DECLARED)
    assert row["rho"] == pytest.approx(spearmanr(x, expected)[0])
    assert row["pearson"] == pytest.approx(np.corrcoef(x, expected)[0, 1])
    inside = y - np.polyval(np.polyfit(z, y, 1), z)
    assert row["rho_in_sample"] == pytest.approx(spearmanr(x, inside)[0])
    models = residuals.models(data).filter(**DECLARED)
    assert models["residual"].to_numpy() == pytest.approx(expected)
    assert models["in_sample"].to_numpy() == pytest.approx(inside)


def test_the_bootstrap_of_residuals_fits_the_line_anew_in_every_resample() -> None:
    rng = np.random.default_rng(4)
    score, source, outcome = rng.normal(size=(3, 9))
    found = residuals.refitted(score, source, outcome, 40, seed=2)
    drawn = np.random.default_rng([2, 2]).integers(9, size=(40, 9))
    for rho, own in zip(found, drawn, strict=True):
        x, y = source[own], outcome[own]
        design = np.column_stack([np.ones(9), x])
        hat = design @ np.linalg.pinv(design)
        left = np.round((y - hat @ y) / (1 - np.diag(hat)), 9)  # equal for a model drawn twice
        assert rho == pytest.approx(spearmanr(score[own], left)[0])


def test_a_score_that_knows_what_the_source_leaves_over_is_found_and_one_that_does_not_is_not() -> (
    None
):
    rng = np.random.default_rng(1)
    source, more = rng.normal(size=(2, 60))
    outcome = source + more

    def row(score: np.ndarray) -> dict[str, Any]:
        pair = Paired(
            *("declared", "o", "O", "STAMP"),
            keys=[str(at) for at in range(60)],
            x=score,
            y=norm.cdf(outcome),
            source=norm.cdf(source),
            source_errors=np.full((60, 60), np.nan),
            parameters=np.full(60, np.nan),
            temperature=np.full(60, np.nan),
            others={},
            n_source=None,
            n_target=None,
        )
        data = study()
        return residuals._row(data, probit.lines(pair))

    knowing, blind = row(more + 0.1 * rng.normal(size=60)), row(source)
    assert knowing["rho"] > 0.9 and knowing["p"] < 0.01
    assert blind["p"] > 0.05


# Power -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "expected"),
    [(27, {0.5: 0.758, 0.7: 0.985, 0.8: 0.999, 0.9: 1.0}), (44, {0.5: 0.932, 0.7: 1.0})],
)
def test_power_at_the_paper_s_numbers_of_models_is_that_of_a_gaussian_copula(
    n: int, expected: dict[float, float]
) -> None:
    found = power.design(n, seed=0)
    for rho, reference in expected.items():
        tolerance = 4 * np.sqrt(reference * (1 - reference) / 10_000) + 0.001
        assert found.power[rho] == pytest.approx(reference, abs=tolerance)
        assert found.by_t[rho] == pytest.approx(reference, abs=tolerance)
    assert found.size == pytest.approx(0.05, abs=0.008)


def test_the_table_of_power_has_each_outcome_s_own_number_of_models() -> None:
    data = study()
    gap = (pl.col("outcome") == "target_1") & (pl.col("model") == "model_09")
    holed = data.outcomes.with_columns(value=pl.when(gap).then(None).otherwise("value"))
    table = power.table(replace(data, outcomes=holed))
    rows = table.filter(models="declared", true_rho=0.7)
    assert dict(rows.select("outcome", "n").iter_rows()) == {
        "target_1": 11,
        "target_2": 12,
        "mean": 12,
    }
    keys, x, y, _ = sides(data)
    observed = rows.filter(outcome="target_2")
    assert observed["rho"][0] == pytest.approx(spearmanr(x, y)[0])
    assert (table["size"] < table["power"]).all()
    assert len(keys) == len(power.models(data).filter(models="declared", outcome="target_2"))


def test_the_detectable_rho_is_where_the_curve_crosses() -> None:
    curve = np.array([one / 19 for one in range(20)])
    assert power.crossing(curve, 0.5) == pytest.approx(0.95 * 0.5)
    assert power.crossing(curve, 0.0) == 0.0
    assert power.crossing(0.1 * curve, 0.5) is None


# All of them -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODULES)
def test_a_study_without_targets_gets_one_row_with_the_reason(name: str) -> None:
    module, data = MODULES[name], without_outcomes(study())
    table = module.table(data)
    assert table.to_dicts() == [{**dict.fromkeys(module.TABLE), "reason": NO_TARGETS}]
    assert NO_TARGETS in module.sentence(table)
    if name in DRAWN:
        figure = import_module(f"stamp.report.analyses.{name}.figure").draw(
            table, module.models(data), data.texts
        )
        check_texts(figure)
        shown = " ".join(text.get_text() for axes in figure.axes for text in axes.texts)
        assert "there is no outcome" in shown


def spoken_numbers(name: str, table: pl.DataFrame) -> list[str]:
    """Numbers of the table that its sentence must print."""
    rows = table.filter(models="declared", outcome="target_2")
    if "score" in table.columns:
        rows = rows.filter(score="STAMP")
    columns = {
        "leave_one_out": ("rho", "rho_without", "largest_p_asymptotic"),
        "partials": ("rho", "partial", "corrected"),
        "power": ("critical", "detectable"),
        "probit": ("r_score", "r_source", "difference", "low", "high"),
        "residuals": ("rho", "low", "high"),
    }.get(name, ())
    first = rows.row(0, named=True)
    found = [f"{first[column]:.3f}".replace("-", "\u2212") for column in columns]
    if name == "alarm":
        found = [f"{first[column]:.2f}" for column in ("recall", "f1", "always_f1")]
    if name == "failures":
        found = [f"{first['models_far']} of {first['n']} models", first["label"]]
    return found


@pytest.mark.parametrize("name", MODULES)
def test_sentences_print_numbers_of_the_table_under_the_declared_rule(name: str) -> None:
    table = MODULES[name].table(study())
    text = MODULES[name].sentence(table)
    for found in spoken_numbers(name, table):
        assert found in text
    assert text.endswith(".") and "None" not in text and "nan" not in text


@pytest.mark.parametrize("name", MODULES)
def test_tables_are_written_and_drawn_from_files_as_they_were_computed(
    name: str, tmp_path: Path
) -> None:
    assert ANALYSES[name].inputs == ()
    check_from_files(name, study(), tmp_path, {})


# Figures -----------------------------------------------------------------------------------------


def by_gid(axes: Any, gid: str) -> Any:
    return next(line for line in [*axes.lines, *axes.collections] if line.get_gid() == gid)


def frame_of(figure: Any, outcome: str) -> Any:
    return next(axes for axes in figure.axes if axes.get_label() == f"outcome:{outcome}")


def drawn(name: str, data: AnalysisData) -> tuple[pl.DataFrame, pl.DataFrame, Any]:
    module = MODULES[name]
    table, models = module.table(data), module.models(data)
    return (
        table,
        models,
        import_module(f"stamp.report.analyses.{name}.figure").draw(table, models, data.texts),
    )


def test_the_figure_of_the_alarm_shows_the_table_s_means_over_delta() -> None:
    table, _, figure = drawn("alarm", study())
    axes = frame_of(figure, "target_2")
    rows = table.filter(**DECLARED, rule=alarm.F1).sort("delta")
    for gid, predictor, column in (
        ("stamp", "STAMP", "f1"),
        ("always", "STAMP", "always_f1"),
        ("source", alarm.SOURCE_METRIC, "f1"),
    ):
        own = rows.filter(predictor=predictor)
        assert list(by_gid(axes, gid).get_xdata()) == own["delta"].to_list()
        assert list(by_gid(axes, gid).get_ydata()) == own[column].to_list()


def test_the_figure_of_lines_shows_every_model_and_the_line_of_the_source_metric() -> None:
    table, models, figure = drawn("probit", study())
    axes, row = frame_of(figure, "target_2"), one(table, **DECLARED)
    own = models.filter(**DECLARED)
    points = by_gid(axes, "points")
    expected = own.select("probit_source", "probit_outcome").to_numpy()
    assert np.asarray(points.get_offsets()) == pytest.approx(expected)
    assert points.get_array().tolist() == own["value_score"].rank().to_list()
    ends = by_gid(axes, "line")
    fit = row["slope_source"] * np.array(ends.get_xdata()) + row["intercept_source"]
    assert ends.get_ydata() == pytest.approx(fit)
    words = [label.get_text() for label in axes.get_xticklabels()]
    places = [norm.cdf(tick) for tick in axes.get_xticks()]
    assert [float(word) for word in words] == pytest.approx(places)


def test_the_figure_of_residuals_shows_every_model_and_the_matched_score_where_asked_for() -> None:
    data = study()
    matched = pl.Series("matched:target_1", np.linspace(0, 1, 14))
    data = replace(
        data,
        scores=data.scores.with_columns(matched),
        texts={**data.texts, "matched": ["target_1"]},
    )
    _, models, figure = drawn("residuals", data)
    for outcome, score in (("target_2", "STAMP"), ("target_1", "class-matched STAMP")):
        own = models.filter(models="declared", outcome=outcome, score=score)
        axes = frame_of(figure, outcome)
        for point in own.iter_rows(named=True):
            mark = points_of(axes)[point["model"]]
            assert (mark.x, mark.y) == (point["value_score"], point["residual"])
