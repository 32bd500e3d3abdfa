"""From single models to a study: outcomes, scoreboard, correlations, leaderboard."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm, spearmanr

from stamp.report import correlate as agreement
from stamp.report import flags, leaderboard, main_table, outcomes, scoreboard
from stamp.stats.correlations.correlation_summary import CorrelationSettings
from stamp.stats.correlations.noisy_control import partial_given_noisy_control
from stamp.stats.correlations.partial_correlation import partial_spearman

MODELS = [f"m{k}" for k in range(8)]
SETTINGS = {"permutations": 300, "resamples": 300, "level": 0.95}


def evaluation(model: str, view: str, values: dict[str, float | None]) -> list[dict]:
    metric = {"class": "macro", "metric": "auroc", "se": 0.01, "n": 100}
    rows = [
        {"model": model, "view": view, "domain": name, "value": value, **metric}
        for name, value in values.items()
    ]
    noise = {**rows[0], "class": "Edema", "value": 0.123}
    return [*rows, noise]


def tidy() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    rows = []
    for number, model in enumerate(MODELS):
        quality = number / 10
        rows += evaluation(model, "source", {"all": quality + 0.02 * rng.random()})
        shifted = {"all": 0.5, "blur-1": quality, "blur-2": quality + 0.2, "uci": 0.9 - quality}
        rows += evaluation(model, "shifts", shifted)
    return outcomes.outcomes(pl.DataFrame(rows), {"shifts": "kind"})


def score_rows(model: str, value: float | None, raw: float) -> pl.DataFrame:
    common = dict.fromkeys(scoreboard.PARTS, 0.0) | {
        "model": model,
        "parameters": 10,
        "degenerate": value is None,
        "saturated": False,
        "leakage": model == "m1",
        "raw": raw,
        "temperature": 1.0,
        "estimator": "exact",
        "sampled_stamp": raw,
        "sampled_eta2": raw,
        "missing": None,
        "hard": False,
        "groups": 100,
        "n_semantic": 200,
        "fingerprint": [raw, 0.0],
    }
    kinds = [("temporal", False, value), ("labeled", False, raw / 2), ("temporal", True, raw)]
    return pl.DataFrame(
        [{**common, "kind": k, "scaled": s, "stamp": v} for k, s, v in kinds],
        infer_schema_length=None,
    )


def at_home(value: float, positives: tuple[int, ...] = (), se: float = 0.02) -> pl.DataFrame:
    """A model's evaluation on the source: AUROC, or accuracy where classes have sizes."""
    name, metric = ("top1", "top1") if positives else ("macro", "auroc")
    whole = {"domain": "all", "class": name, "metric": metric, "value": value, "se": se, "n": 100}
    rows = [{**whole, "positives": None, "reason": None}]
    rows += [
        {**rows[0], "class": str(number), "metric": "recall", "positives": size}
        for number, size in enumerate(positives)
    ]
    return pl.DataFrame(rows, infer_schema_length=None, schema_overrides={"reason": pl.String})


def board(
    degenerate: str = "m7", excluded: str = "m0", contaminated: dict[str, list[str]] | None = None
) -> pl.DataFrame:
    rows = []
    for number, model in enumerate(MODELS):
        reason = "near chance" if model == excluded else None
        calibration = {
            "value": 1.5,
            "bound": "upper" if model == "m2" else None,
            "excluded": {"temperature": None, "chance": reason, "none": None},
        }
        matched = pl.DataFrame(
            [{"model": model, "target": "shifts", "domain": "uci", "stamp": -number / 10}]
        )
        raw = 0.99 if model == degenerate else number / 10
        scores = score_rows(model, None if model == degenerate else raw, raw)
        declared = scoreboard.Declared("chance", 0.95, (contaminated or {}).get(model, ()), [])
        rows.append(scoreboard.model_row(scores, calibration, matched, at_home(0.9), declared))
    return scoreboard.scoreboard(rows)


def test_a_kind_is_the_mean_of_its_severities_and_the_overall_mean_is_over_outcomes() -> None:
    table = tidy()
    assert outcomes.outcome_names(table) == ["shifts/blur", "shifts/uci", "mean"]
    blur = outcomes.values(table, "shifts/blur", MODELS)
    assert blur == pytest.approx([number / 10 + 0.1 for number in range(8)])
    uci = outcomes.values(table, "shifts/uci", MODELS)
    assert outcomes.values(table, "mean", MODELS) == pytest.approx((blur + uci) / 2)


def test_the_board_says_of_which_kind_the_headline_is_and_has_sv_of_the_others() -> None:
    found = board()
    assert found["kind"].unique().to_list() == ["temporal"]
    assert "within_labeled" in found.columns and "within_temporal" not in found.columns
    rows = score_rows("m3", 0.3, 0.3).with_columns(within=pl.Series([0.1, 0.2, 0.3]))
    calibration = {"value": 1, "bound": None, "excluded": dict.fromkeys(("temperature", "chance"))}
    none = pl.DataFrame(schema={"target": pl.String, "domain": pl.String, "stamp": pl.Float64})
    declared = scoreboard.Declared("chance", 0.95)
    row = scoreboard.model_row(rows, calibration, none, at_home(0.9), declared)
    assert (row["within"], row["within_labeled"]) == (0.1, 0.2)
    assert scoreboard.predictors(found.columns) == [
        "stamp",
        "sampled_stamp",
        "stamp_labeled",
        "stamp_scaled",
    ]


def test_a_model_for_reference_is_shown_and_not_counted_whatever_the_rules_say() -> None:
    rows = score_rows("m3", 0.3, 0.3)
    calibration = {"value": 1, "bound": None, "excluded": dict.fromkeys(("temperature", "chance"))}
    none = pl.DataFrame(schema={"target": pl.String, "domain": pl.String, "stamp": pl.Float64})
    made = [
        scoreboard.model_row(
            rows,
            calibration,
            none,
            at_home(0.9),
            scoreboard.Declared("temperature", 0.95, for_reference=reason),
        )
        for reason in (None, "shown for reference")
    ]
    found = scoreboard.scoreboard(made)
    kept = {which: keep.to_list() for which, keep in scoreboard.keeps(found).items()}
    assert kept["declared"] == [True, False]
    assert kept["all"] == kept["temperature"] == kept["chance"] == [True, True]
    assert found["excluded"].to_list() == [None, "shown for reference"]
    calibration["excluded"]["temperature"] = "T is 5"
    declared = scoreboard.Declared("temperature", 0.95, for_reference="shown for reference")
    row = scoreboard.model_row(rows, calibration, none, at_home(0.9), declared)
    assert row["excluded"] == "T is 5", "what was measured comes first"


def test_an_outcome_that_one_model_lacks_is_left_out_of_the_mean() -> None:
    rows = []
    for number, model in enumerate(MODELS):
        gap = None if number == 3 else 0.8
        rows += evaluation(model, "t", {"all": 0.5, "a": number / 10, "b": gap})
    table = outcomes.outcomes(pl.DataFrame(rows, infer_schema_length=None), {"t": "domain"})
    assert np.isnan(outcomes.values(table, "t/b", MODELS)[3])
    assert outcomes.values(table, "mean", MODELS) == pytest.approx([k / 10 for k in range(8)])


def test_a_mean_has_no_standard_error_where_one_of_its_parts_has_none() -> None:
    rows = evaluation("m", "t", {"all": 0.5, "blur-1": 0.6, "blur-2": 0.8, "fog-1": 0.7})
    gap = (pl.col("domain") == "blur-2") & (pl.col("class") == "macro")
    table = pl.DataFrame(rows).with_columns(se=pl.when(gap).then(None).otherwise("se"))
    found = {row["outcome"]: row for row in outcomes.outcomes(table, {"t": "kind"}).to_dicts()}
    assert (found["t/blur"]["value"], found["t/blur"]["se"]) == (pytest.approx(0.7), None)
    assert found["t/fog"]["se"] == pytest.approx(0.01) and found["mean"]["se"] is None


def test_a_target_of_one_domain_is_taken_as_a_whole() -> None:
    table = outcomes.outcomes(pl.DataFrame(evaluation("m", "t", {"all": 0.7})), {"t": "domain"})
    assert outcomes.outcome_names(table) == ["t", "mean"]


def test_unfiltered_correlations_rank_a_degenerate_model_at_its_raw_score() -> None:
    table = agreement.correlations(board(), tidy(), SETTINGS, 0)
    truth = outcomes.values(tidy(), "shifts/blur", MODELS)

    def found(filtered: str, predictor: str) -> dict:
        keep = (pl.col("filter") == filtered) & (pl.col("outcome") == "shifts/blur")
        return table.filter(keep & (pl.col("predictor") == predictor)).row(0, named=True)

    raw = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.99]
    assert found("all", "stamp")["n"] == 8
    assert found("all", "stamp")["rho"] == pytest.approx(spearmanr(raw, truth)[0])
    assert found("declared", "stamp")["n"] == 6
    assert found("temperature", "stamp")["n"] == 7
    assert found("all", "source_metric")["partial_source"] is None
    assert found("all", "stamp")["partial_parameters_reason"] == (
        "a control is the same for all 8 models"
    )


def test_filters_that_keep_the_same_models_have_the_rows_that_each_would_have_alone() -> None:
    scores = board().with_columns(excluded_chance=pl.lit(None, pl.String), degenerate=False)
    table = agreement.correlations(scores, tidy(), SETTINGS, 0)
    how = CorrelationSettings(seed=0, **SETTINGS)
    rows = [
        {"filter": name, "outcome": outcome, **row}
        for name, keep in scoreboard.keeps(scores).items()
        for outcome in outcomes.outcome_names(tidy())
        for row in agreement._of_outcome(scores.filter(keep), tidy(), name == "all", outcome, how)
    ]
    assert table.equals(agreement._table(rows))
    assert len({tuple(keep) for keep in scoreboard.keeps(scores).values()}) < 4


def test_a_matched_score_is_compared_with_its_own_outcome_only() -> None:
    table = agreement.correlations(board(), tidy(), SETTINGS, 0)
    matched = table.filter(pl.col("predictor") == "stamp_matched")
    assert set(matched["outcome"]) == {"shifts/uci"}
    assert matched.filter(pl.col("filter") == "all")["rho"][0] == pytest.approx(1.0)


def test_the_source_metric_stands_beside_a_score_over_the_models_that_have_the_score() -> None:
    gone = pl.col("model").is_in(["m1", "m4"])
    column = "matched:shifts/uci"
    scores = board().with_columns(pl.when(gone).then(None).otherwise(column).alias(column))
    noise = np.random.default_rng(5).normal(size=len(tidy())) / 10
    table = tidy().with_columns(value=pl.col("value") + pl.Series(noise))
    found = agreement.correlations(scores, table, SETTINGS, 0)
    main = main_table.main_table(found, {"targets": {}, "relabelled": []})
    there = [key for key in MODELS if key not in ("m1", "m4")]
    for name, keys in (("STAMP", MODELS), ("class-matched STAMP", there)):
        row = main.filter(target="shifts: uci", score=name, models="all").row(0, named=True)
        x, y = (outcomes.values(table, one, keys) for one in ("source", "shifts/uci"))
        assert row["n"] == len(keys)
        assert row["source_metric_rho"] == pytest.approx(spearmanr(x, y)[0])


def test_a_partial_correlation_says_how_many_models_have_what_it_controls_for() -> None:
    rng = np.random.default_rng(6)
    parameters = pl.Series("parameters", [None, None, *rng.permutation(6).astype(float)])
    noise = pl.Series(rng.normal(size=len(tidy())) / 10)
    table = tidy().with_columns(value=pl.col("value") + noise)
    found = agreement.correlations(board().with_columns(parameters), table, SETTINGS, 0)
    row = found.filter(filter="all", outcome="mean", predictor="stamp").row(0, named=True)
    numbers = [row[f"partial_{name}_n"] for name in agreement.PARTIALS]
    assert (row["n"], numbers) == (8, [8, None, 6, 6])


def test_a_study_without_targets_has_an_empty_table_with_all_columns() -> None:
    rows = [row for model in MODELS for row in evaluation(model, "source", {"all": 0.5})]
    table = outcomes.outcomes(pl.DataFrame(rows), {})
    found = agreement.correlations(board(), table, SETTINGS, 0)
    assert found.height == 0
    assert {"rho", "partial_source", "loo_low", "fisher_high"} <= set(found.columns)
    ranks = agreement.ranks(MODELS, np.random.default_rng(0).normal(size=(8, 50)), 0.95)
    described = {
        key: dict.fromkeys(("label", "family", "objective", "regime"), "x") for key in MODELS
    }
    assert leaderboard.leaderboard(board(), table, ranks, described).height == 8


def test_the_leaderboard_places_sound_models_by_score_and_the_others_last() -> None:
    draws = np.vstack([np.full(50, number / 10) for number in range(8)])
    draws[7] = np.nan
    ranks = agreement.ranks(MODELS, draws, 0.95)
    described = {
        key: dict.fromkeys(("label", "family", "objective", "regime"), key) for key in MODELS
    }
    table = leaderboard.leaderboard(board(), tidy(), ranks, described)
    assert table["model"].to_list() == ["m6", "m5", "m4", "m3", "m2", "m1", "m0", "m7"]
    assert table["place"].to_list() == [1, 2, 3, 4, 5, 6, None, None]
    words = dict(table.select("model", "flags").iter_rows())
    assert words["m7"] == "degenerate"
    assert words["m0"] == "excluded: near chance"
    assert words["m1"] == "leakage"
    assert words["m2"] == "temperature at its upper bound"
    assert words["m6"] == ""
    assert table.filter(pl.col("model") == "m6")["rank_median"][0] == 1


def test_outranking_is_a_share_of_draws() -> None:
    draws = np.array([[1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0], [np.nan] * 4])
    table = agreement.outranking(["a", "b", "c"], draws)
    assert table["b"].to_list() == [0.625, 0.5, None]


def test_a_source_metric_that_reaches_the_majority_class_is_flagged() -> None:
    """Two brightness statistics came first with accuracy .439 where a constant has .606."""
    rows = score_rows("m3", 0.9, 0.9)
    calibration = {"value": 1, "bound": None, "excluded": dict.fromkeys(("temperature", "chance"))}
    none = pl.DataFrame(schema={"target": pl.String, "domain": pl.String, "stamp": pl.Float64})
    declared = scoreboard.Declared("chance", 0.95, trained_on=[])
    sizes = (606, 300, 94)
    for value, clear in ((0.439, False), (0.606, False), (0.63, False), (0.66, True)):
        home = at_home(value, sizes)
        row = scoreboard.model_row(rows, calibration, none, home, declared)
        assert row["source_no_skill"] == pytest.approx(0.606)
        assert row["source_low"] == pytest.approx(norm.interval(0.95, value, 0.02)[0])
        assert row["source_high"] == pytest.approx(norm.interval(0.95, value, 0.02)[1])
        assert [one.flag.name for one in flags.raised(row)] == ([] if clear else ["no_skill"])
    row = scoreboard.model_row(rows, calibration, none, at_home(0.53), declared)
    assert row["source_no_skill"] == 0.5
    assert flags.words(row) == "no better than chance"


def test_models_with_the_same_outputs_are_named_and_warned_of() -> None:
    rows = board().with_columns(
        fingerprint=pl.Series([[number / 10, 1.0] for number in (0, 1, 2, 1, 4, 5, 4, 1)])
    )
    found = scoreboard.scoreboard(rows.drop("identical_to").iter_rows(named=True))
    assert dict(found.select("model", "identical_to").drop_nulls().iter_rows()) == {
        "m1": "m3, m7",
        "m3": "m1, m7",
        "m7": "m1, m3",
        "m4": "m6",
        "m6": "m4",
    }
    first, second = scoreboard.counted_twice(found)
    assert "m1, m3, m7" in first and "3 times" in first and "m4, m6" in second
    words = flags.words(found.row(3, named=True))
    assert words == "same outputs as m1, m7"
    assert scoreboard.counted_twice(board()) == []


def test_the_leaderboard_has_what_its_flags_were_raised_by() -> None:
    described = {
        key: dict.fromkeys(("label", "family", "objective", "regime"), key) for key in MODELS
    }
    ranks = agreement.ranks(MODELS, np.random.default_rng(0).normal(size=(8, 50)), 0.95)
    table = leaderboard.leaderboard(board(), tidy(), ranks, described)
    assert set(flags.COLUMNS) - set(table.columns) == {"unavailable"}
    for row in table.iter_rows(named=True):
        assert flags.words(row) == row["flags"]
    columns = table.columns
    beside = ["source_metric", "source_low", "source_high", "source_no_skill"]
    assert columns[columns.index("source_metric") :][:4] == beside


def two_targets() -> pl.DataFrame:
    rows = []
    for number, model in enumerate(MODELS):
        rows += evaluation(model, "source", {"all": number / 10})
        rows += evaluation(model, "elsewhere", {"all": number / 10})
        rows += evaluation(model, "here", {"all": 0.9 - number / 10})
    return pl.DataFrame(rows)


def test_a_relabelled_source_is_an_outcome_but_not_in_the_mean() -> None:
    table = outcomes.outcomes(two_targets(), {}, ["here"])
    assert outcomes.outcome_names(table) == ["elsewhere", "here", "mean"]
    mean = outcomes.values(table, "mean", MODELS)
    assert mean == pytest.approx(outcomes.values(table, "elsewhere", MODELS))
    alone = outcomes.outcomes(two_targets(), {}, ["here", "elsewhere"])
    assert outcomes.values(alone, "mean", MODELS) == pytest.approx([0.45] * 8)


def test_a_model_that_met_a_target_is_left_out_of_that_target_and_of_the_mean() -> None:
    contaminated = {"m3": ["here"], "m4": ["here", "elsewhere"]}
    table = agreement.correlations(
        board(contaminated=contaminated), outcomes.outcomes(two_targets(), {}), SETTINGS, 0
    )
    kept = table.filter((pl.col("filter") == "uncontaminated") & (pl.col("predictor") == "stamp"))
    numbers = dict(kept.select("outcome", "n").iter_rows())
    assert numbers == {"elsewhere": 5, "here": 4, "mean": 4}  # of 6 under the declared rule
    assert "uncontaminated" not in agreement.correlations(board(), tidy(), SETTINGS, 0)["filter"]


def test_a_model_that_cannot_be_scored_is_listed_with_the_reason() -> None:
    described = {
        key: dict.fromkeys(("label", "family", "objective", "regime"), key) for key in MODELS
    }
    ranks = agreement.ranks(MODELS, np.random.default_rng(0).normal(size=(8, 50)), 0.95)
    gone = {"ae": {**described["m0"], "label": "Autoencoder", "reason": "has no classifier"}}
    table = leaderboard.leaderboard(
        board(contaminated={"m3": ["shifts"]}), tidy(), ranks, described, gone
    )
    last = table.row(-1, named=True)
    assert (last["model"], last["stamp"], last["place"]) == ("ae", None, None)
    assert last["flags"] == "not available: has no classifier"
    met = table.filter(pl.col("model") == "m3")["flags"][0]
    assert met == "trained or selected on shifts"


def test_the_main_table_has_the_matched_score_and_says_what_is_relabelled() -> None:
    found = agreement.correlations(board(), tidy(), SETTINGS, 0)
    texts = {
        "title": "T",
        "notice": "made up",
        "level": 0.95,
        "targets": {"shifts": "Shifts"},
        "relabelled": ["shifts"],
    }
    table = main_table.main_table(found, texts)
    first = table.row(0, named=True)
    source = found.filter(
        (pl.col("filter") == "all")
        & (pl.col("outcome") == "shifts/blur")
        & (pl.col("predictor") == "source_metric")
    )
    assert (first["target"], first["score"], first["models"]) == ("Shifts: blur", "STAMP", "all")
    assert first["source_metric_rho"] == source["rho"][0]
    assert first["note"] == main_table.RELABELLED
    matched = table.filter(pl.col("score") == "class-matched STAMP")
    assert matched["target"].unique().to_list() == ["Shifts: uci"]
    text = main_table.markdown(table, texts)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == len(table) + 2
    assert len({line.count("|") for line in rows}) == 1
    assert "made up" in text


# the source metric beside each outcome


def by_class(model: str, view: str, domain: str, values: dict[str, float | None]) -> list[dict]:
    """Rows of a multilabel evaluation: the macro mean of the known classes, then all."""
    known = [value for value in values.values() if value is not None]
    common = {"model": model, "view": view, "domain": domain, "metric": "auroc", "n": 100}
    mean = float(np.mean(known)) if known else None
    return [
        {**common, "class": "macro", "value": mean, "se": 0.01},
        *({**common, "class": name, "value": value, "se": 0.01} for name, value in values.items()),
    ]


def multilabel_study(seed: int = 0) -> tuple[pl.DataFrame, dict[str, dict[str, np.ndarray]]]:
    """A target of two domains with other classes each, one merged; influences at the source."""
    rng = np.random.default_rng(seed)
    rows, influences = [], {}
    for model in MODELS:
        a, b, c, both = (float(value) for value in rng.random(4))
        source = [
            *by_class(model, "source", "all", {"a": a, "b": b, "c": c}),
            {**by_class(model, "source", "merged:", {"b/c": both})[1]},
        ]
        influence = {name: 0.01 * rng.normal(size=30) for name in ("a", "b", "c", "b/c")}
        influences[model] = influence
        rows += [{**row, "influence": influence.get(row["class"])} for row in source]
        one, two = rng.random(2)
        far = by_class(model, "far", "one", {"a": one, "b": None, "c": None, "b/c": two})
        near = by_class(model, "far", "two", {"a": None, "b": one, "c": None, "b/c": None})
        rows += [*by_class(model, "far", "all", {"a": one}), *far, *near]
        rows += by_class(model, "whole", "all", {"a": one, "b": two, "c": 0.5})
    rows = [
        {**row, "influence": None if row.get("influence") is None else row["influence"].tolist()}
        for row in rows
    ]
    return pl.DataFrame(rows, infer_schema_length=None), influences


def source_value(table: pl.DataFrame, model: str, name: str) -> float:
    rows = table.filter((pl.col("model") == model) & (pl.col("view") == "source"))
    return rows.filter(pl.col("class") == name)["value"][0]


def test_the_source_metric_is_over_the_classes_of_the_outcome_merged_ones_too() -> None:
    evaluations, _ = multilabel_study()
    found = outcomes.outcomes(evaluations, {"far": "domain"})
    beside = {name: outcomes.source_outcome(found, name) for name in outcomes.outcome_names(found)}
    assert beside["whole"] == "source" and len(set(beside.values())) == 4
    classes = {"far/one": ["a", "b/c"], "far/two": ["b"], "whole": ["a", "b", "c"]}
    means = {}
    for outcome, names in classes.items():
        means[outcome] = [
            np.mean([source_value(evaluations, model, name) for name in names]) for model in MODELS
        ]
        assert outcomes.values(found, beside[outcome], MODELS) == pytest.approx(means[outcome])
    mean = np.mean(list(means.values()), axis=0)
    assert outcomes.values(found, beside["mean"], MODELS) == pytest.approx(mean)


def test_the_source_metrics_covariance_is_that_of_its_classes_influences() -> None:
    evaluations, influences = multilabel_study()
    found = outcomes.outcomes(evaluations, {"far": "domain"})
    models = MODELS[::-1]
    one = np.array([(influences[key]["a"] + influences[key]["b/c"]) / 2 for key in models])
    shared = outcomes.source_covariance(found, "far/one", models)
    np.testing.assert_allclose(shared, one @ one.T)
    row = found.filter(outcome="source:far/one", model="m2").row(0, named=True)
    assert row["se"] == pytest.approx(np.sqrt(shared[5, 5])) and row["n"] == 100
    whole = np.array([np.mean([influences[key][c] for c in "abc"], axis=0) for key in models])
    np.testing.assert_allclose(outcomes.source_covariance(found, "whole", models), whole @ whole.T)


def test_without_influences_errors_are_taken_as_independent_and_unknown_ones_as_unknown() -> None:
    evaluations, _ = multilabel_study()
    found = outcomes.outcomes(evaluations.drop("influence"), {"far": "domain"})
    np.testing.assert_allclose(
        outcomes.source_covariance(found, "whole", MODELS), 0.01**2 * np.eye(8)
    )
    assert np.isnan(outcomes.source_covariance(found, "far/one", MODELS)).all()
    one = outcomes.source_covariance(found, "whole", ["m3", "elsewhere"])
    assert one[0, 0] == 0.01**2 and np.isnan(one[1]).all()


def test_a_restricted_target_is_set_beside_the_source_among_the_same_classes() -> None:
    rows = []
    for number, model in enumerate(MODELS):
        common = {"model": model, "class": "top1", "metric": "top1", "se": 0.01, "n": 50}
        rows += [
            {**common, "view": "source", "domain": "all", "value": number / 10},
            {**common, "view": "source", "domain": "among:far", "value": 0.9 - number / 10},
            {**common, "view": "far", "domain": "all", "value": number / 20},
            {**common, "view": "near", "domain": "all", "value": number / 30},
        ]
    found = outcomes.outcomes(pl.DataFrame(rows), {})
    one = outcomes.values(found, outcomes.source_outcome(found, "far"), MODELS)
    assert one == pytest.approx([0.9 - k / 10 for k in range(8)])
    assert outcomes.source_outcome(found, "near") == "source"
    assert outcomes.source_outcome(found, "far/part") == "source:far"
    mean = outcomes.values(found, outcomes.source_outcome(found, "mean"), MODELS)
    assert mean == pytest.approx([0.45] * 8)


def test_correlations_are_given_the_source_metric_of_the_outcomes_classes() -> None:
    evaluations, influences = multilabel_study(4)
    found = outcomes.outcomes(evaluations, {"far": "domain"})
    table = agreement.correlations(board(), found, SETTINGS, 0)
    row = table.filter(filter="all", outcome="far/two", predictor="stamp").row(0, named=True)
    source = [source_value(evaluations, model, "b") for model in MODELS]
    truth = outcomes.values(found, "far/two", MODELS)
    score = board()["raw"].to_numpy()
    assert row["source_metric_rho"] == pytest.approx(spearmanr(source, truth)[0])
    assert row["partial_source"] == pytest.approx(partial_spearman(score, truth, source).rho)
    errors = np.array([influences[model]["b"] for model in MODELS])
    expected = partial_given_noisy_control(score, truth, source, errors @ errors.T)
    assert row["partial_source_corrected"] == pytest.approx(expected.corrected)
    assert row["partial_source_corrected_p"] == pytest.approx(expected.p)
    assert row["partial_source_error"] == pytest.approx(expected.error)
    other = table.filter(filter="all", outcome="far/two", predictor="stamp_labeled")
    assert other["partial_source_corrected_low"][0] is None


def test_without_a_standard_error_the_main_table_says_that_nothing_can_be_corrected() -> None:
    texts = {"title": "T", "notice": "", "level": 0.95, "targets": {"x": "X"}, "relabelled": []}
    known = agreement.correlations(board(), tidy(), SETTINGS, 0)
    gone = tidy().with_columns(se=pl.lit(None, dtype=pl.Float64), covariance=None)
    unknown = agreement.correlations(board(), gone, SETTINGS, 0)
    reasons = unknown.filter(predictor="stamp")["partial_source_corrected_reason"].unique()
    assert "not known" in reasons[0] and len(reasons) == 1
    words = [
        main_table.markdown(main_table.main_table(one, texts), texts) for one in (known, unknown)
    ]
    assert "no correction is possible" not in words[0]
    assert "no correction is possible" in words[1]
