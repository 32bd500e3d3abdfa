"""The exact estimator and its bootstrap: against loops over all pairs, and by simulation."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from grouped_outputs import draw_pairs, grouped, pool_pairs, scored
from hypothesis import given, settings
from hypothesis import strategies as st

from stamp.data.pairs import random_images, random_pairs, study_pairs
from stamp.inference.outputs import Outputs
from stamp.scoring import bootstrap as subject
from stamp.scoring.bootstrap import jackknife_se, resampled_exact
from stamp.scoring.pool_pairs import PairDesign, PoolPairs, pair_rows
from stamp.scoring.score import ScoreSettings, score_pool
from stamp.scoring.stamp import probabilities, squared_distances, stamp

DESIGNS = ["different_group", "iid"]
seeds = st.integers(0, 2**32)


def squared(p, i, j):
    return float(np.sum((p[i] - p[j]) ** 2))


def loop(p, semantic, ends, units, apart, weights, iid):
    """SV and AV by lists: semantic pairs with weights, images with theirs, what pairs differ in.

    A pair of two units counts by the product of their weights, one within a unit by its weight.
    """
    near = [(v, squared(p, i, j)) for i, j, v in semantic if v > 0]
    within = np.average([d for _, d in near], weights=[v for v, _ in near]) if near else np.nan
    far = []
    for i, j in combinations(np.flatnonzero(ends), 2):
        count = ends[i] * ends[j]
        if units[i] == units[j]:
            count /= weights[units[i]]
        if iid or all(code[i] != code[j] for code in apart):
            far.append((count, squared(p, i, j)))
    total = np.average([d for _, d in far], weights=[v for v, _ in far]) if far else np.nan
    return within, total


def visits_by_loop(p, pairs, groups, weights, iid):
    listed = [(i, j, weights[groups[i]]) for i, j in pairs]
    ends = np.zeros(len(p))
    for i, j, v in listed:
        ends[i] += v
        ends[j] += v
    return loop(p, listed, ends, groups, [groups], weights, iid)


def classes_by_loop(p, classes, units, weights, iid):
    listed, ends = [], np.zeros(len(p))
    for name in np.unique(classes):
        own = [
            (i, j, weights[units[i]] * weights[units[j]])
            for i, j in combinations(np.flatnonzero(classes == name), 2)
            if units[i] != units[j]
        ]
        number = sum(v for *_, v in own)
        listed += [(i, j, v / number) for i, j, v in own if number]
    for i, j, v in listed:
        ends[i] += v
        ends[j] += v
    return loop(p, listed, ends, units, [classes, units], weights, iid)


def multinomial(rng, units, resamples=4):
    """Every unit once, then resamples of units."""
    drawn = rng.multinomial(units, np.full(units, 1 / units), size=resamples).T
    return np.hstack([np.ones((units, 1)), drawn]).astype(np.float64)


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from(DESIGNS))
def test_visits_are_weighed_by_pair_and_random_pairs_are_all_of_two_patients(seed, design):
    rng = np.random.default_rng(seed)
    groups = np.sort(np.concatenate([np.arange(5), rng.integers(0, 5, rng.integers(3, 12))]))
    p = 3 + rng.normal(size=(len(groups), rng.integers(1, 5)))
    pairs = [(i, i + 1) for i in range(len(p) - 1) if groups[i] == groups[i + 1]]
    a, b = np.array(pairs).T
    exact = pool_pairs((a, b), (a, b), groups, random_design=design).exact(p, "temporal")
    known = np.unique(groups[a])  # a patient of one visit is in no pair
    weights = multinomial(rng, len(known))
    within, total = exact.parts(weights)
    assert exact.semantic.number() == len(pairs) and exact.units == len(known)
    for r in range(weights.shape[1]):
        of_all = np.zeros(5)
        of_all[known] = weights[:, r]
        found = visits_by_loop(p, pairs, groups, of_all, design == "iid")
        np.testing.assert_allclose((within[r], total[r]), found, rtol=1e-8)


@settings(max_examples=40, deadline=None)
@given(seeds, st.booleans(), st.sampled_from(DESIGNS))
def test_class_pairs_are_weighed_by_class_and_leave_out_one_patients(seed, patients, design):
    rng = np.random.default_rng(seed)
    n = rng.integers(8, 16)
    p = 3 + rng.normal(size=(n, rng.integers(1, 5)))
    classes = rng.integers(0, 3, n)
    units = np.unique(rng.integers(0, 5, n), return_inverse=True)[1] if patients else np.arange(n)
    every = (np.arange(n), np.arange(n))
    drawn = {"class": every, "random": every}
    pairs = PoolPairs(drawn, units, classes, PairDesign("class", design))
    exact = pairs.exact(p, "class")
    weights = multinomial(rng, units.max() + 1)
    within, total = exact.parts(weights)
    for r in range(weights.shape[1]):
        found = classes_by_loop(p, classes, units, weights[:, r], design == "iid")
        np.testing.assert_allclose((within[r], total[r]), found, rtol=1e-8)
    both = list(combinations(range(n), 2))
    same = [(i, j) for i, j in both if classes[i] == classes[j] and units[i] != units[j]]
    other = [(i, j) for i, j in both if classes[i] != classes[j] and units[i] != units[j]]
    assert exact.semantic.number() == len(same)
    if design == "different_group":
        assert exact.random.number() == len(other)
    else:
        assert exact.random.number() == len(both)


@settings(max_examples=40, deadline=None)
@given(seeds, st.booleans())
def test_few_classes_are_summed_up_and_give_what_the_list_of_pairs_gives(seed, patients):
    rng = np.random.default_rng(seed)
    n, outputs = rng.integers(15, 24), rng.integers(1, 4)
    p = 3 + rng.normal(size=(n, outputs))
    units = np.unique(rng.integers(0, 16, n), return_inverse=True)[1] if patients else np.arange(n)
    classes = rng.integers(0, 2, units.max() + 1)[units]
    every = (np.arange(n), np.arange(n))
    exact = PoolPairs({"class": every, "random": every}, units, classes, PairDesign("class")).exact(
        p, "class"
    )
    assert (exact.moments is None) == (len(np.unique(classes)) * (outputs + 2) > units.max() + 1)
    weights = multinomial(rng, units.max() + 1)
    weights[classes[np.unique(units, return_index=True)[1]] == 0, -1] = 0  # one class is left
    within, total = exact.parts(weights)
    for r in range(weights.shape[1]):
        found = classes_by_loop(p, classes, units, weights[:, r], iid=False)
        np.testing.assert_allclose((within[r], total[r]), found, rtol=1e-8)


def test_images_of_a_fresh_pool_count_once_each():
    rng = np.random.default_rng(1)
    p, groups = grouped(rng)
    (a, b), (c, d) = draw_pairs(rng, groups, 20, 15)
    exact = pool_pairs((a, b), (c, d), groups, pool="fresh").exact(p, "temporal")
    images = np.unique([c, d])
    apart = [(i, j) for i, j in combinations(images, 2) if groups[i] != groups[j]]
    assert exact.random.number() == len(apart)
    assert exact.value()[1] == pytest.approx(np.mean([squared(p, i, j) for i, j in apart]))


def test_draws_are_the_score_of_each_resample_and_fewer_are_the_first_of_more(monkeypatch):
    monkeypatch.setattr(subject, "_WIDE", 7)
    rng = np.random.default_rng(2)
    p, groups = grouped(rng)
    pairs = pool_pairs(*draw_pairs(rng, groups, 60, 60), groups, unit="image")
    exact = pairs.exact(p, "class")
    found = resampled_exact(exact, 50, seed=4)
    blocks = subject._resampled_units(exact.units, 50, 4)
    weights = np.concatenate([block for _, block in blocks], axis=1)
    for r in (0, 6, 7, 49):
        one = stamp(*exact.parts(weights[:, [r]].astype(float)))
        assert found[r] == pytest.approx(one[0], rel=1e-12)
    np.testing.assert_allclose(resampled_exact(exact, 20, 4), found[:20], rtol=1e-12)


def test_the_jackknife_leaves_out_one_unit_at_a_time():
    rng = np.random.default_rng(3)
    p, groups = grouped(rng, groups=12, each=3)
    a = np.arange(0, 36, 3)
    near = np.concatenate([a, a + 1]), np.concatenate([a + 1, a + 2])
    exact = pool_pairs(near, near, groups).exact(p, "temporal")
    left = []
    for unit in range(12):
        keep = groups != unit
        rest = np.flatnonzero(keep[near[0]])
        pairs = list(zip(near[0][rest], near[1][rest], strict=True))
        left.append(stamp(*visits_by_loop(p, pairs, groups, np.ones(12), iid=False)))
    assert jackknife_se(exact) == pytest.approx(np.std(left) * np.sqrt(11))


def test_the_headline_is_by_the_chosen_estimator_and_the_other_stands_beside_it():
    rng = np.random.default_rng(5)
    p, groups = grouped(rng, groups=30)
    pairs = draw_pairs(rng, groups, 40, 40)
    exact, sampled = (scored(p, *pairs, groups, estimator=e, resamples=300) for e in _BOTH)
    assert (exact.estimator, sampled.estimator) == _BOTH
    for part in ("stamp", "within", "total", "eta2"):
        assert getattr(exact, part) == getattr(exact, f"exact_{part}")
        assert getattr(sampled, part) == getattr(sampled, f"sampled_{part}")
        assert getattr(exact, f"sampled_{part}") == getattr(sampled, part)
        assert getattr(sampled, f"exact_{part}") == getattr(exact, part)
    assert exact.low < exact.stamp < exact.high
    assert (exact.low, exact.high) != (sampled.low, sampled.high)
    assert exact.n_random > sampled.n_random and exact.n_units == len(
        np.unique(groups[pairs[0][0]])
    )


_BOTH = ("exact", "sampled")


def made_up_pool(patients: bool, seed: int = 0) -> tuple[Outputs, pl.DataFrame]:
    """A pool with unequal classes; where there are patients, each has images of several classes."""
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.choice(4, 160, p=[0.5, 0.25, 0.15, 0.1]))
    groups = [f"p{k}" for k in rng.integers(0, 40, 160)] if patients else [f"c{k}" for k in labels]
    index = pl.DataFrame(
        {
            "image": [f"i{k:03d}" for k in range(160)],
            "group": groups,
            "order": pl.Series(rng.permutation(160), dtype=pl.Int32),
            "label": pl.Series(labels, dtype=pl.Int16),
        }
    )
    centre = rng.normal(size=(4, 4)) + 2 * np.eye(4)
    own = {name: rng.normal(size=4) for name in sorted(set(groups))}
    effect = np.array([own[name] for name in groups]) if patients else 0.0
    return Outputs(index, centre[labels] + effect + rng.normal(size=(160, 4)), 1), index


@pytest.mark.parametrize(
    ("kind", "patients"), [("class", False), ("class", True), ("temporal", True)]
)
def test_sampled_scores_vary_around_the_exact_one_and_approach_it(kind, patients):
    """Pairs drawn again and again from one set of images, then ever more random pairs."""
    pool, index = made_up_pool(patients)
    drawn = {"semantic": kind, "also": {}, "mode": "all_consecutive", "order": "order", "same": []}
    how = {**drawn, "random": "different_group", "pool": "reuse", "max_pairs": 110}
    classes = list("abcd")
    names = ("multiclass", classes, kind, "different_group")
    values = []
    for seed in range(60):
        pairs = study_pairs(index, how, "multiclass", classes, seed, "x")
        found = score_pool(pool, pairs, kind, ScoreSettings(*names, 110, False, 2, 0.95, 0), 1.0)
        values.append([found.stamp, found.sampled_stamp])
    exact, sampled = np.array(values).T
    error = np.std(exact - sampled) / np.sqrt(60)
    assert np.mean(exact - sampled) == pytest.approx(0, abs=4 * error)
    assert np.std(exact) < np.std(sampled)
    if kind == "temporal":
        assert np.std(exact) < 0.5 * np.std(sampled)  # 110 of 120 pairs: mostly random pairs vary
    # The pairs of the last seed, and ever more random pairs beside them.
    semantic = pairs.filter(pl.col("kind") == kind)
    images = random_images(index, kind, ["label"], semantic)
    many = random_pairs(images, 60_000, 5)
    p = probabilities(pool.logits, "multiclass")
    total = squared_distances(p, *pair_rows(many, index["image"])).mean()
    tolerance = 0.01 if kind == "temporal" else 0.05  # a class's share of few drawn pairs is chance
    assert found.exact_total == pytest.approx(total, rel=tolerance)


def test_resampling_is_by_patient_where_class_pairs_have_patients():
    _, index = made_up_pool(patients=True)
    by_class, _ = made_up_pool(patients=False)
    design = PairDesign("class")
    pairs = pl.DataFrame({"a": ["i000"], "b": ["i001"], "kind": ["class"]})
    patients = PoolPairs.of(index, pairs, design, ["label"]).units
    assert len(set(patients)) == index["group"].n_unique()
    images = PoolPairs.of(by_class.rows, pairs, design, ["label"]).units
    assert len(set(images)) == len(by_class.rows)


def class_scores(repeats, patients):
    """Scores of new images of fixed classes, with or without patients."""
    centres = np.random.default_rng(0).normal(scale=1.5, size=(20, 1, 5))
    classes, n = np.repeat(np.arange(20), 12), 240
    every = (np.arange(n), np.arange(n))
    for repeat in range(repeats):
        rng = np.random.default_rng([17, repeat])
        noise, units = rng.normal(size=(n, 5)), np.arange(n)
        if patients:
            units = rng.permutation(np.repeat(np.arange(60), 4))
            noise = 0.6 * noise + 0.8 * rng.normal(size=(60, 5))[units]
        p = probabilities(centres.repeat(12, axis=1).reshape(n, 5) + noise, "multiclass")
        drawn = {"class": every, "random": every}
        yield PoolPairs(drawn, units, classes, PairDesign("class")).exact(p, "class"), repeat


def visit_scores(repeats):
    """Scores of new patients with two to five visits."""
    for repeat in range(repeats):
        rng = np.random.default_rng([19, repeat])
        groups = np.repeat(np.arange(100), rng.integers(2, 6, 100))
        noise = rng.normal(size=(len(groups), 4)) * rng.uniform(0.3, 1, 100)[groups][:, None]
        p = probabilities(rng.normal(size=(100, 4))[groups] + noise, "multilabel")
        a = np.flatnonzero(groups[1:] == groups[:-1])
        yield pool_pairs((a, a + 1), (a, a + 1), groups).exact(p, "temporal"), repeat


@pytest.mark.parametrize("which", ["images", "patients", "visits"])
def test_intervals_cover_about_as_often_as_they_say(which):
    made = visit_scores(150) if which == "visits" else class_scores(150, which == "patients")
    rows = []
    for exact, repeat in made:
        draws = resampled_exact(exact, 250, repeat)
        value = stamp(*exact.value())
        rows.append([value, *np.quantile(draws, [0.025, 0.975]), draws.std(), jackknife_se(exact)])
    value, low, high, spread, jackknife = np.array(rows).T
    truth = value.mean()
    assert 0.88 <= np.mean((low <= truth) & (truth <= high)) <= 0.995
    assert spread.mean() == pytest.approx(value.std(), rel=0.25)
    assert jackknife.mean() == pytest.approx(value.std(), rel=0.25)


def test_sv_of_drawn_visits_is_that_of_all_eligible_ones_without_bias():
    """The others whose images are there by chance are no fair sample; all drawn is exact."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(200), rng.choice([2, 12], 200, p=[0.7, 0.3]))
    often = np.bincount(groups)[groups] == 12
    noise = np.where(often, 0.3, 1.0)[:, None] * rng.normal(size=(len(groups), 3))
    p = rng.normal(size=(200, 3))[groups] + noise
    a = np.flatnonzero(groups[1:] == groups[:-1])
    distances = squared_distances(p, a, a + 1)
    drawn, by_chance = [], []
    for seed in range(150):
        some = a[np.random.default_rng(seed).permutation(len(a))[: len(a) // 2]]
        drawn.append(pool_pairs((some, some + 1), (some, some + 1), groups).exact(p, "temporal"))
        there = np.zeros(len(p), dtype=bool)
        there[[some, some + 1]] = True
        by_chance.append(distances[there[a] & there[a + 1]].mean())
    values = np.array([one.value()[0] for one in drawn])
    assert values.mean() == pytest.approx(distances.mean(), abs=4 * values.std() / np.sqrt(150))
    assert np.mean(by_chance) < distances.mean() - values.std()
    every = pool_pairs((a, a + 1), (a, a + 1), groups).exact(p, "temporal")
    assert every.value()[0] == pytest.approx(distances.mean(), rel=1e-12)


def test_few_pairs_vary_less_by_the_exact_estimator():
    """For 97 pairs, what is random about AV is most of a sampled score's noise."""
    rng = np.random.default_rng(7)
    p, groups = grouped(rng, groups=97, each=2, between=1.0, within=0.9)
    a = np.arange(0, 194, 2)
    found = []
    for seed in range(80):
        draws = np.random.default_rng(seed)
        random = draw_pairs(draws, groups, 0, 97)[1]
        one = scored(p, (a, a + 1), random, groups, resamples=2, estimator="exact")
        found.append([one.exact_stamp, one.sampled_stamp])
    exact, sampled = np.array(found).T
    assert np.ptp(exact) == 0 and sampled.std() > 0.02
