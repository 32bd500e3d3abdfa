"""The claims theme by theme: recomputations against scipy, enumeration and closed forms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from stamp.paper.attainable import nearest_spearman, spearman_values, tied_spearman
from stamp.paper.claims import (
    DIFFERS,
    IMPOSSIBLE,
    NOT_CHECKABLE,
    REPRODUCED,
    Claim,
    Text,
    measured,
    several,
)
from stamp.paper.printed_tables import Paper, read, values
from stamp.paper.themes import (
    consistency,
    correlation_triples,
    cost,
    intervals,
    power,
    scores,
    strata,
    theory,
)

PAPER = read()
THEMES = {
    name: module.claims(PAPER)
    for name, module in {
        "scores": scores,
        "strata": strata,
        "intervals": intervals,
        "consistency": consistency,
        "theory": theory,
        "cost": cost,
        "power": power,
    }.items()
}


def of(theme: str, start: str, where: str = "") -> Claim:
    found = [each for each in THEMES[theme] if each.claim.startswith(start) and where in each.where]
    assert len(found) == 1, [each.claim for each in found]
    return found[0]


def changed(table: str, row: int, column: str, text: str) -> Paper:
    """The paper with one cell printed differently."""
    one = (
        PAPER.table(table)
        .with_row_index("at")
        .with_columns(
            pl.when(pl.col("at") == row).then(pl.lit(text)).otherwise(column).alias(column)
        )
    )
    return Paper({**PAPER.tables, table: one.drop("at")}, PAPER.names)


@pytest.mark.parametrize("theme", THEMES)
def test_claims_that_are_not_checkable_say_why_and_names_are_distinct(theme):
    claims = THEMES[theme]
    for each in claims:
        assert each.claim and each.where and each.printed and each.recomputed
        assert each.note or each.verdict != NOT_CHECKABLE
    assert len({(each.claim, each.where) for each in claims}) == len(claims)


# scores


def test_every_score_with_printed_parts_is_one_minus_their_ratio():
    rows = [each for each in THEMES["scores"] if each.series]
    assert [each.verdict for each in rows].count(REPRODUCED) == 42
    assert {each.claim.split()[2] for each in rows if each.verdict == NOT_CHECKABLE} == {
        "TXV-DN121-pc",
        "TXV-ResNet-ae",
    }


def test_a_score_that_its_parts_cannot_give_is_found():
    wrong = changed("stamp_main", 0, "sv", "0.00510")
    assert scores.claims(wrong)[0].verdict == DIFFERS


def test_a_constant_predictor_can_only_score_one():
    assert of("scores", "STAMP of TXV-ResNet-ae whose").verdict == IMPOSSIBLE


def test_the_widest_interval_is_wider_than_the_text_says():
    widths = scores.interval_widths(PAPER)
    assert np.nanmax(widths) == pytest.approx(0.517 - 0.468)
    assert of("scores", "Every 95 % interval").verdict == DIFFERS


# strata


def test_rank_tests_of_the_objectives_are_those_of_scipy():
    groups = strata.objectives(PAPER)
    assert [each.size for each in groups.values()] == [31, 5, 3, 4]
    h = stats.kruskal(*groups.values())
    assert of("strata", "Kruskal-Wallis H of the four").recomputed == f"{h.statistic:.2f}"
    assert of("strata", "Kruskal-Wallis H of the four").verdict == REPRODUCED
    # complete separation: one of all ways to choose five of 36
    assert of("strata", "Mann-Whitney p of CE").recomputed == f"{1 / math.comb(36, 5):.2e}"
    assert of("strata", "Mann-Whitney p of CE").verdict == REPRODUCED


def test_the_txv_row_comes_out_with_the_score_that_its_range_implies():
    three = values(PAPER.table("stamp_main")["stamp"])[39:42]
    with_it = np.append(three, 0.739)
    assert (round(with_it.mean(), 3), round(with_it.std(), 3)) == (0.641, 0.101)
    for start in ("Mean STAMP of TXV", "Standard deviation of TXV", "Range of TXV"):
        claim = of("strata", start, "Table 4")
        assert claim.verdict == DIFFERS
        assert f"mean {with_it.mean():.4f}, standard deviation {with_it.std():.4f}" in claim.note


def test_regimes_that_are_said_not_to_differ_do():
    found = strata.regimes(PAPER)
    exact = stats.mannwhitneyu(found["NIH-ViT"], found["NIH-CNN"], method="exact").pvalue
    claim = of("strata", "Mann-Whitney p between any two")
    assert claim.verdict == DIFFERS
    assert f"{exact:.4f}" in claim.note


def test_one_model_in_two_regimes_gives_both_printed_means_and_spreads():
    table = dict(PAPER.table("stamp_main").select("architecture", "stamp").iter_rows())
    found = strata.regimes(PAPER)
    mixer = float(table["MLP-Mixer-B/16"])
    vit, meta = np.append(found["NIH-ViT"], mixer), found["NIH-Meta"]
    assert (round(vit.mean(), 3), round(vit.std(), 3)) == (0.793, 0.007)
    assert (round(meta.mean(), 3), round(meta.std(), 3)) == (0.784, 0.006)
    assert mixer in meta
    assert round(meta[meta != mixer].mean(), 3) != 0.784, "without it that one does not come out"
    others = [
        found[name] for name in ("NIH-CNN", "NIH-Meta", "Foundation probe", "TorchXRayVision")
    ]
    h = stats.kruskal(vit, *others).statistic
    assert h == pytest.approx(29.2, abs=0.05)
    for start in ("Mean STAMP of NIH-ViT", "Spread of STAMP of NIH-ViT"):
        claim = of("strata", start)
        assert claim.verdict == DIFFERS
        assert "counted twice" in claim.note
        assert f"n = 11, mean {vit.mean():.4f}" in claim.note
    assert f"{h:.2f}" in of("strata", "Kruskal-Wallis H of the regimes").note


# intervals


def test_an_allowance_stands_in_the_note_where_it_decides_the_verdict():
    claim = of("intervals", "p of STAMP on RSNA")
    low, high = (float(part) for part in claim.recomputed.split(" to "))
    assert high < 0.0435, "by itself it does not print as 0.044"
    assert claim.verdict == REPRODUCED
    error = 3 * math.sqrt(0.04 * 0.96 / 10_000)
    assert f"allowance of {error:.2g}" in claim.note
    assert high + error > 0.0435 > low
    near, far = Text("p", "1", "0.044"), Text("p", "1", "0.050")
    assert "allowance" not in measured(near, 0.044, tolerance=0.01).note, "it is not needed"
    assert "allowance" not in measured(far, 0.02, tolerance=0.01).note, "it does not suffice"
    assert "allowance" in several(Text("p", "1", "[0.10, 0.20]"), [0.1, 0.21], tolerance=0.01).note


def test_natural_intervals_are_fishers_and_most_medical_ones_are_not():
    rows = [each for each in THEMES["intervals"] if each.series]
    by = {each.claim.removeprefix("Fisher's 95 % interval of rho on "): each for each in rows}
    natural = PAPER.table("natural")["benchmark"]
    assert {by[name].verdict for name in natural} == {REPRODUCED}
    assert [by[name].verdict for name in PAPER.table("main_results")["dataset"]] == [
        DIFFERS, DIFFERS, DIFFERS, REPRODUCED, DIFFERS
    ]  # fmt: skip


def test_a_permutation_p_below_its_floor_is_impossible_and_one_at_it_is_not():
    assert of("intervals", "Permutation p on VinDr-CXR").verdict == IMPOSSIBLE
    assert of("intervals", "Permutation p on all five").verdict == REPRODUCED
    assert of("intervals", "Permutation p by corruption").verdict == REPRODUCED


@pytest.mark.parametrize(("controls", "n", "rho"), [(1, 44, 0.545), (2, 43, 0.536)])
def test_partial_p_values_have_as_many_degrees_of_freedom_too_many_as_controls(controls, n, rho):
    def p(df):
        return 2 * stats.t.sf(rho * math.sqrt(df / (1 - rho**2)), df)

    printed = {1: 1.3e-4, 2: 2.1e-4}[controls]
    assert p(n - 2) == pytest.approx(printed, rel=0.02)
    start = {
        1: "p of the partial rho given NIH AUROC",
        2: "p of the partial rho given NIH AUROC and",
    }
    found = [each for each in THEMES["intervals"] if each.claim.startswith(start[controls])]
    claim = min(found, key=lambda each: len(each.claim)) if controls == 1 else found[0]
    low, high = (float(part) for part in claim.recomputed.split(" to "))
    assert low < p(n - 2 - controls) < high
    assert claim.verdict == DIFFERS


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7])
def test_attainable_rank_correlations_are_those_of_all_orders(n):
    ranks = np.arange(n)
    found = {round(stats.pearsonr(ranks, order)[0], 9) for order in itertools.permutations(ranks)}
    assert sorted(found) == pytest.approx(sorted(spearman_values(n)), abs=1e-8)


def test_tied_rank_correlations_are_those_of_scipy():
    x = [1, 2, 3, 4]
    ties = {1: [1, 1, 2, 3], 2: [1, 2, 2, 3], 3: [1, 2, 3, 3]}
    found = {
        round(stats.spearmanr(x, order).statistic, 9)
        for tied in ties.values()
        for order in itertools.permutations(tied)
    }
    assert sorted(found) == pytest.approx(tied_spearman(4).tolist(), abs=1e-8)


def test_rank_correlations_that_few_models_cannot_have_are_impossible():
    assert nearest_spearman(10, 0.986) == pytest.approx([1 - 24 / 990, 1 - 12 / 990])
    assert of("intervals", "Spearman's rho of one model per family").verdict == IMPOSSIBLE
    claim = of("intervals", "Spearman's rho of the controlled comparison on CheXpert")
    assert claim.verdict == IMPOSSIBLE
    assert "two tied models of 6 would give it" in claim.note
    for name in ("VinDr-CXR", "MIMIC-CXR"):
        found = of("intervals", f"Spearman's rho of the controlled comparison on {name}")
        assert found.verdict == REPRODUCED


# consistency


def test_the_difference_column_is_second_minus_first_but_for_two_rows():
    rows = [each for each in THEMES["consistency"] if each.series == "Delta of Table 9"]
    wrong = [each.claim for each in rows if each.verdict != REPRODUCED]
    assert len(rows) == 31
    assert wrong == ["Delta of ResNet-18", "Delta of ViT-Base/16"]
    assert of("consistency", "Delta is temporal").verdict == DIFFERS
    assert of("consistency", "Mean Delta").recomputed == "0.1523"


def test_temporal_and_synthetic_scores_cannot_both_follow_vindr_as_printed():
    table = PAPER.table("temporal_delta")
    rho = stats.spearmanr(values(table["temporal"]), values(table["synthetic"])).statistic
    least = np.linalg.eigvalsh([[1, 0.820, 0.856], [0.820, 1, rho], [0.856, rho, 1]])[0]
    assert least < 0
    assert of("consistency", "rho with VinDr AUROC of temporal").verdict == IMPOSSIBLE


def test_correlations_that_fit_are_not_called_impossible():
    assert of("consistency", "rho with VinDr AUROC of -SV").verdict == REPRODUCED
    assert of("consistency", "rho of STAMP and of NIH AUROC on three").verdict == REPRODUCED


def test_columns_that_no_outcome_can_follow_explain_more_than_everything():
    rng = np.random.default_rng(0)
    first = rng.normal(size=12)
    columns = np.stack([first, first + 0.3 * rng.normal(size=12), rng.normal(size=12)])
    one = [(0.9, 0.9), (-0.9, -0.9), (0.0, 0.0)]
    assert correlation_triples.least_explained(columns, 11, one) > 1
    y = rng.normal(size=12)
    true = [stats.spearmanr(column, y).statistic for column in columns]
    assert correlation_triples.least_explained(columns, 12, [(r, r) for r in true]) <= 1


@pytest.mark.parametrize("seed", range(6))
def test_the_least_share_explained_is_the_one_that_an_optimiser_finds(seed):
    """A convex form is least inside a box, on a face or at a corner: not at the corners alone."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(3, 9)) + rng.normal(size=9)
    middle, widths = rng.uniform(-0.6, 0.6, 3), rng.uniform(0, 0.4, 3)
    ends = [(float(m - w), float(m + w)) for m, w in zip(middle, widths, strict=True)]
    inverse = np.linalg.inv(stats.spearmanr(columns.T).statistic)
    found = optimize.minimize(
        lambda r: r @ inverse @ r, middle, jac=lambda r: 2 * inverse @ r, bounds=ends, tol=1e-14
    )
    assert correlation_triples.least_explained(columns, 9, ends) == pytest.approx(
        found.fun, abs=1e-7
    )


@given(st.floats(0.3, 0.95), st.floats(0.3, 0.95), st.floats(-0.9, 0.95))
def test_what_a_partial_correlation_implies_gives_that_partial_correlation(r1, r2, r12):
    partial = correlation_triples.partial_of(r1, r2, r12)
    if 0.05 < abs(partial) < 0.999:
        roots = correlation_triples.implied_shared(r1, r2, partial)
        assert any(abs(root - r12) < 1e-5 for root in roots)
        for root in roots:
            assert correlation_triples.partial_of(r1, r2, root) == pytest.approx(partial, abs=1e-4)


@given(st.floats(0.5, 0.98), st.floats(0.1, 0.97))
def test_the_least_shared_correlation_is_where_the_partial_is_least(r1, share):
    partial = r1 * share
    shared = correlation_triples.least_shared(r1, partial)
    r2 = np.linspace(-0.9999, 0.9999, 20001)
    least = np.min((r1 - r2 * shared) / np.sqrt((1 - r2**2) * (1 - shared**2)))
    assert least == pytest.approx(partial, abs=1e-3)


def test_a_partial_above_the_correlation_needs_nothing_in_common():
    assert correlation_triples.least_shared(0.5, 0.8) == 0
    assert correlation_triples.partial_of(0.5, -0.8, 0.0) > 0.8


def test_dollar_street_leaves_two_correlations_with_accuracy_and_both_give_its_partial():
    spans = correlation_triples.dollar_street(PAPER)
    assert len(spans) == 2
    for low, high in spans:
        found = correlation_triples.partial_of(0.940, 0.902, (low + high) / 2)
        assert found == pytest.approx(0.804, abs=0.01)


def test_the_two_partials_on_objectnet_are_told_apart():
    assert of("consistency", "Partial rho on ObjectNet", "Table 3").verdict == REPRODUCED
    assert of("consistency", "Partial rho on ObjectNet", "A.7").verdict == DIFFERS


def test_a_partial_that_nothing_leaves_room_for_is_impossible():
    wrong = PAPER.table("text").with_columns(
        pl.when(pl.col("key") == "objectnet_partial_text")
        .then(pl.lit("0.100"))
        .otherwise("printed")
        .alias("printed")
    )
    paper = Paper({**PAPER.tables, "text": wrong}, PAPER.names)
    # at rho 0.984 even a correlation of 0.99 with accuracy leaves less than 0.1 only above 0.9838
    natural = PAPER.table("natural").with_columns(
        pl.when(pl.col("benchmark") == "ObjectNet")
        .then(pl.lit("0.999"))
        .otherwise("rho")
        .alias("rho")
    )
    paper = Paper({**paper.tables, "natural": natural}, PAPER.names)
    assert correlation_triples.objectnet(paper, "objectnet_partial_text").verdict == IMPOSSIBLE


# cost, theory, power


def test_the_concentration_bound_is_four_times_what_is_printed():
    claim = of("theory", "Concentration bound")
    assert theory.epsilon(500, 500) == pytest.approx(2 * math.sqrt(2 * math.log(80) / 500))
    assert claim.recomputed == "0.2648"
    n = theory.needed(0.067)
    assert theory.epsilon(n, n) <= 0.067 < theory.epsilon(n - 1, n - 1)


def test_alike_classes_contradict_the_approximation_in_simulation_too():
    classes, sigma, each = 6, 0.01, 4000
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=sigma, size=(classes, each, classes))
    noise -= noise.mean(axis=-1, keepdims=True)  # stays on the simplex
    outputs = np.eye(classes)[:, None] + noise
    centres = outputs.mean(axis=1)
    within = np.square(outputs - centres[:, None]).sum(-1).mean()
    between = np.square(centres - centres.mean(axis=0)).sum(-1).mean()
    direction = (centres[0] - centres[1]) / np.linalg.norm(centres[0] - centres[1])
    projected = (outputs[0] @ direction).var() / np.square(centres[0] - centres[1]).sum()
    mean, ratio, spread = theory.even_classes(classes, sigma)
    assert spread == 0
    assert (projected, within / between) == pytest.approx((mean, ratio), rel=0.05)
    assert of("theory", "The class-averaged form").verdict == DIFFERS


def test_the_averaged_bound_says_something_for_three_models():
    stamp = values(PAPER.table("stamp_main")["stamp"])
    assert int((stamp > 0.8).sum()) == 3
    assert of("theory", "Error bound").recomputed.startswith("below 1 for 3 of 44")


def test_different_class_pairs_overstate_the_total_as_a_simulation_does():
    rng = np.random.default_rng(1)
    classes, each = 10, 3000
    outputs = rng.normal(size=(classes, 1)) * 2 + rng.normal(size=(classes, each))
    within = outputs.var(axis=1).mean()
    between = outputs.mean(axis=1).var()
    a, b = rng.integers(classes, size=(2, 400_000))
    apart = a != b
    first, second = (outputs[k[apart], rng.integers(each, size=apart.sum())] for k in (a, b))
    expected = 2 * within + 2 * between * classes / (classes - 1)
    assert np.square(first - second).mean() == pytest.approx(expected, rel=0.01)
    assert of("theory", "Expected AV").verdict == DIFFERS


def test_a_model_at_a_time_the_ratio_to_agreement_is_six():
    assert of("cost", "Times faster than AoTL, a model").recomputed == "6.4"
    assert 44 * 25_596 == 1_126_224
    assert of("cost", "Images of AoTL").verdict == DIFFERS


def test_power_at_small_effects_is_larger_than_printed():
    rng = np.random.default_rng(3)
    r = 2 * math.sin(math.pi * 0.5 / 6)
    draws = rng.multivariate_normal([0, 0], [[1, r], [r, 1]], (1500, 27))
    reference = np.mean([stats.spearmanr(draw).pvalue <= 0.05 for draw in draws])
    claim = of("power", "Power at n = 27 and rho 0.5")
    assert float(claim.recomputed) == pytest.approx(reference, abs=0.045)
    assert claim.verdict == DIFFERS
    assert of("power", "Power at n = 44 and rho 0.9").verdict == REPRODUCED


def test_a_p_needs_to_know_of_how_many_models():
    with pytest.raises(ValueError, match="of how many models"):
        intervals.by_t(Text("p", "nowhere", "0.05"), "0.3")
