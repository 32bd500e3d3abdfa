"""Target-domain estimators where they are exact by construction, and against loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax
from scipy.stats import linregress, norm
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score

from stamp.metrics import target_estimates as est
from stamp.stats import on_the_line as lines

seeds = st.integers(0, 2**32)
BOTH = pytest.mark.parametrize("score", ["confidence", "negative_entropy"])


def multiclass(seed, n=200, classes=5):
    rng = np.random.default_rng(seed)
    z, there = rng.normal(scale=2, size=(2, n, classes))
    labels = np.where(rng.random(n) < 0.6, z.argmax(1), rng.integers(classes, size=n))
    return softmax(z, axis=1), labels, softmax(there, axis=1)


def multilabel(seed, n=300, m=200, rates=(0.5, 0.2, 0.1)):
    rng = np.random.default_rng(seed)
    y = (rng.random((n, len(rates))) < rates).astype(float)
    p = expit(2 * y - 2 + rng.normal(size=y.shape))
    there = expit(rng.normal(size=(m, len(rates))) - 1)
    y[rng.random(y.shape) < 0.1] = np.nan
    return p, y, there


def all_estimates(seed, order=slice(None), target_order=slice(None)):
    p, y, there = multiclass(seed)
    q, labels, elsewhere = multilabel(seed, m=200)
    first = (p[order], y[order], there[target_order])
    second = (q[: len(p)][order], labels[: len(p)][order], elsewhere[target_order])
    return [
        *(est.atc_multiclass(*first, score=name).value for name in est.SCORES),
        *(est.atc_multilabel(*second, score=name).value for name in est.SCORES),
        est.doc(*first).value,
        est.doc(*second).value,
        est.cbpe_auroc(*second).value,
    ]


@settings(max_examples=50)
@given(seeds, st.integers(0, 40))
def test_atc_on_the_source_itself_is_the_source_accuracy(seed, errors):
    rng = np.random.default_rng(seed)
    scores, right = rng.normal(size=40), rng.permutation(np.arange(40) >= errors)
    assert est.atc(scores, right, scores).value == pytest.approx(1 - errors / 40)


def test_atc_counts_the_target_images_at_or_above_the_threshold():
    # two errors of four: the threshold is the third smallest score, 3
    found = est.atc([4.0, 1.0, 3.0, 2.0], [True, False, False, True], [2.9, 3.0, 5.0, 0.0, 1.0])
    assert found.value == pytest.approx(2 / 5) and found.reason == ""


@BOTH
def test_atc_without_source_errors_is_one_and_with_nothing_but_errors_zero(score):
    p, _, there = multiclass(0)
    assert est.atc_multiclass(p, p.argmax(1), there, score).value == 1
    assert est.atc_multiclass(p, p.argmin(1), there, score).value == 0


@BOTH
def test_atc_of_multiclass_outputs_is_exact_on_the_source(score):
    p, labels, _ = multiclass(1)
    accuracy = (p.argmax(1) == labels).mean()
    assert est.atc_multiclass(p, labels, p, score).value == pytest.approx(accuracy)


def test_confidence_and_negative_entropy_of_known_rows():
    rows = [[0.25] * 4, [1, 0, 0, 0], [0.5, 0.5, 0, 0]]
    assert est.confidence(rows) == pytest.approx([0.25, 1, 0.5])
    assert est.negative_entropy(rows) == pytest.approx([-np.log(4), 0, -np.log(2)])


@settings(max_examples=25)
@given(seeds)
def test_as_many_are_predicted_positive_as_are_positive(seed):
    p, y, _ = multilabel(seed)
    for c in range(3):
        known = ~np.isnan(y[:, c])
        tau = est.prevalence_threshold(p[known, c], y[known, c])
        assert (p[known, c] >= tau).sum() == (y[:, c] == 1).sum()


def test_a_threshold_between_neighbouring_floats_still_parts_them():
    low = 0.3
    high = np.nextafter(low, 1)
    tau = est.prevalence_threshold([low, high], [0, 1])
    assert low < tau <= high


def test_recentring_keeps_the_ends_and_puts_the_threshold_at_one_half():
    assert est.recentred([0, 0.05, 0.1, 0.55, 1], 0.1) == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert est.recentred([0, 0.5, 1], 1.0) == pytest.approx([0, 0.25, 0.5])
    assert est.recentred([0, 0.5, 1], 0.0) == pytest.approx([0.5, 0.75, 1])


@BOTH
def test_multilabel_atc_on_the_source_itself_is_the_mean_accuracy_of_its_decisions(score):
    p, y, _ = multilabel(2)
    y = np.nan_to_num(y)
    ranked = np.argsort(np.argsort(-p, axis=0), axis=0)
    accuracy = ((ranked < y.sum(0)) == y).mean()
    assert est.atc_multilabel(p, y, p, score).value == pytest.approx(accuracy)
    assert est.doc(p, y, p).value == pytest.approx(accuracy)


def test_multilabel_atc_decides_and_scores_each_class_at_its_own_threshold():
    p, y, there = multilabel(3)
    expected = []
    for c in range(3):
        here, truth = p[~np.isnan(y[:, c]), c], y[~np.isnan(y[:, c]), c]
        ordered, m = sorted(here), int(truth.sum())
        tau = (ordered[-m] + ordered[-m - 1]) / 2
        away = [(tau - v) / tau if v < tau else (v - tau) / (1 - tau) for v in here]
        wrong = sum((v >= tau) != (t == 1) for v, t in zip(here, truth, strict=True))
        cut = sorted(away)[wrong]
        far = [(tau - v) / tau if v < tau else (v - tau) / (1 - tau) for v in there[:, c]]
        expected.append(np.mean([v >= cut for v in far]))
    for score in est.SCORES:
        assert est.atc_multilabel(p, y, there, score).value == pytest.approx(np.mean(expected))


def test_doc_adds_the_difference_of_confidences_to_the_source_accuracy():
    source, target = [[0.9, 0.1], [0.6, 0.4]], [[0.3, 0.7], [0.5, 0.5]]
    # accuracy 1/2, confidence .75 on the source and .6 on the target
    assert est.doc(source, [0, 1], target).value == pytest.approx(0.5 + 0.6 - 0.75)


def test_doc_of_multilabel_outputs_uses_the_recentred_confidence():
    source, target = [[0.1], [0.2], [0.4], [0.7]], [[0.3], [0.65]]
    # parted at .3: one of two positives found; confidences 5/6, 2/3, 4/7, 11/14 against 1/2, 3/4
    expected = 0.5 + (1 / 2 + 3 / 4) / 2 - (5 / 6 + 2 / 3 + 4 / 7 + 11 / 14) / 4
    found = est.doc(source, [[0], [1], [0], [1]], target, minimum=1)
    assert found.value == pytest.approx(expected)


@settings(max_examples=50)
@given(seeds)
def test_expected_auroc_is_that_of_a_loop_over_all_pairs(seed):
    rng = np.random.default_rng(seed)
    s, q = rng.integers(6, size=30) / 5, rng.random(30)
    above = total = 0.0
    for i in range(30):
        for j in range(30):
            weight = q[i] * (1 - q[j])
            above += weight * (1.0 if s[i] > s[j] else 0.5 if s[i] == s[j] else 0.0)
            total += weight
    assert est.expected_auroc(s, q) == pytest.approx(above / total)


def test_expected_auroc_of_certain_labels_is_the_auroc():
    rng = np.random.default_rng(4)
    s, y = np.round(rng.normal(size=80), 1), rng.integers(2, size=80)
    assert est.expected_auroc(s, y) == pytest.approx(roc_auc_score(y, s))
    assert np.isnan(est.expected_auroc(s, np.zeros(80)))


@settings(max_examples=25)
@given(seeds)
def test_isotonic_calibration_is_that_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    x = np.round(rng.random(60), 1 + seed % 3)
    y = (rng.random(60) < x).astype(float)
    at = rng.uniform(-0.2, 1.2, size=100)
    reference = IsotonicRegression(out_of_bounds="clip").fit(x, y).predict(at)
    assert est.isotonic(x, y, at) == pytest.approx(reference, abs=1e-9)


def test_expected_auroc_after_calibration_is_close_to_the_true_one_under_a_shift():
    rng = np.random.default_rng(5)
    truth_source, truth_target = rng.beta(1, 2, (20000, 2)), rng.beta(4, 6, (20000, 2))
    y, hidden = (rng.random(20000 * 2).reshape(-1, 2) < t for t in (truth_source, truth_target))
    # the model's outputs are a distortion of the true probabilities: calibration has to undo it
    found = est.cbpe_auroc(truth_source**3, y.astype(float), truth_target**3).value
    actual = np.mean([roc_auc_score(hidden[:, c], truth_target[:, c]) for c in range(2)])
    source = np.mean([roc_auc_score(y[:, c], truth_source[:, c]) for c in range(2)])
    assert found == pytest.approx(actual, abs=0.01) and abs(source - actual) > 0.05


def test_the_order_of_images_changes_nothing():
    rng = np.random.default_rng(6)
    moved = all_estimates(7, rng.permutation(200), rng.permutation(200))
    assert moved == pytest.approx(all_estimates(7), abs=1e-12)
    assert not np.isnan(moved).any()


def test_classes_without_outputs_or_with_few_labels_are_left_out_and_told():
    p, y, there = multilabel(8)
    wider = [np.pad(values, ((0, 0), (0, 2))) for values in (p, y, there)]
    wider[0][:, 3] = wider[2][:, 3] = np.nan
    wider[1][:150, 3] = 1
    wider[1][:9, 4] = 1
    for estimate in (est.atc_multilabel, est.doc, est.cbpe_auroc):
        found, narrow = estimate(*wider), estimate(p, y, there)
        assert found.value == pytest.approx(narrow.value)
        assert "3 of 5 classes" in found.reason and narrow.reason == ""


def test_what_cannot_be_estimated_says_why():
    p, y, there = multilabel(9)
    for estimate in (est.atc_multilabel, est.doc, est.cbpe_auroc):
        found = estimate(p, np.zeros_like(y), there)
        assert np.isnan(found.value) and "source labels" in found.reason
        assert estimate(p, y, there[:0]).reason == "no target images"
    q, labels, elsewhere = multiclass(9)
    for estimate in (est.atc_multiclass, est.doc):
        assert estimate(q, labels, elsewhere[:0]).reason == "no target images"
        assert estimate(q, np.full(len(q), np.nan), elsewhere).reason == "no labeled source images"
        found = estimate(q, labels, np.full_like(elsewhere, np.nan))
        assert np.isnan(found.value) and "target" in found.reason


def test_unlabeled_source_images_of_a_multiclass_study_do_not_count():
    p, labels, there = multiclass(10)
    gaps = np.where(np.arange(len(p)) < 50, np.nan, labels)
    for estimate in (est.atc_multiclass, est.doc):
        assert estimate(p, gaps, there).value == estimate(p[50:], labels[50:], there).value


def on_a_line(seed, models=8, slope=0.8, intercept=-0.4):
    """Source and target accuracies and agreements, all exactly on one line."""
    rng = np.random.default_rng(seed)
    accuracy = rng.uniform(0.4, 0.95, size=models)
    a = rng.uniform(0.3, 0.9, size=(models, models))
    a = np.triu(a, 1) + np.triu(a, 1).T + np.eye(models)
    moved = [norm.cdf(slope * norm.ppf(v) + intercept) for v in (accuracy, a)]
    return accuracy, a, moved[0], moved[1]


@settings(max_examples=25)
@given(seeds)
def test_both_variants_of_aline_recover_accuracies_on_the_line(seed):
    accuracy, a, target, b = on_a_line(seed)
    found = lines.aline(accuracy, a, b, n=1000)
    assert found.estimate_s == pytest.approx(target)
    assert found.estimate_d == pytest.approx(target)
    assert (found.slope, found.intercept, found.r2) == pytest.approx((0.8, -0.4, 1))
    assert found.pairs == 28 and found.reason == ""


def test_aline_d_is_the_least_squares_solution_over_the_usable_pairs():
    rng = np.random.default_rng(11)
    accuracy, a, _, b = on_a_line(11)
    b = np.clip(b + rng.normal(scale=0.02, size=b.shape), 0.06, 0.97)
    a[0, 1] = a[1, 0] = 0.99
    a[2, 3] = a[3, 2] = 0.02
    b[4, 5] = b[5, 4] = 0.985
    kept = [
        (i, j) for i in range(8) for j in range(i + 1, 8) if (i, j) not in [(0, 1), (2, 3), (4, 5)]
    ]
    i, j = np.array(kept).T
    x, y = norm.ppf(a[i, j]), norm.ppf(b[i, j])
    fit = linregress(x, y)
    design = (np.eye(8)[i] + np.eye(8)[j]) / 2
    own = norm.ppf(accuracy)
    w = np.linalg.lstsq(design, y + fit.slope * ((own[i] + own[j]) / 2 - x), rcond=None)[0]
    found = lines.aline(accuracy, a, b, n=10**6)
    assert found.estimate_d == pytest.approx(norm.cdf(w))
    assert (found.slope, found.intercept, found.pairs) == pytest.approx(
        (fit.slope, fit.intercept, 25)
    )
    assert found.r2 == pytest.approx(fit.rvalue**2)


def test_aline_of_many_models_is_that_of_the_dense_design():
    rng = np.random.default_rng(18)
    accuracy, a, _, b = on_a_line(18, models=60)
    a = np.clip(a + np.triu(rng.normal(scale=0.2, size=a.shape), 1), 0.01, 0.99)
    b = np.clip(b + np.triu(rng.normal(scale=0.02, size=b.shape), 1), 0.01, 0.99)
    b[59, :] = b[:, 59] = 0.99  # a model that no pair fixes
    i, j = np.triu_indices(60, k=1)
    keep = (np.abs(a[i, j] - 0.515) <= 0.465) & (np.abs(b[i, j] - 0.515) <= 0.465)
    i, j = i[keep], j[keep]
    assert 1000 < len(i) < 59 * 58 / 2
    x, y, own = norm.ppf(a[i, j]), norm.ppf(b[i, j]), norm.ppf(accuracy)
    design = (np.eye(60)[i] + np.eye(60)[j]) / 2
    right = y + linregress(x, y).slope * ((own[i] + own[j]) / 2 - x)
    w = np.linalg.lstsq(design, right, rcond=None)[0]
    found = lines.aline(accuracy, a, b, n=10**6)
    np.testing.assert_allclose(found.estimate_d[:59], norm.cdf(w[:59]), atol=1e-12)
    assert np.isnan(found.estimate_d[59])


def test_aline_s_ranks_models_as_their_source_accuracy_does():
    rng = np.random.default_rng(12)
    accuracy, a, _, _ = on_a_line(12)
    b = np.clip(0.8 * a + rng.normal(scale=0.01, size=a.shape), 0.06, 0.97)
    found = lines.aline(accuracy, a, b, n=1000)
    assert found.slope > 0
    assert (np.argsort(found.estimate_s) == np.argsort(accuracy)).all()


def test_agreement_off_the_line_is_a_warning_with_estimates():
    rng = np.random.default_rng(13)
    accuracy, a, _, _ = on_a_line(13)
    found = lines.aline(accuracy, a, rng.uniform(0.2, 0.9, size=a.shape), n=1000)
    assert found.r2 < 0.95 and "R2" in found.reason
    assert np.isfinite(found.estimate_s).all() and np.isfinite(found.estimate_d).all()


def test_too_few_usable_pairs_give_no_aline():
    accuracy, a, _, b = on_a_line(14, models=3)
    b[0, 1] = b[1, 0] = 0.01
    found = lines.aline(accuracy, a, b, n=100)
    assert np.isnan([*found.estimate_s, *found.estimate_d, found.slope]).all()
    assert found.pairs == 2 and "2 pairs" in found.reason
    assert "equally" in lines.aline([0.5] * 3, np.full((3, 3), 0.5), np.full((3, 3), 0.4), 9).reason


def test_aline_d_is_not_given_for_a_model_that_the_pairs_leave_open():
    accuracy, a, target, b = on_a_line(15, models=5)
    b[4, :4] = b[:4, 4] = 0.99
    found = lines.aline(accuracy, a, b, n=1000)
    assert np.isnan(found.estimate_d).tolist() == [False] * 4 + [True]
    assert found.estimate_d[:4] == pytest.approx(target[:4])
    assert found.estimate_s == pytest.approx(target)


def test_accuracies_of_zero_and_one_are_clipped_to_half_an_image():
    _, a, _, b = on_a_line(16, models=5)
    found = lines.aline([0, 1, 0.5, 0.6, 0.7], a, b, n=50)
    expected = norm.cdf(0.8 * norm.ppf([0.01, 0.99]) - 0.4)
    assert found.estimate_s[:2] == pytest.approx(expected)


@settings(max_examples=25)
@given(seeds)
def test_accuracy_on_the_line_is_ordinary_least_squares_and_refits_without_each_model(seed):
    rng = np.random.default_rng(seed)
    source = rng.uniform(0.3, 0.95, size=9)
    target = norm.cdf(0.7 * norm.ppf(source) - 0.3 + rng.normal(scale=0.1, size=9))
    source[8] = np.nan
    found = lines.accuracy_on_the_line(source, target, n=10**9)
    x, y = norm.ppf(source[:8]), norm.ppf(target[:8])
    fit = linregress(x, y)
    assert (found.r, found.slope, found.intercept) == pytest.approx(
        (fit.rvalue, fit.slope, fit.intercept)
    )
    assert found.residuals[:8] == pytest.approx(y - fit.slope * x - fit.intercept, abs=1e-9)
    for i in range(8):
        others = linregress(np.delete(x, i), np.delete(y, i))
        assert found.loo[i] == pytest.approx(norm.cdf(others.slope * x[i] + others.intercept))
    assert np.isnan(found.loo[8]) and np.isnan(found.residuals[8])


def test_a_line_needs_three_models_and_a_spread_of_source_values():
    found = lines.accuracy_on_the_line([0.5, 0.6], [0.4, 0.5], n=100)
    assert np.isnan(found.r) and "2 models" in found.reason
    assert "equal" in lines.accuracy_on_the_line([0.5] * 4, [0.1, 0.2, 0.3, 0.4], n=100).reason
    lone = lines.accuracy_on_the_line([0.5, 0.5, 0.5, 0.8], [0.4, 0.5, 0.45, 0.7], n=100)
    assert np.isnan(lone.loo).tolist() == [False, False, False, True]
