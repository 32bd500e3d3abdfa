"""The analyses of profiles: against loops, scipy and scikit-learn; figures against their tables."""

from __future__ import annotations

from dataclasses import replace
from math import comb
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest
from analysis_job import check_from_files
from benchmarks.made_up_profiles import DRAWS, profile
from figures_check import artists, axes_of, points_of
from made_up_study import declared, one, study
from scipy.stats import page_trend_test, rankdata, spearmanr
from sklearn.inspection import permutation_importance
from sklearn.linear_model import RidgeCV

from stamp.config.registries.analyses import ANALYSES
from stamp.core.artifacts import write_table
from stamp.report import analyses
from stamp.report.analyses.bounds import table as bounds
from stamp.report.analyses.cosines import table as cosines
from stamp.report.analyses.gaps import figure as gaps_figure
from stamp.report.analyses.gaps import table as gaps
from stamp.report.analyses.identifiability import table as identifiability
from stamp.report.analyses.layers import figure as layers_figure
from stamp.report.analyses.layers import table as layers
from stamp.report.analyses.motif import figure as motif_figure
from stamp.report.analyses.motif import table as motif
from stamp.report.analyses.nuisance import figure as nuisance_figure
from stamp.report.analyses.nuisance import table as nuisance
from stamp.report.analyses.ordering import table as ordering
from stamp.report.analyses.robustness import figure as robustness_figure
from stamp.report.analyses.robustness import table as robustness
from stamp.report.analyses.seeds import table as seeds
from stamp.report.analysis import AnalysisData
from stamp.report.outcomes import values
from stamp.report.profiles.associations import STAMP
from stamp.report.profiles.rows import as_table
from stamp.report.wording import number
from stamp.stats.ridge import ALPHAS, fit

MODULES: dict[str, ModuleType] = {
    "bounds": bounds,
    "cosines": cosines,
    "gaps": gaps,
    "identifiability": identifiability,
    "layers": layers,
    "motif": motif,
    "nuisance": nuisance,
    "ordering": ordering,
    "robustness": robustness,
    "seeds": seeds,
}
FIGURES: dict[str, ModuleType] = {
    "gaps": gaps_figure,
    "layers": layers_figure,
    "motif": motif_figure,
    "nuisance": nuisance_figure,
    "robustness": robustness_figure,
}


def profiled(name: str, missing: int = 0, **options: Any) -> AnalysisData:
    """A made-up study with one kind of profiles; some models have none, with a reason."""
    data = study(**options)
    rng = np.random.default_rng(11)
    tables = []
    for at, row in enumerate(data.scores.to_dicts()):
        rows = profile(ANALYSES[name].profile, row["raw"], rng)
        if at < missing:
            rows = [
                {**each, "value": None, "low": None, "high": None, "reason": "no such layer"}
                for each in rows
            ]
        tables.append(as_table(row["model"], rows))
    board = data.scores.with_columns(
        low=pl.col("raw") - 0.05, high=pl.col("raw") + 0.07, se_bootstrap=pl.lit(0.03)
    )
    return replace(data, scores=board, profiles=pl.concat(tables))


def known(data: AnalysisData, quantity: str, part: str | None, keys: list[str]) -> np.ndarray:
    rows = data.profiles.filter(
        (pl.col("quantity") == quantity) & pl.col("part").eq_missing(pl.lit(part))
    )
    found = dict(rows.select("model", "value").iter_rows())
    return np.array([found[key] for key in keys], dtype=float)


def raw(data: AnalysisData, keys: list[str]) -> np.ndarray:
    found = dict(data.scores.select("model", "raw").iter_rows())
    return np.array([found[key] for key in keys])


def test_the_source_metric_stands_beside_a_quantity_over_the_models_that_have_the_quantity() -> (
    None
):
    data = profiled("nuisance", missing=3)
    keys = [key for key in declared(data) if key not in data.scores["model"].to_list()[:3]]
    row = one(nuisance.table(data), models="declared", augmentation="flip", outcome="plain")
    truth, source = (values(data.outcomes, name, keys) for name in ("plain", "source"))
    assert row["n"] == len(keys)
    assert row["source_metric_rho"] == pytest.approx(spearmanr(source, truth)[0])
    everyone = [values(data.outcomes, name, declared(data)) for name in ("plain", "source")]
    assert row["source_metric_rho"] != pytest.approx(spearmanr(*everyone)[0])


def test_the_mean_of_a_quantity_is_over_the_models_of_its_row() -> None:
    data = profiled("nuisance")
    gone = declared(data)[0]
    none = (pl.col("model") == gone) & (pl.col("outcome") == "plain")
    outcomes = data.outcomes.with_columns(value=pl.when(none).then(None).otherwise("value"))
    data = replace(data, outcomes=outcomes)
    keys = [key for key in declared(data) if key != gone]
    row = one(nuisance.table(data), models="declared", augmentation="flip", outcome="plain")
    assert row["n"] == len(keys)
    assert row["mean"] == pytest.approx(known(data, "ratio", "flip", keys).mean())


# Every analysis ----------------------------------------------------------------------------------


def test_an_analysis_of_profiles_names_its_passes_and_has_a_module_that_makes_its_profile() -> None:
    folder = Path(analyses.__file__).parent
    assert set(MODULES) == {name for name, analysis in ANALYSES.items() if analysis.profile}
    for name in MODULES:
        profile_name = ANALYSES[name].profile
        assert (folder / profile_name / "profile.py").is_file()
        assert ANALYSES[name].extra_outputs == ANALYSES[profile_name].extra_outputs


@pytest.mark.parametrize("name", MODULES)
def test_tables_come_out_of_files_as_they_were_computed(name: str, tmp_path: Path) -> None:
    data = profiled(name, missing=2)
    files = []
    for (model,), own in data.profiles.group_by("model", maintain_order=True):
        write_table(tmp_path / f"{model}.parquet", own, {"study": "s"})
        files.append(tmp_path / f"{model}.parquet")
    check_from_files(name, data, tmp_path, {"profiles": files})


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize(
    "options",
    [
        {"missing": 12},
        {"count": 3, "excluded": {}},
        {"count": 5, "excluded": dict.fromkeys(range(5), ("temperature",))},
        {"targets": False},
        {"degenerate": (0, 1), "missing": 3},
    ],
    ids=["no profile", "three models", "none counted", "no targets", "degenerate"],
)
def test_a_study_that_lacks_something_gets_reasons_and_a_sentence(
    name: str, options: dict[str, Any]
) -> None:
    data, module = profiled(name, **options), MODULES[name]
    table = module.table(data)
    assert len(table) and len(module.models(data))
    assert module.sentence(table).endswith(".") and "None" not in module.sentence(table)
    if "excluded" in options and options["count"] == 5:
        assert module.sentence(table).startswith("No ")
    if "rho" in table.columns and name not in ("seeds", "motif"):
        lost = table.filter(pl.col("rho").is_null())
        if name == "cosines":  # its first rows count models
            lost = lost.filter(pl.col("count").is_null())
        assert lost["reason"].is_not_null().all()


# Gaps, seeds -------------------------------------------------------------------------------------


def test_each_gaps_rho_is_that_of_its_own_scores_with_the_outcome() -> None:
    data = profiled("gaps")
    keys = declared(data)
    table = gaps.table(data)
    for gap in (1, 2, 10):
        own = known(data, "stamp", str(gap), keys)
        row = one(table, models="declared", outcome="plain", gap=gap)
        assert row["rho"] == pytest.approx(spearmanr(own, values(data.outcomes, "plain", keys))[0])
        assert row["mean"] == pytest.approx(own.mean())
        assert (row["pairs"], row["changed"]) == (50, 10 + gap)
        row = one(table, models="declared", outcome=STAMP, gap=gap)
        assert row["rho"] == pytest.approx(spearmanr(own, raw(data, keys))[0])
    words = gaps.sentence(table)
    assert "11 changed label" in words and "20 changed" in words and "noise" not in words


def test_the_spread_over_draws_stands_beside_the_bootstraps() -> None:
    data = profiled("seeds")
    keys = declared(data)
    truth = values(data.outcomes, "plain", keys)
    for redrawn in seeds.REDRAWN:
        own = np.stack([known(data, redrawn, str(draw), keys) for draw in range(DRAWS)])
        row = one(seeds.table(data), models="declared", redrawn=redrawn, outcome="plain")
        assert row["mean_sd"] == pytest.approx(own.std(axis=0, ddof=1).mean())
        assert row["largest_sd"] == pytest.approx(own.std(axis=0, ddof=1).max())
        assert row["mean_half_width"] == pytest.approx(0.06)
        ranks = [spearmanr(draw, raw(data, keys))[0] for draw in own]
        assert row["rank_mean"] == pytest.approx(np.mean(ranks))
        assert row["rank_lowest"] == pytest.approx(min(ranks))
        rho = [spearmanr(draw, truth)[0] for draw in own]
        assert (row["rho_lowest"], row["rho_highest"]) == pytest.approx((min(rho), max(rho)))
        assert row["rho"] == pytest.approx(spearmanr(raw(data, keys), truth)[0])


# Layers, motif -----------------------------------------------------------------------------------


def test_gains_are_differences_of_neighbouring_layers() -> None:
    data = profiled("layers")
    keys = declared(data)
    truth = values(data.outcomes, "plain", keys)
    table, rows = layers.table(data), layers.models(data)
    for kind in layers.KINDS:
        at = {layer: known(data, kind, layer, keys) for layer in layers.LAYERS}
        for what, first, second in (
            ("gain", "mid", "late"),
            ("gain", "penultimate", "output"),
            ("span", "mid", "penultimate"),
            ("deep minus early", "early", "penultimate"),
        ):
            where = {"kind": kind, "what": what, "layer": f"{first} to {second}"}
            row = one(table, models="declared", outcome="plain", **where)
            assert row["rho"] == pytest.approx(spearmanr(at[second] - at[first], truth)[0])
            own = one(rows, model=keys[0], **where)
            assert own["value"] == pytest.approx(at[second][0] - at[first][0])
    assert rows.group_by("model").len()["len"].unique().to_list() == [2 * (5 + 4 + 1 + 1)]


def test_the_ridge_is_scikit_learns_on_ranks() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 6)), rng.normal(size=30)
    y += x[:, 0] - 0.5 * x[:, 3]
    ranks = motif.unit_ranks(x)
    assert ranks[:, 0] == pytest.approx((rankdata(x[:, 0]) - 1) / 29)
    found = fit(ranks, y, 200, 1)
    columns = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)
    scaled = (y - y.mean()) / y.std()
    other = RidgeCV(alphas=ALPHAS, store_cv_results=True).fit(columns, scaled)
    assert found.alpha == pytest.approx(other.alpha_)
    assert found.coefficients == pytest.approx(other.coef_)
    assert found.r2 == pytest.approx(other.score(columns, scaled))
    drawn = permutation_importance(other, columns, scaled, n_repeats=400, random_state=0)
    assert found.importance == pytest.approx(drawn.importances_mean, abs=0.02)
    errors = []
    for i in range(30):
        keep = np.arange(30) != i
        own = RidgeCV(alphas=[found.alpha]).fit(columns[keep], scaled[keep])
        errors.append(
            (scaled[i] - own.predict(columns[i : i + 1])[0], scaled[i] - scaled[keep].mean())
        )
    left, blind = np.square(errors).sum(axis=0)
    assert found.loo_r2 == pytest.approx(1 - left / blind, abs=1e-6)
    assert found.p == 1 / 201


def test_the_regressions_p_is_uniform_where_nothing_is_to_be_found() -> None:
    rng = np.random.default_rng(5)
    p = [fit(rng.normal(size=(20, 5)), rng.normal(size=20), 99, s).p for s in range(200)]
    assert np.mean(np.array(p) <= 0.1) == pytest.approx(0.1, abs=0.06)
    assert np.mean(p) == pytest.approx(0.5, abs=0.06)


def test_the_motif_has_each_features_own_rho_beside_its_coefficient() -> None:
    data = profiled("motif", count=20)
    keys = declared(data)
    truth = values(data.outcomes, "plain", keys)
    table = motif.table(data)
    row = one(table, models="declared", outcome="plain", kind="raw", feature="output")
    assert row["rho"] == pytest.approx(spearmanr(known(data, "raw", "output", keys), truth)[0])
    rows = table.filter(
        (pl.col("models") == "declared")
        & (pl.col("outcome") == "plain")
        & (pl.col("kind") == "raw")
    )
    assert rows["feature"].to_list()[:5] == list(layers.LAYERS) and len(rows) == 11
    assert rows["loo_r2"].n_unique() == 1 and row["n"] == len(keys)
    columns = np.stack([known(data, "raw", layer, keys) for layer in layers.LAYERS], axis=1)
    early, mid, late, penultimate, output = columns.T
    steps = [mid - early, late - mid, penultimate - late, output - penultimate]
    whole = np.column_stack([columns, *steps, penultimate - mid, penultimate - early])
    direct = fit(motif.unit_ranks(whole), truth, 400, data.seed)
    assert rows["coefficient"].to_numpy() == pytest.approx(direct.coefficients)


# Nuisance, ordering ------------------------------------------------------------------------------


def test_the_nuisance_ratio_goes_against_stamp_where_augmentation_moves_bad_models() -> None:
    data = profiled("nuisance")
    keys = declared(data)
    table = nuisance.table(data)
    for kind in nuisance.AUGMENTATIONS:
        own = known(data, "ratio", kind, keys)
        row = one(table, models="declared", outcome=STAMP, augmentation=kind)
        assert row["rho"] == pytest.approx(spearmanr(own, raw(data, keys))[0])
    assert one(table, models="declared", outcome=STAMP, augmentation="composite")["rho"] < -0.8
    rows = nuisance.models(data)
    mean = dict(zip(keys, values(data.outcomes, "mean", keys), strict=True))
    first = one(rows, model=keys[0], augmentation="flip")
    assert first["outcome"] == "mean" and first["outcome_value"] == pytest.approx(mean[keys[0]])


def test_orders_are_counted_and_held_against_chance() -> None:
    data = profiled("ordering", count=30)
    keys = declared(data)
    means = np.stack([known(data, name, None, keys) for name in "BACD"], axis=1)
    full = sum(a <= b <= c <= d for a, b, c, d in means)
    table = ordering.table(data)
    row = one(table, models="declared", what="B <= A <= C <= D")
    assert (row["count"], row["n"]) == (full, len(keys))
    n = len(keys)
    tail = [comb(n, k) * (1 / 24) ** k * (23 / 24) ** (n - k) for k in range(full, n + 1)]
    assert row["p"] == pytest.approx(sum(tail))
    last = [m for m in means if m.argmax() == 3]
    row = one(table, models="declared", what=ordering.LAST)
    assert (row["count"], row["n"]) == (sum(a <= b <= c for a, b, c, _ in last), len(last))
    assert row["chance"] == pytest.approx(1 / 6)
    step = one(table, models="declared", what="A <= C")
    assert step["count"] == sum(a <= c for _, a, c, _ in means) and step["chance"] == 0.5
    page = one(table, models="declared", what="Page's L")
    ranks = np.apply_along_axis(rankdata, 1, means)
    assert page["statistic"] == ranks.sum(axis=0) @ [1, 2, 3, 4]
    assert page["p"] == pytest.approx(page_trend_test(means).pvalue)
    own = one(ordering.models(data), model=keys[0])
    assert own["found"] == " < ".join(np.array(list("BACD"))[np.argsort(means[0])])
    assert own["order"] == bool(np.all(np.diff(means[0]) >= 0)) and own["n_C"] == 40


# Identifiability, bounds -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lipschitz", "lipschitz_spectral", "lipschitz_pairs"])
def test_correlations_within_a_family_use_its_own_models_only(name: str) -> None:
    data = profiled("identifiability", count=30)
    table = identifiability.table(data)
    for family in (identifiability.POOLED, "family 1"):
        keys = [
            key
            for key in declared(data)
            if family in (identifiability.POOLED, data.models[key]["family"])
        ]
        own = known(data, name, None, keys)
        where = {"models": "declared", "quantity": name, "family": family}
        row = one(table, outcome=STAMP, **where)
        assert row["n"] == len(keys)
        assert row["rho"] == pytest.approx(spearmanr(own, raw(data, keys))[0])
        row = one(table, outcome="plain", **where)
        truth = values(data.outcomes, "plain", keys)
        assert row["rho"] == pytest.approx(spearmanr(own, truth)[0])


def test_correlations_within_a_superfamily_leave_out_models_that_are_in_none() -> None:
    data = profiled("identifiability", count=30)
    coarse = {key: f"group {at % 2}" for at, key in enumerate(sorted(data.models)[:20])}
    described = {
        key: {**said, **({"superfamily": coarse[key]} if key in coarse else {})}
        for key, said in data.models.items()
    }
    data = replace(data, models=described)
    table = identifiability.table(data)
    keys = [key for key in declared(data) if coarse.get(key) == "group 1"]
    where = {"models": "declared", "quantity": "centroid_gap", "group": "superfamily"}
    row = one(table, outcome=STAMP, family="group 1", **where)
    rho = spearmanr(known(data, "centroid_gap", None, keys), raw(data, keys))[0]
    assert (row["n"], row["rho"]) == (len(keys), pytest.approx(rho))
    assert set(table.filter(group="superfamily")["family"]) == {"group 0", "group 1"}
    assert "within superfamilies: group 0 " in identifiability.sentence(table)
    assert "superfamilies" not in identifiability.sentence(
        identifiability.table(profiled("identifiability", count=30))
    )


def test_the_score_of_labeled_pairs_stands_beside_stamp_where_it_is_there() -> None:
    data = profiled("identifiability", count=30)
    assert "stamp_labeled" not in identifiability.table(data)["outcome"]
    labeled = np.random.default_rng(5).normal(size=30)
    data = replace(data, scores=data.scores.with_columns(stamp_labeled=pl.Series(labeled)))
    table = identifiability.table(data)
    keys = declared(data)
    row = one(
        table,
        models="declared",
        outcome="stamp_labeled",
        quantity="lipschitz",
        family=identifiability.POOLED,
    )
    of = dict(zip(data.scores["model"], labeled, strict=True))
    expected = spearmanr(known(data, "lipschitz", None, keys), [of[key] for key in keys])[0]
    assert (row["n"], row["rho"]) == (len(keys), pytest.approx(expected))
    assert f"with {row['title']} is {number(row['rho'])}" in identifiability.sentence(table)


def test_variants_of_the_proxy_are_named_after_it_by_their_pooled_rho_alone() -> None:
    data = profiled("identifiability", count=30)
    table = identifiability.table(data)
    said = identifiability.sentence(table)
    keys = declared(data)
    for name, title in identifiability.VARIANTS["lipschitz"].items():
        rho = spearmanr(known(data, name, None, keys), raw(data, keys))[0]
        words = f"{title}, \N{GREEK SMALL LETTER RHO} {number(rho)} with STAMP (n = {len(keys)})"
        assert said.count(title) == 1 and said.index(words) > said.index("Lipschitz proxy: ")


@pytest.mark.parametrize("gone", ["lipschitz", "lipschitz_spectral", "lipschitz_"])
def test_variants_that_no_model_has_are_not_named(gone: str) -> None:
    table = identifiability.table(profiled("identifiability", count=30))
    quantity = pl.col("quantity")
    lost = quantity.str.starts_with(gone) if gone.endswith("_") else quantity == gone
    said = identifiability.sentence(
        table.with_columns(
            rho=pl.when(~lost).then(pl.col("rho")), reason=pl.when(lost).then(pl.lit("none"))
        )
    )
    assert ("No Lipschitz proxy: none." in said) == (gone == "lipschitz")
    assert ("Jacobian" in said) == (gone == "lipschitz")
    assert ("Its variants: " in said) == (gone != "lipschitz_")


def test_models_whose_semantic_pairs_are_more_alike_are_counted_and_the_others_named() -> None:
    data = profiled("cosines", missing=1, count=20)
    keys = [key for key in declared(data) if not np.isnan(known(data, "delta", None, [key])[0])]
    gap, delta = (known(data, name, None, keys) for name in ("difference", "delta"))
    table = cosines.table(data)
    row = one(table, models="declared", what=cosines.COUNT)
    assert 0 < (gap > 0).sum() < len(keys), "the made-up study has both kinds"
    assert (row["n"], row["count"]) == (len(keys), (gap > 0).sum())
    assert row["share"] == pytest.approx(np.mean(gap > 0))
    assert set(row["exceptions"].split(", ")) == {
        key for key, own in zip(keys, gap, strict=True) if own <= 0
    }
    assert (row["delta_least"], row["delta_largest"]) == (delta.min(), delta.max())
    assert row["log10_p_largest"] == max(known(data, "log10_p", None, keys))
    rho = spearmanr(delta, values(data.outcomes, "plain", keys))[0]
    own = one(table, models="declared", quantity="delta", outcome="plain")
    assert (own["n"], own["rho"]) == (len(keys), pytest.approx(rho))
    said = cosines.sentence(table)
    assert f"In {row['count']} of {row['n']} models" in said and row["exceptions"] in said
    lost = cosines.models(data).filter(pl.col("delta").is_null())
    assert lost["reason"].to_list() == ["no such layer"]


def test_the_index_is_below_one_only_for_scores_above_four_fifths() -> None:
    score = np.array([0.85, 0.8, 0.5, 0.0, -0.2, np.nan])
    found = bounds.index(score)
    assert found[:3] == pytest.approx([4 * 0.15 / 0.85, 1.0, 4.0]) and np.isnan(found[3:]).all()
    data = profiled("bounds")
    keys = declared(data)
    row = one(bounds.table(data), models="declared", outcome=STAMP, term="index")
    assert row["rho"] == -1
    assert row["below_one"] == int((raw(data, keys) > 0.8).sum())
    own = known(data, "cv", None, keys)
    row = one(bounds.table(data), models="declared", outcome=STAMP, term="cv")
    assert (row["median"], row["highest"]) == pytest.approx((np.median(own), own.max()))
    said = bounds.sentence(bounds.table(data))
    assert "no bound" in said and f"of {len(keys)} models with a score above 0" in said
    below = pl.when(pl.col("model") == keys[0]).then(-0.1).otherwise("stamp")
    data = replace(data, scores=data.scores.with_columns(stamp=below))
    assert f"of {len(keys) - 1} models with a score above 0" in bounds.sentence(bounds.table(data))


# Figures -----------------------------------------------------------------------------------------


def test_the_figure_of_layers_has_a_cell_a_model_and_layer_and_each_rho_of_its_table() -> None:
    data = profiled("layers", missing=2)
    table, rows = layers.table(data), layers.models(data)
    figure = layers_figure.draw(table, rows, data.texts)
    cells = axes_of(figure, "raw:layer").collections[0].get_array()
    known_cells = rows.filter((pl.col("kind") == "raw") & (pl.col("what") == "layer"))
    order = known_cells.sort("outcome_value", descending=True)["model"].unique(maintain_order=True)
    values = {(row["model"], row["layer"]): row["value"] for row in known_cells.to_dicts()}
    expected = [[values[model, layer] for layer in layers.LAYERS] for model in order]
    np.testing.assert_array_equal(cells.filled(np.nan), np.array(expected, float))
    texts = {text.get_gid(): text.get_text() for text in axes_of(figure, "raw:gain").texts}
    where = {"models": "declared", "outcome": "mean", "kind": "raw", "what": "gain"}
    row = one(table, layer="mid to late", **where)
    shown = texts["rho:mean:mid to late"].replace("\u2212", "-")
    assert float(shown) == pytest.approx(row["rho"], abs=0.005001)
    names = [text.get_text() for text in axes_of(figure, "sheet").texts]
    best = rows.sort("outcome_value", descending=True).row(0, named=True)["label"]
    assert next(name for name in names if name.startswith("Model ")).startswith(best)


def test_the_figure_of_the_motif_shows_the_coefficients_of_its_table() -> None:
    data = profiled("motif", count=20)
    table = motif.table(data)
    figure = motif_figure.draw(table, motif.models(data), data.texts)
    for name in ("coefficient", "rho", "importance"):
        bars = {patch.get_gid(): patch.get_width() for patch in axes_of(figure, name).patches}
        rows = table.filter((pl.col("models") == "declared") & (pl.col("outcome") == "mean"))
        assert len(bars) == len(rows) == 22
        for row in rows.to_dicts():
            assert bars[f"{name}:{row['kind']}:{row['feature']}"] == pytest.approx(row[name])


def test_the_robustness_table_has_means_over_counted_models_the_worst_change_first() -> None:
    data = profiled("robustness", missing=2)
    keys = [key for key in declared(data) if key not in data.scores["model"].to_list()[:2]]
    table = robustness.table(data)
    changes = ["blur", "jpeg", "noise", "small_rotation"]
    changes.sort(key=lambda change: -known(data, "fall", change, keys).mean())
    assert table["change"].to_list() == ["mean", *changes]
    for change in table["change"]:
        falls = dict(zip(keys, known(data, "fall", change, keys), strict=True))
        row = one(table, change=change)
        assert row["models"] == len(keys) and row["images"] == 50
        assert row["fall"] == pytest.approx(np.mean(list(falls.values())))
        worst = max(falls, key=lambda key: falls[key])
        assert row["largest_fall"] == falls[worst]
        assert row["largest_model"] == data.models[worst]["label"]
        assert row["stability"] == pytest.approx(known(data, "stability", change, keys).mean())
    said = robustness.sentence(table)
    assert "Under 4 changes of 50 labeled source images" in said
    assert f"falls the most {robustness.spoken(changes[0])}" in said
    assert number(one(table, change="mean")["fall"]) in said


def test_the_worst_changes_of_a_model_are_told_in_words() -> None:
    data = profiled("robustness")
    rows = robustness.models(data)
    key = data.scores["model"][3]
    own = rows.filter(
        (pl.col("model") == key)
        & (pl.col("classes") == "all")
        & ~pl.col("change").is_in(["clean", "mean"])
    )
    first = own.sort("fall", descending=True).row(0, named=True)
    said = robustness.worst_changes(rows, key, 0.9)
    assert len(said) == 3
    assert said[0].startswith(
        f"Top-1 accuracy falls from {first['clean']:.2f} to {first['value']:.2f}"
    )
    assert first["change"].replace("_", " ") in said[0]
    assert f"90 % interval {number(first['fall_low'])}" in said[0]
    assert robustness.worst_changes(rows, "nobody", 0.9) == []
    other = rows.filter((pl.col("model") == key) & (pl.col("classes") == "clinic/all"))
    assert other["change"].to_list() == ["clean"]


def test_the_figure_of_robustness_has_a_cell_for_each_model_and_change() -> None:
    data = profiled("robustness", missing=2)
    table, rows = robustness.table(data), robustness.models(data)
    figure = robustness_figure.draw(table, rows, data.texts)
    every = rows.filter(pl.col("classes") == "all").drop_nulls("value")
    value = {(row["model"], row["change"]): row for row in every.to_dicts()}
    order = sorted({model for model, _ in value}, key=lambda model: -value[model, "mean"]["value"])
    expected = [[-value[key, one]["fall"] for one in table["change"]] for key in order]
    cells = axes_of(figure, "falls").collections[0].get_array()
    np.testing.assert_allclose(cells.filled(np.nan), expected)
    clean = axes_of(figure, "clean").collections[0].get_array()
    np.testing.assert_allclose(clean.ravel(), [value[key, "clean"]["value"] for key in order])


def test_the_figures_of_gaps_and_nuisance_show_their_tables() -> None:
    data = profiled("nuisance", missing=1)
    table, rows = nuisance.table(data), nuisance.models(data)
    figure = nuisance_figure.draw(table, rows, data.texts)
    own = rows.filter((pl.col("augmentation") == "composite") & pl.col("ratio").is_not_null())
    points = points_of(axes_of(figure, "points:stamp"))
    assert set(points) == set(own["model"])
    for row in own.to_dicts():
        assert points[row["model"]].x == row["ratio"]
        assert points[row["model"]].y == row["stamp"]
    rho = artists(axes_of(figure, "rho"), "rho")
    assert rho["mean:flip"].get_xdata()[0] == pytest.approx(
        one(table, models="declared", outcome="mean", augmentation="flip")["rho"]
    )
    data = profiled("gaps")
    table = gaps.table(data)
    figure = gaps_figure.draw(table, gaps.models(data), data.texts)
    drawn = artists(axes_of(figure, "scores"), "line")
    key = declared(data)[0]
    assert list(drawn[key].get_ydata()) == pytest.approx(
        [known(data, "stamp", gap, [key])[0] for gap in ("1", "2", "10")]
    )
    row = one(table, models="declared", outcome=STAMP, gap=10)
    assert artists(axes_of(figure, "rho"), "rho")["stamp:10"].get_ydata()[0] == row["rho"]
