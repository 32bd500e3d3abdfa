"""Evaluation rows against scikit-learn; what is missing is named."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import accuracy_score, recall_score, roc_auc_score

from stamp.core.errors import UserError
from stamp.scoring.evaluate import (
    INFLUENCE,
    SCHEMA,
    EvaluationSettings,
    LabeledImages,
    check_labeled,
    clusters,
    evaluate,
    evaluate_view,
)

CLASSES = ["Mass", "Edema", "Hernia"]


def multilabel(seed=0, n=200):
    """Two domains, the second labeled for one class only; the last class has four positives."""
    rng = np.random.default_rng(seed)
    labels = (rng.random((n, 3)) < [0.4, 0.5, 0]).astype(float)
    labels[:4, 2] = labels[n // 2 : n // 2 + 4, 2] = 1
    logits = labels + rng.normal(size=(n, 3))
    labels[n // 2 :, 1:] = np.nan
    domains = pl.Series(["north"] * (n // 2) + ["south"] * (n - n // 2))
    return logits, labels, domains


def evaluated(logits, labels, domains, *rest, **more):
    return evaluate(logits, LabeledImages(labels, domains), *rest, **more)


def cell(table, domain, name):
    return table.filter((pl.col("domain") == domain) & (pl.col("class") == name)).row(0, named=True)


def test_multilabel_rows_agree_with_scikit_learn_in_every_domain():
    logits, labels, domains = multilabel()
    table = evaluated(logits, labels, domains, "multilabel", CLASSES)
    assert dict(table.schema) == SCHEMA | INFLUENCE
    assert table["domain"].unique(maintain_order=True).to_list() == ["all", "north", "south"]
    assert table.height == 3 * 4
    for domain, rows in (
        ("all", slice(0, 200)),
        ("north", slice(0, 100)),
        ("south", slice(100, 200)),
    ):
        y, z = labels[rows], logits[rows]
        values = []
        for c, name in enumerate(CLASSES[:2]):
            known = ~np.isnan(y[:, c])
            found = cell(table, domain, name)
            if not known.any():
                assert (found["value"], found["reason"], found["n"]) == (None, "not labeled", 0)
                continue
            values.append(roc_auc_score(y[known, c], z[known, c]))
            assert found["value"] == pytest.approx(values[-1])
            assert found["metric"] == "auroc" and found["se"] > 0
            assert (found["n"], found["positives"]) == (known.sum(), y[known, c].sum())
        assert cell(table, domain, "macro")["value"] == pytest.approx(np.mean(values))
        assert cell(table, domain, "macro")["n"] == len(y)


def test_the_macro_row_says_which_classes_it_leaves_out():
    table = evaluated(*multilabel(), "multilabel", CLASSES)
    assert cell(table, "north", "macro")["reason"] == (
        "2 of 3 classes (Hernia: 4 positives, 10 needed)"
    )
    assert cell(table, "south", "macro")["reason"] == "1 of 3 classes (Edema, Hernia: not labeled)"
    assert cell(table, "north", "Hernia")["value"] is None
    assert cell(table, "north", "Hernia")["reason"] == "4 positives, 10 needed"
    fewer = evaluated(*multilabel(), "multilabel", CLASSES, minimum=4)
    assert cell(fewer, "north", "macro")["reason"] is None
    assert cell(fewer, "north", "Hernia")["value"] is not None


def test_a_view_without_labels_has_no_value_and_says_why():
    logits, labels, domains = multilabel()
    table = evaluated(logits, np.full_like(labels, np.nan), domains, "multilabel", CLASSES)
    assert table["value"].null_count() == table.height
    assert "not labeled" in cell(table, "all", "macro")["reason"]
    table = evaluated(logits, np.full(200, np.nan), domains, "multiclass", CLASSES)
    assert table["value"].null_count() == table.height
    assert set(table["reason"]) == {"not labeled"}


def test_multiclass_rows_are_accuracy_and_recall():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, size=300)
    logits = np.eye(3)[labels] + rng.normal(size=(300, 3))
    domains = pl.Series(["x", "y", "z"] * 100)
    table = evaluated(logits, labels, domains, "multiclass", CLASSES)
    guess = logits.argmax(axis=1)
    recall = recall_score(labels, guess, labels=[0, 1], average=None)
    top = cell(table, "all", "top1")
    assert top["value"] == pytest.approx(accuracy_score(labels, guess))
    assert top["se"] == pytest.approx(np.std(guess == labels, ddof=1) / np.sqrt(300))
    assert (top["metric"], top["n"], top["reason"]) == ("top1", 300, None)
    for c in (0, 1):
        found = cell(table, "all", CLASSES[c])
        assert (found["metric"], found["value"]) == ("recall", pytest.approx(recall[c]))
        assert found["positives"] == found["n"] == (labels == c).sum()
        assert found["negatives"] == (labels != c).sum()
    assert cell(table, "all", "Hernia")["value"] is None
    assert cell(table, "all", "Hernia")["reason"] == "no image of this class"
    right = (guess == labels)[1::3]
    assert cell(table, "y", "top1")["value"] == pytest.approx(right.mean())


def test_images_of_unknown_class_do_not_count():
    logits = np.eye(3)[[0, 1, 2, 0]]
    table = evaluated(
        logits, [0, 1, np.nan, 1], pl.Series([None] * 4, dtype=pl.String), "multiclass", CLASSES
    )
    assert table["domain"].unique().to_list() == ["all"]
    assert cell(table, "all", "top1")["n"] == 3
    assert cell(table, "all", "top1")["value"] == pytest.approx(2 / 3)


def test_one_domain_is_not_repeated_and_images_without_one_count_in_the_whole_only():
    logits, labels, _ = multilabel()
    table = evaluated(logits, labels, pl.Series(["one"] * 200), "multilabel", CLASSES)
    assert table["domain"].unique().to_list() == ["all"]
    domains = pl.Series(["a"] * 50 + ["b"] * 50 + [None] * 100)
    table = evaluated(logits, labels, domains, "multilabel", CLASSES)
    assert [cell(table, name, "macro")["n"] for name in ("all", "a", "b")] == [200, 50, 50]


def test_a_domain_named_all_is_refused():
    logits, labels, _ = multilabel()
    with pytest.raises(UserError, match="rename"):
        evaluated(logits, labels, pl.Series(["all"] * 200), "multilabel", CLASSES)


def test_arrays_that_do_not_belong_together_raise():
    logits, labels, domains = multilabel()
    for wrong, match in (
        ((logits[:-1], labels, domains, "multilabel"), "images x 3 classes"),
        ((logits, labels[:, :2], domains, "multilabel"), "do not match"),
        ((logits, labels, domains, "multiclass"), "do not match"),
        ((logits * np.nan, labels, domains, "multilabel"), "not finite"),
        ((logits, np.full(200, 3), domains, "multiclass"), "from 0 to 2"),
        ((logits, labels, domains, "ranking"), "task"),
    ):
        with pytest.raises(ValueError, match=match):
            evaluated(*wrong, CLASSES)


def test_declared_classes_have_to_be_the_labeled_ones():
    rows = pl.DataFrame(
        {
            "domain": ["n", "n", "s"],
            "Mass": [0, 1, 1],
            "Edema": [None, 1, None],
            "Hernia": [0, 0, None],
        }
    )
    check_labeled(rows, {}, CLASSES, "target 't'")
    check_labeled(rows, {"s": ["Mass"], "all": CLASSES}, CLASSES, "target 't'")
    with pytest.raises(UserError, match="target 't': domain 's' has no label of 'Edema'"):
        check_labeled(rows, {"s": ["Mass", "Edema"]}, CLASSES, "target 't'")
    with pytest.raises(UserError, match="'n' is labeled for 'Hernia' too"):
        check_labeled(rows, {"n": ["Mass", "Edema"]}, CLASSES, "target 't'")
    with pytest.raises(UserError, match="unknown domain 'q'"):
        check_labeled(rows, {"q": ["Mass"]}, CLASSES, "target 't'")
    numbers = pl.DataFrame({"domain": ["n", "n"], "label": [2, 0]})
    check_labeled(numbers, {"n": ["Mass", "Hernia"]}, CLASSES, "target 't'")
    with pytest.raises(UserError, match="no label of 'Edema'"):
        check_labeled(numbers, {"n": ["Mass", "Hernia", "Edema"]}, CLASSES, "target 't'")


# clusters of images


def patient_rows(seed=0, count=60):
    """Patients of several images and mostly one label each."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(count), rng.integers(1, 6, size=count))
    label = np.where(rng.random(group.size) < 0.1, 1, rng.integers(0, 3, size=count)[group])
    easy = rng.normal(size=count)[group]
    logits = np.eye(3)[label] * (1 + easy)[:, None] + 0.5 * rng.normal(size=(group.size, 3))
    rows = pl.DataFrame(
        {
            "image": [f"i{k}" for k in range(group.size)],
            "group": [f"p{k}" for k in group],
            "domain": ["a"] * group.size,
            "label": label.astype(np.int16),
        }
    )
    return rows, logits, group


def test_the_error_of_an_accuracy_is_that_of_a_bootstrap_of_patients():
    rows, logits, group = patient_rows()
    subsets = {"some": np.array([0, 1])}
    settings = EvaluationSettings("multiclass", CLASSES, subsets=subsets, influence=True)
    table = evaluate_view(rows, logits, settings, "here")
    label, guess, pair = rows["label"].to_numpy(), logits.argmax(1), logits[:, :2].argmax(1)
    of_patient = [np.flatnonzero(group == k) for k in range(60)]
    rng, draws = np.random.default_rng(0), []
    for _ in range(2000):
        at = np.concatenate([of_patient[k] for k in rng.integers(60, size=60)])
        right, own, some = (guess == label)[at], label[at] == 2, label[at] < 2
        among = (pair == label)[at]
        draws.append([right.mean(), right[own].mean(), among[some].mean()])
    expected = np.std(draws, axis=0)
    cells = [("all", "top1"), ("all", "Hernia"), ("among:some", "top1")]
    found = [cell(table, *one) for one in cells]
    assert [one["se"] for one in found] == pytest.approx(expected, rel=0.08)
    assert found[0]["se"] > 1.2 * np.std(guess == label) / np.sqrt(len(label))
    for one in (found[0], found[2]):
        assert np.sqrt(np.sum(np.square(one["influence"]))) == pytest.approx(one["se"])
        assert len(one["influence"]) == 60  # every patient, also those without such a class
    one = found[1]
    assert np.sqrt(np.sum(np.square(one["influence"]))) == pytest.approx(one["se"])
    assert (
        one["clusters"] == np.unique(clusters(rows)[label == 2]).tolist()
    )  # of its own patients alone
    subset = table.filter(pl.col("domain") == "among:some")
    assert subset["class"].to_list() == ["top1", "Mass", "Edema"]
    recall = (pair == label)[label == 0].mean()
    assert cell(table, "among:some", "Mass")["value"] == pytest.approx(recall)


def test_influences_of_two_models_give_the_error_of_their_difference():
    rows, logits, group = patient_rows(3)
    other = logits + 0.4 * np.random.default_rng(1).normal(size=logits.shape)
    settings = EvaluationSettings("multiclass", CLASSES, influence=True)
    first, second = (
        np.array(cell(evaluate_view(rows, z, settings, "here"), "all", "top1")["influence"])
        for z in (logits, other)
    )
    label = rows["label"].to_numpy()
    gap = (logits.argmax(1) == label).astype(float) - (other.argmax(1) == label)
    of_patient = [np.flatnonzero(group == k) for k in range(60)]
    rng = np.random.default_rng(0)
    draws = [
        gap[np.concatenate([of_patient[k] for k in rng.integers(60, size=60)])].mean()
        for _ in range(2000)
    ]
    assert np.linalg.norm(first - second) == pytest.approx(np.std(draws), rel=0.08)


def test_groups_that_are_classes_are_no_clusters():
    rows, logits, _ = patient_rows(4)
    classes = rows.with_columns(group=pl.col("label").cast(pl.String))
    assert clusters(classes) is None
    topics = pl.concat_str("label", (pl.col("image").str.len_chars() % 2), separator="-")
    finer = rows.with_columns(group=pl.when(pl.col("label") == 0).then(topics).otherwise("group"))
    assert clusters(rows.with_columns(group=topics.replace("0-0", "0-1"))) is None
    assert clusters(finer) is not None
    settings = EvaluationSettings("multiclass", CLASSES)
    table = evaluate_view(classes, logits, settings, "here")
    right = logits.argmax(1) == rows["label"].to_numpy()
    assert cell(table, "all", "top1")["se"] == pytest.approx(right.std(ddof=1) / right.size**0.5)
    assert "influence" not in table.columns


def test_images_without_a_group_are_their_own_cluster():
    rows = pl.DataFrame({"group": ["b", None, "a", "b", None]})
    found = clusters(rows)
    assert found[0] == found[3] and len(set(found)) == 4 and set(found) == set(range(4))
    assert clusters(pl.DataFrame({"group": pl.Series([None, None], dtype=pl.String)})) is None


def test_the_source_has_a_merged_class_from_its_parts_that_is_not_in_the_macro_mean():
    rng = np.random.default_rng(5)
    labels = (rng.random((300, 3)) < 0.3).astype(float)
    logits = labels + rng.normal(size=(300, 3))
    labels[:40, 1] = np.nan
    rows = pl.DataFrame(labels, schema=CLASSES).with_columns(
        pl.all().fill_nan(None).cast(pl.Int8), domain=pl.lit("a"), group=pl.lit(None, pl.String)
    )
    merge = {"Mass/Edema": ["Mass", "Edema"]}
    settings = EvaluationSettings("multilabel", CLASSES, merge=merge, influence=True)
    table = evaluate_view(rows, logits, settings, "here")
    either = np.where((labels[:, :2] == 1).any(1), 1, labels[:, :2].sum(1))
    known = ~np.isnan(either)
    row = cell(table, "merged:", "Mass/Edema")
    expected = roc_auc_score(either[known], logits[known, :2].max(axis=1))
    assert row["value"] == pytest.approx(expected) and row["n"] == known.sum()
    single = [cell(table, "all", name)["value"] for name in CLASSES]
    assert cell(table, "all", "macro")["value"] == pytest.approx(np.mean(single))
    assert "Mass/Edema" not in table.filter(pl.col("domain") == "all")["class"]
    neither = np.where([True, True, False], np.nan, logits)
    without = evaluate_view(rows, neither, settings, "here")  # no output for either part
    assert "merged:" not in without["domain"]
    assert cell(without, "all", "macro")["value"] == pytest.approx(single[2])
