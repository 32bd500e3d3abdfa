"""The further analyses of a study: tables against loops and scipy, figures against their tables."""

from __future__ import annotations

import itertools
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from analysis_job import check_from_files
from figures_check import artists, axes_of, check_texts
from made_up_study import (
    KINDS,
    NUMBERS,
    SETTINGS,
    TEXTS,
    declared,
    evaluated,
    one,
    replaced,
    study,
)
from scipy.special import softmax
from scipy.stats import norm, spearmanr

import score
from stamp.config.registries.analyses import ANALYSES
from stamp.core.artifacts import ids_digest, read_table, write_arrays, write_json, write_table
from stamp.inference.outputs import Outputs
from stamp.report import correlate as agreement
from stamp.report import main_table, outcomes
from stamp.report.analyses.corruptions import table as corruptions
from stamp.report.analyses.families import table as families
from stamp.report.analyses.n_pairs import figure as counts_figure
from stamp.report.analyses.n_pairs import table as counts
from stamp.report.analyses.strata import figure as strata_figure
from stamp.report.analyses.strata import table as strata
from stamp.report.analyses.temperature import table as temperature
from stamp.report.analysis import NO_TARGETS, AnalysisData
from stamp.scoring.score import N_PAIRS, ScoreSettings, score_at_n_pairs, score_pool

MODULES = {
    "corruptions": corruptions,
    "strata": strata,
    "families": families,
    "n_pairs": counts,
    "temperature": temperature,
}
FIGURES = {"n_pairs": counts_figure, "strata": strata_figure}


def value(data: AnalysisData, model: str, view: str, domain: str) -> float:
    keep = (pl.col("model") == model) & (pl.col("view") == view) & (pl.col("domain") == domain)
    return data.evaluations.filter(keep & (pl.col("class") == "top1"))["value"][0]


def raw_scores(data: AnalysisData) -> dict[str, float]:
    return dict(data.scores.select("model", "raw").iter_rows())


def rho(data: AnalysisData, models: list[str], truth: dict[str, float]) -> float:
    raw = raw_scores(data)
    return spearmanr([raw[key] for key in models], [truth[key] for key in models])[0]


# Pairs -------------------------------------------------------------------------------------------


def pool_and_pairs() -> tuple[Outputs, pl.DataFrame]:
    rng = np.random.default_rng(5)
    logits = 2 * np.repeat(rng.normal(size=(10, 10)), 12, axis=0) + rng.normal(size=(120, 10))
    images = [f"i{k}" for k in range(120)]
    groups = [k // 12 for k in range(120)]
    rows = pl.DataFrame(
        {"image": images, "group": [f"g{group}" for group in groups], "label": groups}
    )
    ends = [rng.choice(np.arange(12 * g, 12 * g + 12), 2, replace=False) for g in range(10)] * 8
    others = [(a, (a + 12 + rng.integers(90)) % 120) for a in rng.integers(0, 120, 80)]
    table = [(f"i{a}", f"i{b}", "class") for a, b in ends]
    table += [(f"i{a}", f"i{b}", "random") for a, b in others]
    return Outputs(rows, logits, 7), pl.DataFrame(table, schema=["a", "b", "kind"], orient="row")


CLASSES = list("abcdefghij")
DESIGN = ScoreSettings("multiclass", CLASSES, "class", "different_group", 50, True, 60, 0.9, 2)


def test_fewer_pairs_are_scored_on_the_first_pairs_and_the_same_outputs() -> None:
    pool, pairs = pool_and_pairs()
    table = score_at_n_pairs(pool, pairs, DESIGN, 1.7, [20, 50, 80], "m")
    p = softmax(pool.logits / 1.7, axis=1)
    for row in table.iter_rows(named=True):
        means = []
        for kind in ("class", "random"):
            first = pairs.filter(pl.col("kind") == kind).rows()[: row["number"]]
            gaps = [p[int(a[1:])] - p[int(b[1:])] for a, b, _ in first]
            means.append(np.mean([float(gap @ gap) for gap in gaps]))
        assert (row["within"], row["total"]) == pytest.approx(means)
        assert row["stamp"] == pytest.approx(1 - means[0] / (means[1] + 1e-8))
    assert table["number"].to_list() == [20, 50, 80]
    headline = score_pool(pool, pairs, "class", replace(DESIGN, estimator="sampled"), 1.7)
    same = one(table, number=50)
    assert all(same[name] == getattr(headline, name) for name in list(N_PAIRS)[2:])


def test_without_numbers_of_pairs_the_table_is_empty_with_its_columns() -> None:
    table = score_at_n_pairs(*pool_and_pairs(), DESIGN, 1.0, [], "m")
    assert table.is_empty() and table.schema == pl.Schema(N_PAIRS)


def test_the_score_script_writes_the_counts_beside_and_leaves_its_own_table_alone(
    tmp_path: Path,
) -> None:
    pool, pairs = pool_and_pairs()
    view = pool.rows.with_columns(role=pl.lit("pool"))
    write_table(tmp_path / "view.parquet", view, {})
    write_table(tmp_path / "pairs.parquet", pairs, {"study": "s"})
    made = {"model": "m", "ids": ids_digest(view["image"]), "parameters": 7}
    write_arrays(tmp_path / "m.safetensors", {"logits": pool.logits}, made)
    write_json(tmp_path / "calibration.json", {"value": 1.7})
    settings = {name: getattr(DESIGN, name) for name in ScoreSettings.__dataclass_fields__}

    class Params(dict):
        __getattr__ = dict.__getitem__

    tables = {}
    for numbers in ([], [20, 80]):
        output = {
            name: tmp_path / f"{name}{len(numbers)}"
            for name in ("scores", "n_pairs", "draws", "examples")
        }
        job = SimpleNamespace(
            params=Params(**settings, n_pairs_sweep=numbers, leaks=False),
            wildcards=SimpleNamespace(model="m", study="s"),
            input=SimpleNamespace(
                view=tmp_path / "view.parquet",
                pairs=tmp_path / "pairs.parquet",
                logits=tmp_path / "m.safetensors",
                calibration=tmp_path / "calibration.json",
            ),
            output=SimpleNamespace(**output),
        )
        score.main(job)
        tables[len(numbers)] = read_table(output["scores"], model="m", study="s")
    assert tables[0].equals(tables[2])
    found = read_table(tmp_path / "n_pairs2", model="m", study="s")
    assert found.equals(score_at_n_pairs(pool, pairs, DESIGN, 1.7, [20, 80], "m"))


# Corruptions -------------------------------------------------------------------------------------


def test_a_corruption_has_the_rho_of_the_mean_over_its_severities() -> None:
    data = study(degenerate=(2,))
    table = corruptions.table(data)
    kept = declared(data)
    source = dict(
        data.outcomes.filter(pl.col("outcome") == "source").select("model", "value").iter_rows()
    )
    rhos = {}
    for kind in KINDS:
        truth = {
            key: np.mean([value(data, key, "c", f"{kind}-{s}") for s in (1, 2, 3)])
            for key in data.models
        }
        row = one(table, models="declared", corruption=kind)
        rhos[kind] = rho(data, kept, truth)
        assert row["rho"] == pytest.approx(rhos[kind])
        assert (row["n"], row["severities"]) == (len(kept), 3) == (9, 3)
        assert row["value"] == pytest.approx(np.mean([truth[key] for key in kept]))
        reach = norm.ppf(0.95) * np.sqrt((1 + row["rho"] ** 2 / 2) / (len(kept) - 3))
        ends = np.tanh(np.arctanh(row["rho"]) + np.array([-reach, reach]))
        assert [row["low"], row["high"]] == pytest.approx(list(ends))
        x, y = [source[key] for key in kept], [truth[key] for key in kept]
        assert row["source_metric_rho"] == pytest.approx(spearmanr(x, y)[0])
        everyone = one(table, models="all", corruption=kind)
        assert everyone["rho"] == pytest.approx(rho(data, list(data.models), truth))
    assert one(table, models="declared", corruption="mean")["rho"] == pytest.approx(
        np.mean(list(rhos.values()))
    )
    for name, end in (("min", min), ("max", max)):
        row = one(table, models="declared", corruption=name)
        assert row["which"] == end(rhos, key=lambda kind: rhos[kind])
        assert row["rho"] == pytest.approx(end(rhos.values()))
    assert table["target"].unique().to_list() == ["c"]  # one kind of strata is no corruption
    assert set(table["corruption"]) == {*KINDS, "mean", "min", "max"}  # nor is a plain domain


def test_corruptions_agree_with_the_table_of_correlations_where_the_outcomes_are_kinds() -> None:
    data = study()
    known = agreement.correlations(data.scores, data.outcomes, SETTINGS, data.seed)
    table = corruptions.table(data)
    for which, kind in itertools.product(("all", "declared"), KINDS):
        row = one(table, models=which, corruption=kind)
        other = one(known, filter=which, outcome=f"c/{kind}", predictor="stamp")
        assert row["p"] == other["p_permutation"]
        assert row["partial"] == other["partial_source"]
        assert row["partial_p"] == other["partial_source_p"]


def test_a_kind_that_a_model_lacks_a_severity_of_leaves_that_model_out() -> None:
    data = study(excluded={})
    gap = (pl.col("model") == "m03") & (pl.col("domain") == "snow-2")
    holed = data.evaluations.with_columns(value=pl.when(gap).then(None).otherwise(pl.col("value")))
    table = corruptions.table(replaced(data, evaluations=holed))
    assert one(table, models="all", corruption="snow")["n"] == 11
    assert one(table, models="all", corruption="blur")["n"] == 12
    assert one(table, models="all", corruption="mean")["n"] is None


def test_too_few_models_give_reasons_and_no_number() -> None:
    data = study(count=3, excluded={})
    table = corruptions.table(data)
    assert table["rho"].is_null().all()
    assert one(table, models="all", corruption="blur")["reason"].startswith("3 models are too few")
    assert one(table, models="all", corruption="mean")["reason"] == "no kind has a \u03c1"
    assert "no kind has a \u03c1" in corruptions.sentence(table)


def test_an_exposed_model_is_left_out_of_its_target_only() -> None:
    data = study(excluded={}, contaminated={0: "c"})
    table = corruptions.table(data)
    assert one(table, models="uncontaminated", corruption="blur")["n"] == 11
    found = strata.table(data).filter(
        pl.col("models") == "uncontaminated", pl.col("target") == "street"
    )
    assert found["n"].unique().to_list() == [12]


# Strata ------------------------------------------------------------------------------------------


def test_strata_have_their_own_rho_and_gaps_are_the_last_minus_the_first() -> None:
    data = study()
    table, kept = strata.table(data), declared(data)
    income = {s: {k: value(data, k, "street", f"income-{s}") for k in kept} for s in range(1, 5)}
    for s in range(1, 5):
        row = one(table, models="declared", target="street", stratum=s)
        assert row["label"] == f"income-{s}"
        assert row["rho"] == pytest.approx(rho(data, kept, income[s]))
        assert row["value"] == pytest.approx(np.mean(list(income[s].values())))
    absolute = {key: income[4][key] - income[1][key] for key in kept}
    relative = {key: absolute[key] / income[4][key] for key in kept}
    for what, gap in (("absolute gap", absolute), ("relative gap", relative)):
        row = one(table, models="declared", target="street", what=what)
        assert row["rho"] == pytest.approx(rho(data, kept, gap))
        assert row["value"] == pytest.approx(np.mean(list(gap.values())))
    models = strata.models(data).filter(pl.col("target") == "street")
    for row in models.filter("counted").iter_rows(named=True):
        assert row["value"] == income[row["stratum"]][row["model"]]
        assert row["absolute_gap"] == pytest.approx(absolute[row["model"]])
        assert row["relative_gap"] == pytest.approx(relative[row["model"]])
    assert len(models) == 12 * 4


def test_strata_of_several_kinds_are_the_mean_over_the_kinds_at_the_numbers_all_have() -> None:
    data = study()
    more = pl.concat(
        [data.evaluations, pl.DataFrame(evaluated("m00", "c", {"snow-4": 0.5}))], how="diagonal"
    )
    table = strata.table(replaced(data, evaluations=more))
    rows = table.filter(
        pl.col("models") == "all", pl.col("target") == "c", pl.col("what") == "stratum"
    )
    assert rows["label"].to_list() == ["level 1", "level 2", "level 3"]
    truth = {
        key: np.mean([value(data, key, "c", f"{kind}-2") for kind in KINDS]) for key in data.models
    }
    assert rows["rho"][1] == pytest.approx(rho(data, list(data.models), truth))


def test_a_last_stratum_of_nothing_has_no_relative_gap() -> None:
    data = study(excluded={})
    zero = (pl.col("model") == "m05") & (pl.col("domain") == "income-4")
    emptied = data.evaluations.with_columns(
        value=pl.when(zero).then(0.0).otherwise(pl.col("value"))
    )
    data = replaced(data, evaluations=emptied)
    table = strata.table(data)
    assert one(table, models="all", target="street", what="relative gap")["n"] == 11
    assert one(table, models="all", target="street", what="absolute gap")["n"] == 12
    row = strata.models(data).filter(pl.col("model") == "m05", pl.col("target") == "street")
    assert row["relative_gap"].is_null().all() and row["absolute_gap"].is_not_null().all()


# Families ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [4, 5, 6])
def test_the_step_is_the_least_distance_of_possible_rhos_without_ties(n: int) -> None:
    base = np.arange(n)
    possible = sorted(
        {round(float(spearmanr(base, order)[0]), 9) for order in itertools.permutations(base)}
    )
    gaps = np.diff(possible)
    assert gaps.min() == pytest.approx(families.step(n), abs=1e-8)
    assert np.allclose(gaps / families.step(n), np.round(gaps / families.step(n)), atol=1e-6)


def test_the_paper_prints_a_rho_that_ten_families_cannot_have() -> None:
    steps = (1 - np.array([0.988, 0.986, 0.976])) / families.step(10)
    assert np.abs(steps - np.round(steps)) * families.step(10) == pytest.approx(
        [0.0001, 0.0019, 0.0002], abs=1e-4
    )


@pytest.mark.parametrize("name", ANALYSES)
def test_every_partial_correlation_stands_beside_one_corrected_for_its_controls_error(
    name: str,
) -> None:
    table = import_module(f"stamp.report.analyses.{name}.table").TABLE
    plain = [column for column in table if column.endswith("partial")]
    ends = {"partial": ("partial_corrected", "corrected")}
    for column in plain:
        assert any(other in table for other in ends.get(column, (f"{column}_corrected",))), column
    assert bool(plain) or not any("partial" in column for column in table)
    caption = Path(families.__file__).parents[1] / name / "caption.rst"
    assert not plain or "measured with error" in caption.read_text()


def test_one_model_a_family_is_the_first_by_its_key_and_choices_are_all_there_are() -> None:
    data = study(count=10)
    table = families.table(data)
    kept = sorted(declared(data))
    truth = dict(
        data.outcomes.filter(pl.col("outcome") == "mean").select("model", "value").iter_rows()
    )
    family = {key: data.models[key]["family"] for key in kept}
    groups = [[key for key in kept if family[key] == name] for name in sorted(set(family.values()))]
    row = one(table, models="declared", outcome="mean")
    assert (row["families"], row["n"]) == (len(groups), len(kept)) == (5, 8)
    assert row["first_rho"] == pytest.approx(rho(data, [group[0] for group in groups], truth))
    every = [rho(data, list(choice), truth) for choice in itertools.product(*groups)]
    assert (row["choices"], row["choices_kind"]) == (len(every), "all")
    assert row["choices_median"] == pytest.approx(np.median(every))
    assert row["choices_low"] == pytest.approx(np.quantile(every, 0.05))
    assert row["choices_high"] == pytest.approx(np.quantile(every, 0.95))
    assert row["rho"] == pytest.approx(rho(data, kept, truth))
    models = families.models(data)
    assert set(models.filter("first_declared")["model"]) == {group[0] for group in groups}
    assert one(models, model=kept[0])["family_size"] in (1, 2)


def test_random_choices_take_one_of_each_family_and_each_member_as_often() -> None:
    names = np.array(["a"] * 4 + ["b"] * 7 + ["c"] * 9 + ["d"] * 8)
    found = families.one_each(names, seed=1)
    assert not found.exhaustive and found.members.shape == (1000, 4)
    assert (names[found.members] == np.array(["a", "b", "c", "d"])).all()
    for column, size in enumerate((4, 7, 9, 8)):
        shares = np.unique(found.members[:, column], return_counts=True)[1] / 1000
        assert len(shares) == size
        assert np.abs(shares - 1 / size).max() < 4 * np.sqrt(1 / size / 1000)
    assert np.array_equal(found.members, families.one_each(names, seed=1).members)
    assert not np.array_equal(found.members, families.one_each(names, seed=2).members)


def test_the_cluster_bootstrap_repeats_all_members_of_the_families_it_draws() -> None:
    rng = np.random.default_rng(0)
    names = np.array(["a", "a", "b", "c", "c", "c", "d", "e"])
    x, y = rng.random((2, 8))
    found = families.cluster_bootstrap(x, y, names, 60, seed=5)
    drawn = np.random.default_rng([5, families.CLUSTER]).multinomial(5, [0.2] * 5, size=60)
    for draw, times in zip(found, drawn, strict=True):
        rows = [
            i
            for f, t in zip("abcde", times, strict=True)
            for i in np.flatnonzero(names == f)
            for _ in range(t)
        ]
        if len(set(rows)) == 1:
            assert np.isnan(draw)
        else:
            assert draw == pytest.approx(spearmanr(x[rows], y[rows])[0])


def test_members_that_agree_within_families_widen_the_interval_over_families() -> None:
    rng = np.random.default_rng(2)
    centres = rng.normal(size=(2, 6))
    centres[1] += 0.7 * centres[0]
    names = np.repeat(np.arange(6), 6).astype(str)
    x, y = np.repeat(centres, 6, axis=1) + 0.05 * rng.normal(size=(2, 36))
    clusters = families.cluster_bootstrap(x, y, names, 400, seed=0)
    single = families.cluster_bootstrap(x, y, np.arange(36).astype(str), 400, seed=0)
    assert np.nanstd(clusters) > 1.5 * np.nanstd(single)


def test_few_families_give_a_reason() -> None:
    data = study(count=12)
    few = {key: {**said, "family": "one"} for key, said in data.models.items()}
    table = families.table(replaced(data, models=few))
    row = one(table, models="declared", outcome="mean")
    assert row["first_rho"] is None and row["rho"] is not None
    assert row["reason"] == "families: 1, and at least 4 are needed"
    assert "families: 1, and at least 4" in families.sentence(table)


# Counts and temperature --------------------------------------------------------------------------


def test_counts_compare_every_number_of_pairs_with_the_largest() -> None:
    data = study(degenerate=(2,))
    table, kept = counts.table(data), declared(data)
    truth = dict(
        data.outcomes.filter(pl.col("outcome") == "plain").select("model", "value").iter_rows()
    )
    scored = {(m, n): s for m, n, s in data.n_pairs.select("model", "number", "stamp").iter_rows()}
    for number in NUMBERS:
        row = one(table, models="declared", outcome="plain", number=number)
        here, last = ([scored[key, n] for key in kept] for n in (number, 80))
        assert row["rho"] == pytest.approx(spearmanr(here, [truth[key] for key in kept])[0])
        gaps = [abs(a - b) for a, b in zip(here, last, strict=True)]
        assert row["mean_difference"] == pytest.approx(np.mean(gaps))
        assert row["rank_correlation"] == pytest.approx(spearmanr(here, last)[0])
        assert row["mean_width"] == pytest.approx(3 / number)
    assert one(table, models="declared", outcome="plain", number=80)["mean_difference"] == 0
    models = counts.models(data)
    row = one(models, model=kept[0], number=20)
    assert row["width"] == pytest.approx(3 / 20)
    assert row["difference"] == pytest.approx(scored[kept[0], 20] - scored[kept[0], 80])
    assert row["stamp"] == scored[kept[0], 20]


def test_rho_is_given_without_a_rule_under_each_and_under_both() -> None:
    data = study(excluded={1: ("temperature",), 4: ("temperature", "chance"), 7: ("chance",)})
    table = temperature.table(data)
    known = agreement.correlations(data.scores, data.outcomes, SETTINGS, data.seed)
    for rule, which in (("none", "all"), ("temperature", "temperature"), ("chance", "chance")):
        row = one(table, rule=rule, outcome="mean")
        other = one(known, filter=which, outcome="mean", predictor="stamp")
        for name, origin in (("n", "n"), ("rho", "rho"), ("p", "p_permutation")):
            assert row[name] == other[origin]
        source = one(known, filter=which, outcome="mean", predictor="source_metric")
        assert row["source_metric_rho"] == pytest.approx(source["rho"])
    keys = data.scores["model"].to_list()
    both = one(table, rule="both", outcome="mean")
    kept = [key for i, key in enumerate(keys) if i not in (1, 4, 7)]
    truth = dict(
        data.outcomes.filter(pl.col("outcome") == "mean").select("model", "value").iter_rows()
    )
    assert both["rho"] == pytest.approx(rho(data, kept, truth))
    assert (both["left_out"], both["n"]) == (3, 9)
    assert both["models_left_out"] == ", ".join(keys[i] for i in (1, 4, 7))
    assert both["best_left_out"] == pytest.approx(0.07)
    models = temperature.models(data)
    row = one(models, model=keys[4])
    assert (row["temperature"], row["performance"]) == (2.0, 0.04)
    assert (row["excluded_temperature"], row["excluded_chance"]) == ("by temperature", "by chance")
    assert models["model"].to_list() == keys


def test_every_rule_leaves_degenerate_models_out_and_none_ranks_them_at_their_raw_value() -> None:
    data = study(excluded={}, degenerate=(2, 5))
    table = temperature.table(data)
    assert one(table, rule="none", outcome="plain")["n"] == 12
    assert {one(table, rule=r, outcome="plain")["n"] for r in list(temperature.RULES)[1:]} == {10}


def test_a_degenerate_model_is_not_said_to_be_excluded_by_a_rule() -> None:
    data = study(excluded={5: ("chance",), 7: ("chance",)}, degenerate=(2, 5))
    keys = data.scores["model"].to_list()
    table = temperature.table(data)
    plain = one(table, rule="temperature", outcome="plain")
    assert (plain["left_out"], plain["degenerate"], plain["models_left_out"]) == (0, 2, None)
    row = one(table, rule="chance", outcome="plain")
    assert (row["left_out"], row["degenerate"], row["n"]) == (2, 1, 9)
    assert row["models_left_out"] == f"{keys[5]}, {keys[7]}"
    said = temperature.sentence(table)
    assert "The temperature rule excludes no model." in said


def test_the_source_metric_beside_a_target_is_that_on_the_classes_it_is_scored_on() -> None:
    data = study(excluded={})
    rng = np.random.default_rng(9)
    own = {key: rng.random() for key in data.models}
    rows = [row for key in own for row in evaluated(key, "source", {"among:street": own[key]})]
    both = pl.concat([data.evaluations, pl.DataFrame(rows)])
    table = strata.table(
        replaced(data, evaluations=both, outcomes=outcomes.outcomes(both, {"c": "kind"}))
    )
    truth = {key: value(data, key, "street", "income-2") for key in own}
    found = one(table, models="all", target="street", stratum=2)["source_metric_rho"]
    assert found == pytest.approx(spearmanr(list(own.values()), list(truth.values()))[0])
    before = one(strata.table(data), models="all", target="c", stratum=2)
    assert one(table, models="all", target="c", stratum=2) == before


# Sentences, absence, files -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("corruptions", {"numbered": False}, corruptions.NOTHING),
        ("strata", {"numbered": False}, strata.NOTHING),
        ("strata", {"targets": False}, strata.NOTHING),
        ("families", {"targets": False}, NO_TARGETS),
        ("temperature", {"targets": False}, "the study has no targets, so there is no outcome"),
    ],
)
def test_a_study_without_what_it_needs_gets_one_row_with_the_reason(
    name: str, options: dict[str, Any], reason: str
) -> None:
    module, data = MODULES[name], study(**options)
    table = module.table(data)
    assert table.to_dicts() == [{**dict.fromkeys(module.TABLE), "reason": reason}]
    assert reason in module.sentence(table)
    models = module.models(data)
    if name in FIGURES:
        figure = FIGURES[name].draw(table, models, data.texts)
        shown = [text.get_text() for axes in figure.axes for text in axes.texts]
        assert reason.split()[-1] + "." in " ".join(shown)
    assert len(models) in (1, 12)


def test_without_numbers_of_pairs_the_analysis_of_them_says_so() -> None:
    data = replaced(study(), n_pairs=pl.DataFrame(schema=N_PAIRS))
    table = counts.table(data)
    assert table.to_dicts() == [{**dict.fromkeys(counts.TABLE), "reason": counts.NOTHING}]
    assert "pairs.n_pairs_sweep" in counts.sentence(table)
    check_texts(counts_figure.draw(table, counts.models(data), TEXTS))


def test_without_targets_the_numbers_of_pairs_are_still_compared() -> None:
    data = study(targets=False)
    table = counts.table(data)
    assert table["rho"].is_null().all() and table["mean_width"].is_not_null().all()
    assert "no targets" in table["reason"][0]
    assert counts.sentence(table).startswith("With 20 pairs instead of 80")
    check_texts(counts_figure.draw(table, counts.models(data), TEXTS))


def spoken(name: str, table: pl.DataFrame) -> list[float]:
    """Numbers of the table that its sentence must print."""
    where = {"models": "declared"}
    if name == "corruptions":
        return [one(table, **where, corruption=end)["rho"] for end in ("mean", "min", "max")]
    if name == "strata":
        return [one(table, **where, target="street", stratum=s)["rho"] for s in (1, 4)]
    if name == "families":
        row = one(table, **where, outcome="mean")
        return [row[key] for key in ("first_rho", "choices_median", "cluster_low", "rho")]
    if name == "n_pairs":
        return [one(table, **where, outcome="mean", number=n)["rho"] for n in (20, 80)]
    return [one(table, rule=rule, outcome="mean")["rho"] for rule in temperature.RULES]


@pytest.mark.parametrize("name", MODULES)
def test_sentences_print_numbers_of_the_table_under_the_declared_rule(name: str) -> None:
    data = study()
    table = MODULES[name].table(data)
    text = MODULES[name].sentence(table)
    for found in spoken(name, table):
        assert f"{found:.3f}".replace("-", "\u2212") in text
    assert text.endswith(".") and "None" not in text and "nan" not in text


@pytest.mark.parametrize("name", MODULES)
def test_tables_are_written_and_drawn_from_files_as_they_were_computed(
    name: str, tmp_path: Path
) -> None:
    data = study()
    write_table(tmp_path / "evaluations.csv", data.evaluations, {})
    write_table(tmp_path / "m.n_pairs.parquet", data.n_pairs, {"study": "s"})
    for key, record in data.calibrations.items():
        write_json(tmp_path / f"{key}.json", record)
    files = {
        "evaluations": [tmp_path / "evaluations.csv"],
        "n_pairs": [tmp_path / "m.n_pairs.parquet"],
        "calibrations": [tmp_path / f"{key}.json" for key in data.calibrations],
    }
    read = {kind: found for kind, found in files.items() if kind in ANALYSES[name].inputs}
    check_from_files(name, data, tmp_path, read)


def test_the_main_table_has_all_three_intervals() -> None:
    data = study()
    known = agreement.correlations(data.scores, data.outcomes, SETTINGS, data.seed)
    table = main_table.main_table(known, data.texts)
    row = one(table, models="declared", target="Photographs", score="STAMP")
    other = one(known, filter="declared", outcome="plain", predictor="stamp")
    for name in ("fisher_low", "fisher_high", "bootstrap_low", "bootstrap_high"):
        assert row[name] == other[name]
    line = next(
        line
        for line in main_table.markdown(table, data.texts).splitlines()
        if line.startswith("| Photographs | STAMP | declared")
    )
    for kind in ("bonett_wright", "fisher", "bootstrap"):
        assert f"{other[f'{kind}_low']:.3f} to {other[f'{kind}_high']:.3f}" in line


# Figures -----------------------------------------------------------------------------------------


def test_the_figure_of_counts_shows_each_rho_interval_and_width_of_its_tables() -> None:
    data = study()
    table, models = counts.table(data), counts.models(data)
    figure = counts_figure.draw(table, models, data.texts)
    axes = axes_of(figure, "rho")
    marks, bars = artists(axes, "rho"), artists(axes, "interval")
    rows = table.filter(pl.col("models") == "declared").drop_nulls("rho")
    assert len(marks) == len(rows) == 3 * 6  # one of the seven outcomes is the same for all
    assert [text.get_text() for text in axes.texts] == ["\u03c1 undefined"]
    for row in rows.iter_rows(named=True):
        gid = f"{row['outcome']}:{row['number']}"
        assert marks[gid].get_xdata()[0] == row["rho"]
        assert list(bars[gid].get_xdata()) == [row["low"], row["high"]]
        assert marks[gid].get_ydata()[0] == bars[gid].get_ydata()[0]
    heights = [marks[f"plain:{n}"].get_ydata()[0] for n in NUMBERS]
    assert heights == sorted(heights)
    sources = artists(axes, "source")
    plain = one(rows, outcome="plain", number=80)
    assert sources["plain"].get_xdata()[0] == plain["source_metric_rho"]
    drawn = artists(axes_of(figure, "width"), "width")
    assert set(drawn) == set(declared(data))
    first = next(iter(drawn.values()))
    assert list(first.get_ydata()) == pytest.approx([3 / n for n in NUMBERS])
    bright = [int(marks[f"plain:{n}"].get_mfc()[1:3], 16) for n in NUMBERS]
    assert bright == sorted(bright, reverse=True) and min(np.diff(bright[::-1])) > 40


def test_the_figure_of_strata_shows_each_models_values_and_each_rho() -> None:
    data = study()
    table, models = strata.table(data), strata.models(data)
    figure = strata_figure.draw(table, models, data.texts)
    for target, labels in (("street", 4), ("c", 3)):
        axes = axes_of(figure, f"models:{target}")
        drawn = artists(axes, "line")
        rows = models.filter(pl.col("target") == target)
        for (model,), own in rows.group_by("model", maintain_order=True):
            line = drawn[str(model)]
            assert list(line.get_ydata()) == own["value"].to_list()
            assert list(line.get_xdata()) == list(range(labels))
            assert (line.get_linestyle() == "-") == own["counted"][0]
        assert len(drawn) == 12
        right = axes_of(figure, f"rho:{target}")
        found = table.filter(
            pl.col("models") == "declared", pl.col("target") == target, pl.col("what") == "stratum"
        )
        for row in found.iter_rows(named=True):
            stratum = str(row["stratum"])
            assert artists(right, "rho")[stratum].get_ydata()[0] == row["rho"]
            ends = artists(right, "interval")[stratum].get_ydata()
            assert list(ends) == [row["low"], row["high"]]
            source = artists(right, "source")[stratum].get_ydata()[0]
            assert source == row["source_metric_rho"]
    words = " ".join(text.get_text() for text in axes_of(figure, "sheet").texts)
    gap = one(table, models="declared", target="street", what="absolute gap")
    assert f"income-4 minus income-1: \u03c1 = {gap['rho']:.2f}".replace("-0", "\u22120") in words


def test_many_outcomes_and_numbers_of_pairs_still_fit() -> None:
    data = study(excluded={})
    rows: list[dict[str, Any]] = []
    rng = np.random.default_rng(0)
    for key in data.models:
        rows += evaluated(key, "source", {"all": rng.random()})
        kinds = {f"kind_of_corruption_{k}-{s}": rng.random() for k in range(15) for s in (1, 2)}
        rows += evaluated(key, "c", {"all": 0.5, **kinds})
        rows += evaluated(
            key, "street", {"all": 0.5, **{f"income-{s}": rng.random() for s in range(1, 13)}}
        )
    table = pl.DataFrame(rows)
    scored = [
        {**row, "number": number}
        for row in data.n_pairs.filter(pl.col("number") == 80).rows(named=True)
        for number in (500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
    ]
    data = replaced(
        data,
        evaluations=table,
        outcomes=outcomes.outcomes(table, {"c": "kind", "street": "domain"}),
        n_pairs=pl.DataFrame(scored, schema=N_PAIRS),
    )
    for name, figure in FIGURES.items():
        module = MODULES[name]
        check_texts(figure.draw(module.table(data), module.models(data), data.texts))
