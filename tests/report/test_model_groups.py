"""Objectives, regimes, backbones, parts of the score and kinds of pairs, on the paper's 44 models.

The scores are those that the paper prints, so that its groups can be computed again; what the
models reach on the targets is made up.
"""

from __future__ import annotations

import itertools
import math
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from analysis_job import check_from_files
from figures_check import artists, axes_of, check_texts, points_of
from made_up_study import one, replaced
from scipy import stats

from stamp.config.registries.analyses import ANALYSES
from stamp.core.artifacts import write_table
from stamp.metrics.value import COLUMNS as METRIC_COLUMNS
from stamp.report import model_groups, outcomes
from stamp.report.analyses.ablation import table as ablation
from stamp.report.analyses.backbones import table as backbones
from stamp.report.analyses.families.table import step
from stamp.report.analyses.objectives import table as objectives
from stamp.report.analyses.pair_kinds import table as kinds
from stamp.report.analyses.regimes import table as regimes
from stamp.report.analysis import NO_TARGETS, AnalysisData
from stamp.report.comparison.common_set import common
from stamp.report.plot.violins import swarm
from stamp.scoring.score import N_PAIRS
from stamp.stats.effect_sizes import cliffs_delta, mean_difference

ROOT = Path(__file__).parents[2]
ZOO = yaml.safe_load((ROOT / "config" / "zoo" / "medical.yaml").read_text())
# Table tab:stamp_main, in its order, which is that of the zoo.
PRINTED = """
.7764 .7818 .7802 .7760 .7728 .7832 .7786 .7878 .7723 .7540 .7914 .7888 .8042 .8054 .7807 .7935
.7763 .7734 .7870 .7925 .8030 .7997 .7960 .7965 .7994 .7922 .7876 .7942 .7897 .7880 .7755
.7127 .7172 .6658 .7354 .7535 .6258 .7006 .6964 .5997 .7307 .4932 .7510 .7751
"""
SCORES = dict(zip(ZOO, map(float, PRINTED.split()), strict=True))
SETTINGS = {"permutations": 500, "resamples": 300, "level": 0.9}
TARGETS = {"vindr": "VinDr-CXR", "chexpert": "CheXpert", "mimic": "MIMIC-CXR", "rsna": "RSNA"}
TEXTS = {
    "title": "Chest X-rays",
    "notice": "Made up.",
    "task": "multilabel",
    "level": 0.9,
    "targets": TARGETS,
    "outcomes": {},
    "matched": [],
    "relabelled": [],
}


def study(
    keys: list[str] | None = None,
    targets: tuple[str, ...] = tuple(TARGETS),
    degenerate: tuple[str, ...] = (),
    excluded: tuple[str, ...] = (),
    also: tuple[str, ...] = ("labeled", "changed"),
    synthetic: bool = True,
    label: str = "{}",
    settings: dict[str, Any] = SETTINGS,
    **texts: Any,
) -> AnalysisData:
    """The chest X-ray study of some models, all of them unless told."""
    rng = np.random.default_rng(11)
    keys = sorted(ZOO if keys is None else keys)
    raw = np.array([SCORES[key] for key in keys])
    count = len(keys)
    shown = [None if key in degenerate else SCORES[key] for key in keys]
    total = rng.uniform(0.005, 0.027, count)
    board: dict[str, Any] = {
        "model": keys,
        "kind": ["temporal"] * count,
        "stamp": pl.Series(shown, dtype=pl.Float64),
        "raw": raw,
        "within": (1 - raw) * (total + 1e-8),
        "total": total,
        "degenerate": [key in degenerate for key in keys],
        "contaminated": pl.Series([None] * count, dtype=pl.String),
    }
    for at, kind in enumerate(also):
        other = raw + (0.05, -0.04)[at] + rng.normal(0, 0.01, count)
        board[f"stamp_{kind}"] = other
        board[f"within_{kind}"] = (1 - other) * (total + 1e-8)
    why = pl.Series(["near chance" if key in excluded else None for key in keys], dtype=pl.String)
    rows = [
        {"model": key, "view": view, "domain": "all", "class": "macro", "metric": "auroc", "n": 100}
        | {"value": 0.55 + 0.35 * score + noise * rng.normal(), "se": 0.01}
        for key, score in zip(keys, raw, strict=True)
        for view, noise in zip(("source", *targets), (0.01, 0.01, 0.02, 0.02, 0.05), strict=False)
    ]
    metrics = [
        {"model": key, "metric": "aug_composite", "value": 0.9 + 0.1 * rng.random(), "n": 10}
        for key in keys
        if synthetic
    ]
    evaluations = pl.DataFrame(rows)
    said = ("label", "family", "objective", "regime", "backbone")
    return AnalysisData(
        scores=pl.DataFrame(board).with_columns(
            excluded=why, excluded_chance=why, excluded_temperature=why
        ),
        outcomes=outcomes.outcomes(evaluations, {}),
        evaluations=evaluations,
        n_pairs=pl.DataFrame(schema=N_PAIRS),
        calibrations={},
        metrics=pl.DataFrame(metrics, schema={"model": pl.String, **METRIC_COLUMNS}),
        models={
            key: {part: ZOO[key][part] for part in said if part in ZOO[key]}
            | {"label": label.format(ZOO[key]["label"])}
            for key in keys
        },
        texts={**TEXTS, **texts},
        settings=settings,
        seed=3,
    )


FIGURES = {
    name: import_module(f"stamp.report.analyses.{name}.figure")
    for name in ("objectives", "regimes", "backbones", "ablation", "pair_kinds")
}
MODULES = {name: import_module(f"stamp.report.analyses.{name}.table") for name in FIGURES}


def scored(*names: str, column: str = "objective") -> list[float]:
    return [SCORES[key] for key in ZOO if ZOO[key][column] in names]


def outcome(data: AnalysisData, name: str) -> dict[str, float]:
    rows = data.outcomes.filter(pl.col("outcome") == name)
    return dict(rows.select("model", "value").iter_rows())


# Strata ------------------------------------------------------------------------------------------


def test_the_papers_objectives_come_out_of_its_printed_scores() -> None:
    """H = 25.5, p = 1.2e-5; one-sided p = 2.7e-6, delta 1; the sds are those with divisor n."""
    table = objectives.table(study())
    where = {"models": "all", "of": "stamp"}
    test = one(table, **where, what="test")
    assert test["statistic"] == pytest.approx(25.53, abs=0.005)
    assert (test["n"], test["df"], test["p"]) == (43, 3, pytest.approx(1.2e-5, rel=0.02))
    pair = one(table, **where, what="pair", stratum="CE-Supervised", other="SSL")
    assert pair["p_greater"] == pytest.approx(1 / math.comb(36, 5)) == pytest.approx(2.65e-6, 2e-3)
    assert pair["p"] == pytest.approx(2 / math.comb(36, 5))
    assert (pair["delta"], pair["delta_low"], pair["delta_high"]) == (1, 1, 1)
    assert (pair["n"], pair["other_n"]) == (31, 5)
    printed = {"CE-Supervised": (31, 0.786, 0.011), "SSL": (5, 0.717, 0.029)}
    printed |= {"VL-Contrastive": (3, 0.674, 0.034), "TXV": (4, 0.6437, 0.1045)}
    for name, (n, mean, sd) in printed.items():
        row = one(table, **where, what="stratum", stratum=name)
        assert row["n"] == n
        assert (row["mean"], row["sd_n"]) == pytest.approx((mean, sd), abs=5e-4)
        assert row["sd"] == pytest.approx(np.std(scored(name), ddof=1))
        assert (row["lowest"], row["highest"]) == (min(scored(name)), max(scored(name)))


def test_the_papers_regimes_differ_where_it_says_that_they_do_not() -> None:
    """Convolutional and transformer regimes: exact p = .0030, where it prints p > .65."""
    table = regimes.table(study())
    where = {"models": "all", "of": "stamp"}
    assert one(table, **where, what="test")["statistic"] == pytest.approx(30.1, abs=0.05)
    vit = one(table, **where, what="stratum", stratum="NIH-ViT")
    assert (vit["mean"], vit["sd_n"]) == pytest.approx((0.7948, 0.0049), abs=5e-5)
    pair = one(table, **where, what="pair", stratum="NIH-CNN", other="NIH-ViT")
    assert pair["p"] == pytest.approx(0.0030, abs=5e-5)
    x, y = scored("NIH-CNN", column="regime"), scored("NIH-ViT", column="regime")
    known = stats.mannwhitneyu(x, y, method="exact")
    normal = stats.mannwhitneyu(x, y, method="asymptotic").pvalue
    assert normal == pytest.approx(0.0043, abs=5e-5)
    assert (pair["p"], pair["statistic"]) == (pytest.approx(known.pvalue), known.statistic)
    foundation = one(table, **where, what="pair", stratum="NIH-CNN", other="Foundation probe")
    assert foundation["delta"] == 1


def test_strata_are_compared_by_outcomes_as_scipy_does_and_corrected_together() -> None:
    data = study(excluded=("txv-dn121-pc",))
    table = objectives.table(data)
    truth = outcome(data, "vindr")
    groups = {
        name: [truth[k] for k in sorted(ZOO) if ZOO[k]["objective"] == name and k != "txv-dn121-pc"]
        for name in ("CE-Supervised", "SSL", "TXV", "VL-Contrastive")
    }
    where = {"models": "declared", "of": "vindr"}
    test, known = one(table, **where, what="test"), stats.kruskal(*groups.values())
    assert (test["statistic"], test["p"]) == pytest.approx((known.statistic, known.pvalue))
    pairs = table.filter([pl.col(k) == v for k, v in {**where, "what": "pair"}.items()])
    assert len(pairs) == 6
    for row in pairs.iter_rows(named=True):
        a, b = groups[row["stratum"]], groups[row["other"]]
        p = [stats.mannwhitneyu(a, b, alternative=s).pvalue for s in ("two-sided", "greater")]
        assert (row["p"], row["p_greater"]) == pytest.approx(p)
        assert row["delta"] == pytest.approx(np.mean([np.sign(x - y) for x in a for y in b]))
        assert row["difference"] == pytest.approx(np.mean(a) - np.mean(b))
        assert row["difference_low"] <= row["difference"] <= row["difference_high"]
    ordered = pairs.sort("p")
    expected = np.maximum.accumulate(ordered["p"].to_numpy() * np.arange(6, 0, -1)).clip(max=1)
    assert ordered["holm"].to_numpy() == pytest.approx(expected)


def test_intervals_from_shared_draws_are_those_of_effects_drawn_apart() -> None:
    settings = {**SETTINGS, "resamples": 6000}
    table = regimes.table(study(settings=settings))
    row = one(table, models="all", of="stamp", what="pair", stratum="NIH-CNN", other="NIH-ViT")
    x, y = scored("NIH-CNN", column="regime"), scored("NIH-ViT", column="regime")
    for name, effect, error in (
        ("delta", cliffs_delta, 0.02),
        ("difference", mean_difference, 2e-4),
    ):
        known = effect(x, y, 6000, 0.9, seed=8)
        assert row[name] == pytest.approx(known.value)
        ends = (row[f"{name}_low"], row[f"{name}_high"])
        assert ends == pytest.approx((known.low, known.high), abs=error)


def test_rho_within_a_stratum_is_over_its_models_alone() -> None:
    data = study()
    table = objectives.table(data)
    truth = outcome(data, "mimic")
    keys = [key for key in sorted(ZOO) if ZOO[key]["objective"] == "CE-Supervised"]
    row = one(table, models="declared", of="mimic", what="stratum", stratum="CE-Supervised")
    known = stats.spearmanr([SCORES[k] for k in keys], [truth[k] for k in keys])[0]
    assert row["rho"] == pytest.approx(known)
    assert row["ids"] == ", ".join(keys)
    few = one(table, models="declared", of="mimic", what="stratum", stratum="VL-Contrastive")
    assert few["rho"] is None and few["reason"].startswith("3 models are too few")


def test_degenerate_and_excluded_models_are_in_all_and_not_in_declared() -> None:
    table = objectives.table(study(degenerate=("txv-resnet-ae",), excluded=("txv-dn121-pc",)))
    sizes = {
        which: one(table, models=which, of="stamp", what="stratum", stratum="TXV")["n"]
        for which in ("all", "declared")
    }
    assert sizes == {"all": 4, "declared": 2}


def test_a_stratum_of_one_model_is_listed_and_not_tested() -> None:
    table = objectives.table(study())
    row = one(table, models="declared", of="stamp", what="stratum", stratum="Hybrid")
    assert (row["n"], row["sd"], row["ids"]) == (1, None, "rad-dino")
    assert "Hybrid" not in table.filter(pl.col("what") == "pair").select("stratum", "other")
    text = objectives.sentence(table)
    assert "Hybrid 0.775 (one model)" in text


def test_one_large_stratum_and_single_models_have_no_test_but_a_reason() -> None:
    data = study(keys=["resnet18", "resnet34", "resnet50", "dino-b16", "clip-b16"])
    table = objectives.table(data)
    reasons = table.filter(pl.col("what") == "test")["reason"].unique().to_list()
    assert reasons == ["1 strata have 2 models or more, and 2 are needed"]
    assert reasons[0] in objectives.sentence(table)


def test_the_order_of_strata_is_by_size_and_name_and_of_no_score() -> None:
    said = ["b", "a", "c", "c", "b", "d", "d", "d"]
    found = model_groups.members(said)
    assert list(found) == ["d", "b", "c", "a"]
    assert [places.tolist() for places in found.values()] == [[5, 6, 7], [0, 4], [2, 3], [1]]


# Backbones ---------------------------------------------------------------------------------------


def test_models_of_the_zoos_that_share_an_architecture_share_a_backbone() -> None:
    for name in ("medical", "natural"):
        zoo = yaml.safe_load((ROOT / "config" / "zoo" / f"{name}.yaml").read_text())
        by_arch: dict[str, set[str]] = {}
        for entry in zoo.values():
            load = entry["load"]
            arch = load.get("name") or load.get("arch") or load.get("backbone", {}).get("timm")
            if arch and "attention" not in load:
                by_arch.setdefault(arch.partition(".")[0], set()).add(entry["backbone"])
        assert {len(found) for found in by_arch.values()} == {1}
    shared = backbones.shared(study())
    assert shared["ViT-B/16"] == [
        "biomedclip-b16",
        "clip-b16",
        "deit-base",
        "dino-b16",
        "mae-b16",
        "mocov3-b16",
        "sam-b16",
        "vit-base",
    ]
    assert {name: len(keys) for name, keys in shared.items()} == {
        "DenseNet-121": 4,
        "ViT-B/14": 2,
        "ViT-B/16": 8,
    }


def test_the_p_of_a_backbone_is_over_all_orders_of_its_models() -> None:
    data = study()
    keys = ["densenet121", "txv-dn121-all", "txv-dn121-nih", "txv-dn121-pc"]
    row = one(backbones.table(data), models="declared", backbone="DenseNet-121", outcome="chexpert")
    assert row["ids"] == ", ".join(keys)
    x = np.array([SCORES[key] for key in keys])
    y = np.array([outcome(data, "chexpert")[key] for key in keys])
    rho = stats.spearmanr(x, y)[0]
    every = [stats.spearmanr(x[list(p)], y)[0] for p in itertools.permutations(range(4))]
    assert row["rho"] == pytest.approx(rho)
    assert row["p"] == pytest.approx(np.mean(np.abs(every) >= abs(rho) - 1e-9))
    assert (row["method"], row["orders"], row["ties"]) == ("exact", 24, False)
    assert row["least_p"] == pytest.approx(1 / 12)
    assert np.mean(np.abs(every) >= 1 - 1e-9) == pytest.approx(1 / 12)


def test_eight_models_are_still_gone_through_in_all_orders_whatever_the_study_asks() -> None:
    data = study()
    row = one(backbones.table(data), models="all", backbone="ViT-B/16", outcome="vindr")
    assert (row["n"], row["method"], row["orders"]) == (8, "exact", math.factorial(8))
    possible = (1 - row["rho"]) / row["step"]
    assert possible == pytest.approx(round(possible), abs=1e-9)


def test_the_paper_prints_a_rho_that_five_or_six_models_cannot_have_without_ties() -> None:
    for n in (5, 6):
        steps = (1 - 0.986) / step(n)
        assert abs(steps - round(steps)) * step(n) > 0.005


def test_ties_are_said_and_give_no_least_p() -> None:
    data = study(targets=("vindr",))
    keys = backbones.shared(data)["DenseNet-121"]
    tied = pl.when(pl.col("model").is_in(keys[:2])).then(0.8).otherwise(pl.col("value"))
    data = replaced(data, outcomes=data.outcomes.with_columns(value=tied))
    row = one(backbones.table(data), models="all", backbone="DenseNet-121", outcome="vindr")
    assert row["ties"] and row["least_p"] is None and row["method"] == "exact"
    assert ", ties" in backbones.sentence(backbones.table(data))


SIX = ["clip-b16", "deit-base", "dino-b16", "mae-b16", "mocov3-b16", "vit-base"]


def test_a_named_selection_is_compared_like_a_backbone_and_beside_it() -> None:
    """The six checkpoints that the paper's controlled comparison lists, of eight ViT-B/16."""
    for name in ("medical", "medical_paper"):
        document = yaml.safe_load((ROOT / "config" / "studies" / f"{name}.yaml").read_text())
        named = document["statistics"]["selections"]
        assert [sorted(keys) for keys in named.values()] == [SIX]
    (title,) = named
    plain, data = study(), replaced(study(), options={"selections": named})
    assert backbones.shared(data) == {**backbones.shared(plain), title: SIX}
    table = backbones.table(data)
    row = one(table, models="declared", backbone=title, outcome="vindr")
    assert (row["n"], row["ids"], row["orders"]) == (6, ", ".join(SIX), math.factorial(6))
    x, y = [SCORES[key] for key in SIX], [outcome(data, "vindr")[key] for key in SIX]
    assert row["rho"] == pytest.approx(stats.spearmanr(x, y)[0])
    assert table.filter(pl.col("backbone") != title).equals(backbones.table(plain))
    models = backbones.models(data)
    assert set(models.filter(pl.col("stratum") == title)["model"]) == set(SIX)
    assert models.filter(pl.col("stratum") != title).equals(backbones.models(plain))
    figure = FIGURES["backbones"].draw(table, models, data.texts)
    assert set(points_of(axes_of(figure, f"{title}:vindr"))) == set(SIX)
    some = study(keys=SIX[:4])
    some = replaced(some, options={"selections": {"a list": [*SIX, "resnet18"]}})
    assert backbones.shared(some)["a list"] == SIX[:4], "those that the study scores"


def test_few_models_of_a_backbone_are_listed_with_the_reason() -> None:
    table = backbones.table(study())
    row = one(table, models="declared", backbone="ViT-B/14", outcome="mean")
    assert (row["n"], row["ids"], row["rho"]) == (2, "dinov2-b14, rad-dino", None)
    assert row["reason"] == "2 models are too few: at least 4 are needed"


# Ablation and kinds ------------------------------------------------------------------------------


def test_the_ratio_has_exactly_the_scores_rho_with_the_other_sign_and_the_same_p() -> None:
    table = ablation.table(study(degenerate=("txv-resnet-ae",), excluded=("txv-dn121-pc",)))
    for which, name in itertools.product(("all", "declared"), [*TARGETS, "mean"]):
        where = {"models": which, "outcome": name}
        ratio, score = (one(table, **where, variant=v) for v in ("ratio", "stamp"))
        assert ratio["rho"] == -score["rho"] != 0
        assert ratio["oriented"] == score["oriented"] == score["rho"]
        assert ratio["p"] == score["p"]
        assert (ratio["low"], ratio["high"]) == (-score["high"], -score["low"])
        assert (ratio["minus_reference"], ratio["minus_low"], ratio["minus_high"]) == (0, 0, 0)
        assert score["minus_reference"] is None
        assert (
            ratio["minus_p"] is ratio["minus_adjusted"] is None
        )  # 0 by construction: nothing tested


def test_without_parts_of_the_score_there_is_no_ablation() -> None:
    none = {name: pl.lit(None, dtype=pl.Float64) for name in ("within", "total")}
    data = study()
    table = ablation.table(replaced(data, scores=data.scores.with_columns(**none)))
    assert len(table) == 1 and table["rho"].is_null().all()
    assert ablation.sentence(table).startswith("No ablation: no model has SV and AV")


def test_the_correction_of_the_ablation_counts_the_two_parts_alone() -> None:
    table = ablation.table(study()).filter(pl.col("models") == "declared")
    tested = table.drop_nulls("minus_p").sort("minus_p")
    assert set(tested["variant"]) == {"within", "total"}
    assert (tested["minus_adjusted"] >= tested["minus_p"]).all()
    assert len(tested) == 2 * table["outcome"].n_unique()


def test_parts_are_correlated_over_one_set_of_models_that_has_an_id() -> None:
    data = study(degenerate=("txv-resnet-ae",), excluded=("txv-dn121-pc",))
    gap = (pl.col("model") == "rad-dino") & (pl.col("outcome") == "rsna")
    holed = data.outcomes.with_columns(value=pl.when(gap).then(None).otherwise(pl.col("value")))
    data = replaced(data, outcomes=holed)
    table = ablation.table(data)
    board = {row["model"]: row for row in data.scores.iter_rows(named=True)}
    for which, gone in (("all", 1), ("declared", 3)):
        rows = table.filter(pl.col("models") == which)
        assert rows["n"].unique().to_list() == [44 - gone]
        assert rows["subset"].n_unique() == 1
        keys = ablation.models(data).filter(f"in_{which}")["model"].to_list()
        assert len(keys) == 44 - gone and "rad-dino" not in keys
        truth = outcome(data, "vindr")
        for variant, sign, part in (("within", -1, "within"), ("total", 1, "total")):
            row = one(rows, outcome="vindr", variant=variant)
            x = [sign * board[key][part] for key in keys]
            known = stats.spearmanr(x, [truth[key] for key in keys])[0]
            assert row["rho"] == pytest.approx(known)
            score = one(rows, outcome="vindr", variant="stamp")["rho"]
            assert row["minus_reference"] == pytest.approx(known - score)
    assert table["subset"].n_unique() == 2
    assert set(ablation.models(data)["subset_all"]) <= set(table["subset"])


def test_a_set_has_the_same_id_in_any_order_and_another_with_another_model() -> None:
    data = study(targets=())
    keys = ["a", "b", "c"]
    ids = [
        common(data, order, {"x": np.arange(3.0)}).id
        for order in (keys, keys[::-1], ["a", "b", "d"])
    ]
    assert ids[0] == ids[1] != ids[2]


def test_kinds_have_named_differences_that_are_those_of_their_columns() -> None:
    data = study()
    models = kinds.models(data)
    board = data.scores.sort("model")
    models = models.sort("model")
    columns = {"T": "stamp", "L": "stamp_labeled", "C": "stamp_changed"}
    for letter, column in columns.items():
        assert models[letter].to_list() == board[column].to_list()
        part = {"T": "within", "L": "within_labeled", "C": "within_changed"}[letter]
        assert models[f"SV_{letter}"].to_list() == board[part].to_list()
    for first, second in itertools.combinations("TLCS", 2):
        expected = models[first] - models[second]
        assert models[f"{first}_minus_{second}"].to_list() == expected.to_list()
    row = one(kinds.table(data), models="all", what="difference", kind="T", other="L")
    gap = (models["T"] - models["L"]).to_numpy()
    assert (row["mean"], row["lowest"], row["highest"]) == pytest.approx(
        (gap.mean(), gap.min(), gap.max())
    )
    assert row["positive"] == (gap > 0).sum() == 0
    more = (models["SV_T"] - models["SV_L"]).to_numpy()
    assert (row["sv_mean"], row["sv_positive"]) == (pytest.approx(more.mean()), 44)


def test_kinds_are_correlated_with_outcomes_and_each_other_over_the_same_models() -> None:
    data = study(excluded=("txv-dn121-pc", "rad-dino"))
    table, models = kinds.table(data), kinds.models(data).filter("in_declared")
    assert len(models) == 42
    assert table.filter(pl.col("models") == "declared")["n"].unique().to_list() == [42]
    truth = [outcome(data, "chexpert")[key] for key in models["model"]]
    where = {"models": "declared"}
    for letter in "TLCS":
        row = one(table, **where, what="outcome", kind=letter, outcome="chexpert")
        assert row["rho"] == pytest.approx(stats.spearmanr(models[letter], truth)[0])
    for first, second in itertools.combinations("TLCS", 2):
        row = one(table, **where, what="between", kind=first, other=second)
        assert row["rho"] == pytest.approx(stats.spearmanr(models[first], models[second])[0])
    rhos = np.eye(4)
    for (i, a), (j, b) in itertools.combinations(enumerate("TLCS"), 2):
        rhos[i, j] = rhos[j, i] = one(table, **where, what="between", kind=a, other=b)["rho"]
    assert np.linalg.eigvalsh(rhos).min() > -1e-9  # so they can be of the same models


def test_a_kind_that_is_not_there_is_missing_with_the_reason_and_leaves_the_others() -> None:
    table = kinds.table(study(synthetic=False, also=("labeled",)))
    missing = table.filter((pl.col("what") == "missing") & (pl.col("models") == "declared"))
    assert dict(missing.select("kind", "reason").iter_rows()) == {
        "C": "the study scores no changed pairs (pairs.also)",
        "S": "the study has no metric aug_composite",
    }
    assert one(table, models="declared", what="between")["n"] == 44
    data = study()
    told = data.metrics.with_columns(
        value=pl.lit(None, dtype=pl.Float64), reason=pl.lit("no augmented views")
    )
    row = one(kinds.table(replaced(data, metrics=told)), models="all", what="missing")
    assert row["reason"] == "aug_composite: no augmented views"


# Absence, sentences, files, figures --------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("objectives", {"keys": ["resnet18", "resnet34"]}, "all models have the same objective"),
        ("regimes", {"keys": ["resnet18", "resnet34"]}, "all models have the same regime"),
        ("backbones", {"keys": ["resnet18", "vit-base"]}, backbones.ALONE),
        ("backbones", {"targets": ()}, NO_TARGETS),
        ("ablation", {"targets": ()}, NO_TARGETS),
        ("pair_kinds", {"also": (), "synthetic": False}, kinds.NOTHING),
    ],
)
def test_a_study_without_what_it_needs_gets_one_row_with_the_reason(
    name: str, options: dict[str, Any], reason: str
) -> None:
    module, data = MODULES[name], study(**options)
    table = module.table(data)
    assert table.to_dicts() == [{**dict.fromkeys(module.TABLE), "reason": reason}]
    assert reason in module.sentence(table)
    figure = FIGURES[name].draw(table, module.models(data), data.texts)
    shown = " ".join(text.get_text() for axes in figure.axes for text in axes.texts)
    assert reason.split()[-1] + "." in shown
    check_texts(figure)


@pytest.mark.parametrize("name", MODULES)
def test_sentences_print_the_declared_numbers(name: str) -> None:
    data = study(excluded=("txv-dn121-pc",))
    table = MODULES[name].table(data)
    text = MODULES[name].sentence(table)
    declared = table.filter(pl.col("models") == "declared")
    if name in ("objectives", "regimes"):
        pair = declared.filter(pl.col("of") == "stamp", pl.col("what") == "pair").row(0, named=True)
        wanted = [f"{pair[key]:.3f}" for key in ("delta", "difference", "difference_low")]
        wanted += [f"p = {pair['p_greater']:.2g} for {pair['stratum']} greater"]
    elif name == "pair_kinds":
        row = one(declared, what="difference", kind="T", other="C")
        wanted = [f"T minus C is {row['mean']:.3f}", f"above 0 in {row['positive']} of {row['n']}"]
    else:
        column = {"backbones": "backbone", "ablation": "variant"}[name]
        value = {"backbones": "ViT-B/16", "ablation": "total"}[name]
        row = one(declared, outcome="mean", **{column: value})
        wanted = [f"{row['rho']:.3f}"]
    for words in wanted:
        assert words.replace("-", "\u2212") in text or words in text
    assert text.endswith(".") and "None" not in text and "nan" not in text


@pytest.mark.parametrize("name", MODULES)
def test_tables_are_written_and_drawn_from_files_as_they_were_computed(
    name: str, tmp_path: Path
) -> None:
    data = study(keys=list(ZOO)[18:43])
    write_table(tmp_path / "metrics.parquet", data.metrics, {"study": "s"})
    read = {"metrics": [tmp_path / "metrics.parquet"]} if ANALYSES[name].reads else {}
    check_from_files(name, data, tmp_path, read)


@pytest.mark.parametrize("name", ["objectives", "regimes"])
def test_every_model_is_a_point_at_its_value_in_the_row_of_its_stratum(name: str) -> None:
    data = study(degenerate=("txv-resnet-ae",), excluded=("txv-dn121-pc",))
    table, models = MODULES[name].table(data), MODULES[name].models(data)
    figure = FIGURES[name].draw(table, models, data.texts)
    for of in ("stamp", "vindr", "mean"):
        axes = axes_of(figure, of)
        points, means = points_of(axes), artists(axes, "mean")
        rows = models.filter(pl.col("of") == of)
        assert set(points) == set(rows["model"]) == set(ZOO)
        for row in rows.iter_rows(named=True):
            point, mean = points[row["model"]], means[row["stratum"]]
            assert point.x == row["value"]
            assert min(mean.get_ydata()) <= point.y <= max(mean.get_ydata())
            assert point.opened == (not row["counted"])
        for row in table.filter(
            pl.col("models") == "declared", pl.col("of") == of, pl.col("what") == "stratum"
        ).iter_rows(named=True):
            assert means[row["stratum"]].get_xdata()[0] == pytest.approx(row["mean"])


@pytest.mark.parametrize("count", [1, 7, 40])
def test_a_swarm_has_no_touching_marks_while_there_is_room(count: int) -> None:
    rng = np.random.default_rng(count)
    places = np.sort(rng.uniform(0, 1, count))
    moved = swarm(places, 0.05, 0.2)
    assert np.abs(moved).max() <= 0.2
    gaps = np.hypot(places[:, None] - places, moved[:, None] - moved)
    assert gaps[np.triu_indices(count, 1)].min(initial=1) >= 0.05 - 1e-12
    packed = swarm(np.zeros(30), 0.05, 0.2)  # no room: none is lost
    assert len(packed) == 30 and np.abs(packed).max() <= 0.2


def test_the_figure_of_backbones_has_each_model_and_its_rank() -> None:
    data = study()
    table, models = backbones.table(data), backbones.models(data)
    figure = FIGURES["backbones"].draw(table, models, data.texts)
    axes = axes_of(figure, "ViT-B/16:vindr")
    points = points_of(axes)
    truth = outcome(data, "vindr")
    keys = backbones.shared(data)["ViT-B/16"]
    assert {key: point.x for key, point in points.items()} == {key: truth[key] for key in keys}
    by_score = sorted(keys, key=lambda key: -SCORES[key])
    heights = [points[key].y for key in by_score]
    assert heights == sorted(heights)
    ranks = [text.get_text() for text in axes.texts]
    expected = stats.rankdata([-truth[key] for key in by_score])
    assert [float(rank) for rank in ranks] == expected.tolist()


@pytest.mark.parametrize(("name", "column"), [("ablation", "variant"), ("pair_kinds", "kind")])
def test_bars_are_the_tables_rhos_with_their_intervals(name: str, column: str) -> None:
    data = study()
    table = MODULES[name].table(data)
    figure = FIGURES[name].draw(table, MODULES[name].models(data), data.texts)
    rows = table.filter(pl.col("models") == "declared", pl.col("outcome") == "rsna")
    axes = axes_of(figure, "rsna")
    bars = {bar.get_gid().removeprefix("bar:"): bar for bar in axes.patches}
    assert len(bars) == len(rows) == 4
    for row in rows.iter_rows(named=True):
        assert bars[row[column]].get_width() == row["rho"]
        ends = artists(axes, "interval")[row[column]].get_xdata()
        assert list(ends) == [row["low"], row["high"]]


def test_the_scatter_of_kinds_has_each_models_two_scores() -> None:
    data = study()
    models = kinds.models(data)
    figure = FIGURES["pair_kinds"].draw(kinds.table(data), models, data.texts)
    for other in "LCS":
        points = points_of(axes_of(figure, f"T{other}"))
        for row in models.iter_rows(named=True):
            spot = points[row["model"]]
            assert (spot.x, spot.y) == (row["T"], row[other])
