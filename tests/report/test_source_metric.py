"""The class-matched source metric against a loop over images, with its errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest

from stamp.report import leaderboard, outcomes
from stamp.report.comparison.source_metric import target_classes
from stamp.report.correlate import correlations
from stamp.scoring.evaluate import EvaluationSettings, evaluate_view
from stamp.stats.correlations.partial_correlation import partial_spearman

CLASSES = ["cat", "dog", "emu", "fox"]
MODELS = list("abcdefghij")
SHARES = {"source": [0.25] * 4, "near": [0.7, 0.1, 0.1, 0.1], "far": [0, 0.2, 0.5, 0.3]}
SETTINGS = {"permutations": 50, "resamples": 50, "level": 0.9}


def rows_of(view: str, patients: int = 80, seed: int = 0) -> pl.DataFrame:
    """Labeled images of patients, several each, in two domains of other class mixes."""
    rng = np.random.default_rng([seed, len(view), ord(view[0])])
    label = rng.choice(4, size=4 * patients, p=SHARES[view])
    return pl.DataFrame(
        {
            "image": [f"{view}-{at}" for at in range(len(label))],
            "label": pl.Series(label, dtype=pl.Int16),
            "group": [f"p{at // 4}" for at in range(len(label))],
            "domain": ["here" if one < 2 else "there" for one in rng.integers(4, size=len(label))],
        }
    )


def logits_of(rows: pl.DataFrame, model: str) -> np.ndarray:
    """Outputs that know each class as well as the model does, and patients that are hard."""
    rng = np.random.default_rng([ord(model), len(rows)])
    skill = np.random.default_rng(ord(model)).uniform(0, 2.5, size=4)
    z = rng.normal(size=(len(rows), 4))
    patients = rng.normal(scale=0.6, size=len(rows))
    of_patient = patients[rows["group"].str.strip_prefix("p").cast(pl.Int64).to_numpy()]
    label = rows["label"].fill_null(0).to_numpy()
    z[np.arange(len(rows)), label] += skill[label] + of_patient
    return z


def evaluated(subsets: Mapping[str, list[int]] | None = None, **views: Any) -> pl.DataFrame:
    """The evaluations of all models on the source and on the targets."""
    parts = []
    for model in MODELS:
        for view, rows in {"source": rows_of("source"), **views}.items():
            home = view == "source"
            chosen = {name: np.array(some) for name, some in (subsets or {}).items()}
            settings = EvaluationSettings(
                "multiclass", CLASSES, subsets=chosen if home else {}, influence=home
            )
            found = evaluate_view(rows, logits_of(rows, model), settings, view)
            columns = {"model": pl.lit(model), "view": pl.lit(view)}
            parts.append(found.with_columns(**columns))
    return pl.concat(parts, how="diagonal")


def weighted(model: str, mix: Mapping[int, float], among: list[int] | None = None) -> float:
    """The source accuracy of a model, every image weighted to the target's share of its class."""
    rows = rows_of("source")
    z, label = logits_of(rows, model), rows["label"].to_numpy()
    if among is not None:
        z[:, [c for c in range(4) if c not in among]] = -np.inf
    right = z.argmax(axis=1) == label
    weights = np.array([mix.get(int(c), 0) / np.sum(label == c) for c in label])
    return float(np.average(right, weights=weights))


def mix_of(rows: pl.DataFrame) -> dict[int, float]:
    return dict(rows.group_by("label").len().iter_rows())


def test_the_source_accuracy_is_weighted_to_the_classes_of_each_target() -> None:
    views = {name: rows_of(name) for name in ("near", "far")}
    found = outcomes.outcomes(evaluated(**views), {"near": "whole", "far": "domain"})
    parts = {
        "near": views["near"],
        "far/here": views["far"].filter(domain="here"),
        "far/there": views["far"].filter(domain="there"),
    }
    expected = {
        name: [weighted(model, mix_of(rows)) for model in MODELS] for name, rows in parts.items()
    }
    for name, values in expected.items():
        assert outcomes.values(found, f"source:{name}", MODELS) == pytest.approx(values)
    mean = np.mean(list(expected.values()), axis=0)
    assert outcomes.values(found, "source:mean", MODELS) == pytest.approx(mean)


def test_the_classes_of_a_mix_are_in_the_order_of_the_rows() -> None:
    """So that sums of floats have equal bits in equal runs."""
    names = [f"class {at}" for at in np.random.default_rng(0).permutation(200)]
    rows = pl.DataFrame({"class": names}).with_columns(
        model=pl.lit("a"),
        view=pl.lit("far"),
        domain=pl.lit("all"),
        metric=pl.lit("recall"),
        value=0.5,
        positives=3,
    )
    found = target_classes(pl.concat([rows, rows.with_columns(model=pl.lit("b"))]), {})
    assert list(found.mixes["far", "all"]) == names


def test_its_standard_error_and_covariance_are_those_of_drawing_patients_again() -> None:
    far, source = rows_of("far"), rows_of("source")
    found = outcomes.outcomes(evaluated(far=far), {"far": "whole"})
    mix, label = mix_of(far), source["label"].to_numpy()
    right = np.stack([logits_of(source, model).argmax(1) == label for model in MODELS])
    of_patient = np.arange(len(source)).reshape(-1, 4)
    rng, draws = np.random.default_rng(0), []
    for _ in range(3000):
        at = of_patient[rng.integers(len(of_patient), size=len(of_patient))].ravel()
        recall = [right[:, at[label[at] == c]].mean(axis=1) for c in mix]
        draws.append(np.average(recall, axis=0, weights=list(mix.values())))
    shared = outcomes.source_covariance(found, "far", MODELS)
    np.testing.assert_allclose(shared, np.cov(np.array(draws).T), atol=0.08 * shared.max())
    row = found.filter(outcome="source:far", model="c").row(0, named=True)
    assert row["se"] == pytest.approx(np.sqrt(shared[2, 2]))
    assert row["n"] == int(np.sum(label != 0))  # no image of the target is a cat


def test_predictions_among_the_targets_classes_are_weighted_among_them() -> None:
    far = rows_of("far")
    table = evaluated({"far": [1, 2, 3]}, far=far)
    found = outcomes.outcomes(table, {"far": "whole"})
    expected = [weighted(model, mix_of(far), [1, 2, 3]) for model in MODELS]
    assert outcomes.values(found, "source:far", MODELS) == pytest.approx(expected)


def test_an_expected_mix_is_taken_for_that_of_the_labels_and_needs_no_label() -> None:
    far = rows_of("far")
    unlabeled = far.with_columns(label=pl.lit(None, dtype=pl.Int16))
    mix = {"far": {"all": {"cat": 3.0, "fox": 1.0}}}
    expected = [weighted(model, {0: 3, 3: 1}) for model in MODELS]
    for rows in (far, unlabeled):
        found = outcomes.outcomes(evaluated(far=rows), {"far": "whole"}, (), mix)
        assert outcomes.values(found, "source:far", MODELS) == pytest.approx(expected)
    assert np.isnan(outcomes.values(found, "far", MODELS)).all()
    plain = outcomes.outcomes(evaluated(far=unlabeled), {"far": "whole"})
    assert outcomes.source_outcome(plain, "far") == "source"


def test_a_target_of_the_sources_own_mix_has_the_plain_source_metric() -> None:
    same = rows_of("source").with_columns(pl.col("image").str.replace("source", "same"))
    found = outcomes.outcomes(evaluated(same=same), {"same": "whole"})
    assert outcomes.source_outcome(found, "same") == "source"


def test_the_leaderboard_and_the_correlations_have_both_source_metrics() -> None:
    far = rows_of("far")
    found = outcomes.outcomes(evaluated(far=far), {"far": "whole"})
    rng = np.random.default_rng(3)
    board = pl.DataFrame({"model": MODELS, "stamp": rng.random(10), "parameters": range(10)})
    board = board.with_columns(
        raw="stamp",
        degenerate=False,
        **{
            name: pl.lit(None, dtype=pl.String)
            for name in ("excluded", "excluded_temperature", "excluded_chance", "contaminated")
        },
    )
    table = correlations(board, found, SETTINGS, 0).filter(filter="all", outcome="far")
    row = table.filter(predictor="stamp").row(0, named=True)
    truth, plain, matched = (
        outcomes.values(found, name, MODELS) for name in ("far", "source", "source:far")
    )
    score = board["stamp"].to_numpy()
    assert row["partial_source"] == pytest.approx(partial_spearman(score, truth, matched).rho)
    assert row["partial_plain_source"] == pytest.approx(partial_spearman(score, truth, plain).rho)
    both = {name: table.filter(predictor=name)["rho"][0] for name in table["predictor"]}
    assert row["source_metric_rho"] == both["source_matched"]
    assert row["plain_source_rho"] == both["source_metric"]
    ranks = pl.DataFrame({"model": MODELS, "rank": 1.0, "low": 1.0, "high": 1.0})
    said = {key: dict.fromkeys(("label", "family", "objective", "regime"), "x") for key in MODELS}
    empty = [*leaderboard.PARTS, *leaderboard.NUMBERS, "low", "high"]
    none = {name: pl.lit(None, pl.Float64) for name in empty if name not in board.columns}
    shown = leaderboard.leaderboard(board.with_columns(**none), found, ranks, said)
    first = shown.row(0, named=True)
    at = MODELS.index(first["model"])
    assert first["source:far"] == pytest.approx(matched[at]) != first["source_metric"]
    assert first["source_se:far"] > 0
