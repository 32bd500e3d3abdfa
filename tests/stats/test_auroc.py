"""AUROC against scikit-learn and loops, its errors against DeLong's definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from stamp.stats.auroc import auroc, class_aurocs, macro, shortage

seeds = st.integers(0, 2**32)


def views(seed, n=60, classes=4, levels=8, unlabeled=0.2):
    """Scores with many ties, labels with gaps."""
    rng = np.random.default_rng(seed)
    labels = (rng.random((n, classes)) < [0.5, 0.3, 0.2, 0.6][:classes]).astype(float)
    scores = np.round(labels + rng.normal(scale=1.5, size=(n, classes)) * levels / 8, 0)
    labels[rng.random(labels.shape) < unlabeled] = np.nan
    return scores, labels


@settings(max_examples=50)
@given(seeds)
def test_class_aurocs_with_ties_and_gaps_are_those_of_scikit_learn(seed):
    scores, labels = views(seed)
    found = class_aurocs(scores, labels)
    for c in range(4):
        known = ~np.isnan(labels[:, c])
        y, s = labels[known, c], scores[known, c]
        assert found.positives[c] == y.sum() and found.negatives[c] == (1 - y).sum()
        if 0 < y.sum() < len(y):
            assert found.auroc[c] == pytest.approx(roc_auc_score(y, s))
            assert auroc(scores[:, c], labels[:, c]) == pytest.approx(roc_auc_score(y, s))


@settings(max_examples=25)
@given(seeds)
def test_standard_errors_are_those_of_delong_by_definition(seed):
    scores, labels = views(seed, n=30, classes=2)
    found = class_aurocs(scores, labels)
    for c in range(2):
        x, y = scores[labels[:, c] == 1, c], scores[labels[:, c] == 0, c]
        if min(len(x), len(y)) < 2:
            assert np.isnan(found.se[c])
            continue
        wins = (x[:, None] > y) + 0.5 * (x[:, None] == y)
        expected = wins.mean(1).var(ddof=1) / len(x) + wins.mean(0).var(ddof=1) / len(y)
        assert found.auroc[c] == pytest.approx(wins.mean())
        assert found.se[c] == pytest.approx(np.sqrt(expected), abs=1e-12)


def test_the_macro_error_takes_the_correlation_of_classes_into_account():
    rng = np.random.default_rng(3)

    def once():
        labels = (rng.random((200, 1)) < 0.4).astype(float)
        signal = labels + rng.normal(size=(200, 1))
        # Two classes that say the same about an image, nearly.
        scores = np.hstack([signal, signal + 0.3 * rng.normal(size=(200, 1))])
        return macro(class_aurocs(scores, np.hstack([labels, labels])), ["x", "y"])

    found = [once() for _ in range(300)]
    spread = np.std([m.value for m in found])
    assert np.mean([m.se for m in found]) == pytest.approx(spread, rel=0.12)


def test_a_macro_error_of_one_class_is_the_error_of_that_class():
    scores, labels = views(5)
    found = class_aurocs(scores[:, :1], labels[:, :1])
    assert macro(found, ["x"], 1).se == pytest.approx(found.se[0])


def test_the_macro_mean_names_the_classes_it_skips_and_why():
    rng = np.random.default_rng(0)
    labels = np.full((40, 4), np.nan)
    labels[:, 0] = np.arange(40) % 2
    labels[:, 1] = np.arange(40) < 9
    labels[:, 2] = np.arange(40) < 31
    found = class_aurocs(rng.normal(size=(40, 4)), labels)
    mean = macro(found, list("abcd"))
    assert mean.used == ["a"]
    assert mean.value == found.auroc[0]
    assert mean.skipped == {
        "b": "9 positives, 10 needed",
        "c": "9 negatives, 10 needed",
        "d": "not labeled",
    }
    assert macro(found, list("abcd"), 9).value == pytest.approx(found.auroc[:3].mean())
    nothing = macro(found, list("abcd"), 30)
    assert np.isnan(nothing.value) and nothing.used == []


def test_one_sided_classes_have_no_auroc_whatever_the_minimum():
    found = class_aurocs(np.arange(4.0)[:, None], np.ones((4, 1)))
    assert np.isnan(found.auroc[0])
    assert shortage(4, 0, 0) == "0 negatives, 1 needed"
    assert np.isnan(macro(found, ["x"], 0).value)


def test_perfect_reversed_and_constant_scores_have_their_known_areas():
    labels = np.array([0, 0, 1, 1, 1])
    assert auroc(labels * 2.0, labels) == 1
    assert auroc(-labels * 2.0, labels) == 0
    assert auroc(np.zeros(5), labels) == 0.5


def test_what_is_no_score_or_label_raises():
    with pytest.raises(ValueError, match="not finite"):
        auroc([np.nan, 1.0], [0, 1])
    with pytest.raises(ValueError, match="0, 1 or NaN"):
        auroc([0.0, 1.0], [0, 2])
    with pytest.raises(ValueError, match="shape"):
        class_aurocs(np.zeros((3, 2)), np.zeros((3, 1)))


# clusters


def patients(seed, count=80, classes=2):
    """Scores and labels of one to five images per patient that go together, with gaps."""
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(count), rng.integers(1, 6, size=count))
    ill = (rng.random((count, classes)) < 0.4)[clusters]
    labels = np.where(rng.random(ill.shape) < 0.1, ~ill, ill).astype(float)
    own = rng.normal(size=(count, classes))[clusters]
    scores = labels + 1.2 * own + 0.5 * rng.normal(size=ill.shape)
    labels[rng.random(labels.shape) < 0.05] = np.nan
    return scores, labels, clusters


def test_clustered_errors_are_those_of_a_bootstrap_of_patients():
    scores, labels, clusters = patients(1)
    found = class_aurocs(scores, labels, clusters)
    plain = class_aurocs(scores, labels)
    rows = [np.flatnonzero(clusters == k) for k in range(80)]
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(1500):
        drawn = np.concatenate([rows[k] for k in rng.integers(80, size=80)])
        draws.append(class_aurocs(scores[drawn], labels[drawn]).auroc)
    np.testing.assert_allclose(found.se, np.std(draws, axis=0), rtol=0.08)
    assert macro(found, ["a", "b"]).se == pytest.approx(np.mean(draws, axis=1).std(), rel=0.08)
    assert (found.se > 1.2 * plain.se).all()
    np.testing.assert_array_equal(found.auroc, plain.auroc)


def test_one_image_per_cluster_gives_delongs_errors_in_any_order_of_clusters():
    scores, labels = views(7)
    order = np.random.default_rng(0).permutation(len(scores))
    found, plain = class_aurocs(scores, labels, order), class_aurocs(scores, labels)
    np.testing.assert_allclose(found.se, plain.se)
    np.testing.assert_allclose(found.influence[order], plain.influence)


def test_doubled_images_in_clusters_say_no_more_than_single_ones():
    scores, labels = views(8)
    twice = class_aurocs(
        np.tile(scores, (2, 1)), np.tile(labels, (2, 1)), np.tile(np.arange(60), 2)
    )
    np.testing.assert_allclose(twice.se, class_aurocs(scores, labels).se)


def test_positives_of_one_patient_have_no_standard_error():
    labels = np.r_[np.ones(12), np.zeros(12)][:, None]
    found = class_aurocs(
        np.arange(24.0)[:, None], labels, np.r_[np.zeros(12, int), np.arange(1, 13)]
    )
    assert found.auroc[0] == 0 and np.isnan(found.se[0])
