"""The finished small studies, checked against numbers worked out from their files by hand."""

from __future__ import annotations

import csv
import json
import zipfile
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image
from project import PHANTOM, Project
from safetensors.numpy import load_file
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score


def outputs(project: Project, study: str, view: str, model: str) -> tuple[pl.DataFrame, np.ndarray]:
    rows = pl.read_parquet(project.result(f"{study}/views/{view}.parquet"))
    return rows, load_file(project.result(f"{study}/logits/{view}/{model}.safetensors"))["logits"]


def probabilities(project: Project, study: str, model: str, temperature: float):
    """A model's outputs on the source, and its images."""
    rows, logits = outputs(project, study, "source", model)
    if study == "small_phantom":
        return 1 / (1 + np.exp(-logits.astype(float) / temperature)), rows
    e = np.exp(logits.astype(float) / temperature)
    return e / e.sum(axis=1, keepdims=True), rows


def by_hand(project: Project, study: str, model: str, kind: str, count: int, temperature: float):
    """SV, AV and STAMP by plain loops over the pairs."""
    p, rows = probabilities(project, study, model, temperature)
    place = {image: row for row, image in enumerate(rows["image"])}
    pairs = pl.read_parquet(project.result(f"{study}/pairs.parquet"))

    def mean(name: str) -> float:
        chosen = pairs.filter(pl.col("kind") == name).head(count)
        distances = [
            sum((p[place[a]] - p[place[b]]) ** 2)
            for a, b in zip(chosen["a"], chosen["b"], strict=True)
        ]
        return sum(distances) / len(distances)

    within, total = mean(kind), mean("random")
    return within, total, 1 - within / (total + 1e-8)


@pytest.mark.parametrize("model", ["linear", "mixer"])
def test_the_temporal_score_is_the_formula(finished: Project, model: str) -> None:
    row = pl.read_parquet(finished.result(f"small_phantom/scores/{model}.parquet")).row(
        0, named=True
    )
    within, total, stamp = by_hand(finished, "small_phantom", model, "temporal", 60, 1.0)
    assert (row["sampled_within"], row["sampled_total"]) == pytest.approx((within, total))
    assert row["sampled_stamp"] == pytest.approx(stamp)
    assert row["estimator"] == "exact"
    assert row["low"] < row["stamp"] < row["high"]


@pytest.mark.parametrize("study", ["small_phantom", "small_digits"])
def test_the_exact_score_is_the_mean_over_all_pairs(finished: Project, study: str) -> None:
    """Every pair of the pool in turn; images count as ends of the semantic pairs."""
    row = pl.read_parquet(finished.result(f"{study}/scores/linear.parquet")).row(0, named=True)
    p, rows = probabilities(finished, study, "linear", row["temperature"])
    drawn = pl.read_parquet(finished.result(f"{study}/pairs.parquet"))
    drawn = drawn.filter(pl.col("kind") == row["kind"])
    place = {image: at for at, image in enumerate(rows["image"])}
    listed = [(place[a], place[b]) for a, b in drawn.select("a", "b").iter_rows()]
    group = rows["group"].to_list()
    shares = dict.fromkeys(listed, 1.0)
    if row["kind"] == "class":  # all pairs of a class, every class alike
        ends = sorted({end for pair in listed for end in pair})
        same = [(i, j) for i, j in combinations(ends, 2) if group[i] == group[j]]
        number = Counter(group[i] for i, _ in same)
        shares = {(i, j): 1 / number[group[i]] for i, j in same}
    weight = Counter()
    for pair, share in shares.items():
        weight.update(dict.fromkeys(pair, share))
    far = {
        (i, j): weight[i] * weight[j]
        for i, j in combinations(sorted(weight), 2)
        if group[i] != group[j]
    }
    within, total = (
        sum(share * sum((p[i] - p[j]) ** 2) for (i, j), share in each.items()) / sum(each.values())
        for each in (shares, far)
    )
    assert (row["n_semantic"], row["n_random"]) == (len(shares), len(far))
    assert (row["within"], row["total"]) == pytest.approx((within, total))
    assert row["stamp"] == row["exact_stamp"] == pytest.approx(1 - within / (total + 1e-8))


def test_the_class_score_uses_the_fitted_temperature(finished: Project) -> None:
    fitted = json.loads(finished.result("small_digits/calibration/linear.json").read_text())
    row = pl.read_parquet(finished.result("small_digits/scores/linear.parquet")).row(0, named=True)
    assert row["temperature"] == fitted["value"] != 1
    assert row["sampled_stamp"] == pytest.approx(
        by_hand(finished, "small_digits", "linear", "class", 200, fitted["value"])[2]
    )


def test_no_pair_image_is_a_calibration_or_training_image(finished: Project) -> None:
    for study in ("small_phantom", "small_digits"):
        rows = pl.read_parquet(finished.result(f"{study}/views/source.parquet"))
        train = pl.read_parquet(finished.result(f"{study}/views/train.parquet"))
        roles = {role: set(part["image"]) for (role,), part in rows.group_by("role")}
        assert not roles["pool"] & roles["calibration"]
        assert not roles["pool"] & set(train["image"])


def test_external_auroc_is_scikit_learns(finished: Project) -> None:
    rows, logits = outputs(finished, "small_phantom", "external", "linear")
    table = pl.read_parquet(finished.result("small_phantom/evaluations/external/linear.parquet"))
    north = (rows["domain"] == "north").to_numpy()
    column = PHANTOM["classes"].index("Effusion")
    truth = rows["Effusion"].to_numpy()[north]
    row = table.filter((pl.col("domain") == "north") & (pl.col("class") == "Effusion")).row(
        0, named=True
    )
    assert row["positives"] == truth.sum()
    assert row["value"] == pytest.approx(roc_auc_score(truth, logits[north, column]))


def test_a_domain_labeled_for_one_class_is_evaluated_and_scored_on_it(finished: Project) -> None:
    table = pl.read_parquet(finished.result("small_phantom/evaluations/external/linear.parquet"))
    clinic = {row["class"]: row for row in table.filter(pl.col("domain") == "clinic").to_dicts()}
    assert clinic["Edema"]["reason"] == "not labeled"
    assert clinic["macro"]["value"] == pytest.approx(clinic["Pneumonia"]["value"])
    file = finished.result("small_phantom/class_matched_scores/external/linear.parquet")
    matched = pl.read_parquet(file)
    assert matched["classes"].to_list() == ["Pneumonia"]


def test_source_accuracy_counts_every_test_image_once(finished: Project) -> None:
    """The id view adds the test images that the pairs do not use; none is forwarded twice."""
    source, known = outputs(finished, "small_digits", "source", "linear")
    rest, more = outputs(finished, "small_digits", "id", "linear")
    pool = (source["role"] == "pool").to_numpy()
    images = source.filter(pool)["image"].to_list() + rest["image"].to_list()
    assert len(images) == len(set(images)) == 1500
    right = (known[pool].argmax(1) == source.filter(pool)["label"].to_numpy()).sum()
    right += (more.argmax(1) == rest["label"].to_numpy()).sum()
    table = pl.read_parquet(finished.result("small_digits/evaluations/source/linear.parquet"))
    assert table["value"][0] == pytest.approx(right / 1500)


def test_printed_correlations_are_scipys(finished: Project) -> None:
    board = pl.read_csv(finished.result("small_phantom/leaderboard.csv"))
    scores = pl.read_parquet(finished.result("small_phantom/statistics/scores.parquet"))
    both = board.select("model", "target:mean").join(scores.select("model", "raw"), on="model")
    with finished.result("small_phantom/statistics/correlations.csv").open() as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if (row["filter"], row["outcome"], row["predictor"]) == ("all", "mean", "stamp")
        ]
    assert float(rows[0]["rho"]) == pytest.approx(spearmanr(both["raw"], both["target:mean"])[0])
    assert rows[0]["n"] == "4"


def test_figures_are_pictures_and_pdfs(finished: Project) -> None:
    for study in ("small_phantom", "small_digits"):
        for figure in ("targets", "ranks", "forest", "outranks"):
            path = finished.result(f"{study}/figures/{figure}.png")
            with Image.open(path) as picture:
                assert min(picture.size) > 300
                assert len(set(picture.convert("L").resize((64, 64)).tobytes())) > 8
            assert path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")


def test_the_report_has_every_figure_with_its_caption(finished: Project, tmp_path: Path) -> None:
    project = finished.copy(tmp_path / "project")
    project.finish("--report", "report.zip")
    with zipfile.ZipFile(project.folder / "report.zip") as report:
        names = report.namelist()
        pages = "".join(
            report.read(name).decode(errors="ignore")
            for name in names
            if name.endswith((".js", ".html"))
        )
    assert sum(name.endswith(".png") for name in names) >= 6
    assert "computed from source images alone" in pages
    assert "best score first" in pages


def test_a_run_says_where_to_look(finished: Project) -> None:
    logs = sorted((finished.folder / ".snakemake" / "log").glob("*.log"))
    assert logs
    text = finished.run().text
    assert "Nothing to be done" in text
