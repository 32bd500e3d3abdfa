"""Profiles of one model: against loops, closed forms and features whose variances are known."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.spatial.distance import cosine
from scipy.special import expit, logit, softmax
from scipy.stats import mannwhitneyu
from sklearn.metrics import roc_auc_score

import model_profile
from stamp.core.artifacts import (
    ids_digest,
    read_arrays,
    read_table,
    write_arrays,
    write_json,
    write_table,
)
from stamp.data.pairs import class_pairs, consecutive, endpoints, random_pairs, sample
from stamp.report.analyses.bounds import profile as bounds
from stamp.report.analyses.gaps import profile as gaps
from stamp.report.analyses.identifiability import profile as identifiability
from stamp.report.analyses.layers.profile import unit_length
from stamp.report.analyses.seeds import profile as seeds
from stamp.report.profiles import centroids
from stamp.report.profiles.rows import PROFILE

CLASSES = ["Edema", "Mass", "Nodule"]
TAPS = {"early": 6, "mid": 8, "late": 10, "penultimate": 12}
AUGMENTATIONS = ("composite", "flip", "rotation", "brightness", "contrast", "crop")


class Params(dict):
    __getattr__ = dict.__getitem__


class Study:
    """Files of one model, as the workflow leaves them: 60 patients of 5 visits, 20 others."""

    def __init__(self, folder: Path, task: str = "multilabel", **params: Any):
        rng = np.random.default_rng(1)
        self.folder, self.task, self.rng = folder, task, rng
        patients, visits = 60, 5
        n = patients * visits
        group = np.repeat(np.arange(patients), visits)
        person, label = rng.normal(size=(patients, 3)), rng.random((n, 3)) < 0.3
        self.pool = 1.5 * person[group] + 1.0 * label + rng.normal(size=(n, 3))
        logits = np.concatenate([self.pool, rng.normal(size=(20, 3))]).astype(np.float32)
        roles = ["pool"] * n + ["calibration"] * 20
        ids = [f"i{k:04d}" for k in range(n + 20)]
        self.label = np.concatenate([label, rng.random((20, 3)) < 0.3])
        kind = rng.integers(0, 3, n + 20)
        columns = (
            {"label": kind.astype(np.int16)}
            if task == "multiclass"
            else {name: self.label[:, c].astype(np.int8) for c, name in enumerate(CLASSES)}
        )
        groups = [f"g{g}" for g in group] + [f"other{k}" for k in range(20)]
        if task == "multiclass":
            groups = [f"class {k}" for k in kind]
        self.view = pl.DataFrame(
            {
                "image": ids,
                "group": groups,
                "order": pl.Series([k % visits for k in range(n)] + [0] * 20, dtype=pl.Int32),
                **columns,
                "role": roles,
            }
        )
        rows = self.view.filter(pl.col("role") == "pool")
        if task == "multiclass":
            semantic, name = class_pairs(rows, 150, 3), "class"
        else:
            semantic, name = sample(consecutive(rows), 150, 3), "temporal"
        random = random_pairs(endpoints(semantic), 150, 3)
        self.pairs = pl.concat(
            [semantic.with_columns(kind=pl.lit(name)), random.with_columns(kind=pl.lit("random"))]
        )
        self.logits = logits
        self.metadata = {"model": "m", "view": "source", "ids": ids_digest(ids)}
        write_table(folder / "view.parquet", self.view, {"study": "s"})
        write_table(folder / "pairs.parquet", self.pairs, {"study": "s"})
        write_arrays(
            folder / "logits.safetensors", {"logits": logits}, {**self.metadata, "parameters": 9}
        )
        write_json(folder / "calibration.json", {"value": 2.0})
        self.extra_outputs: dict[str, Any] = {}
        self.made_for = ""
        self.params = Params(
            task=task,
            classes=CLASSES,
            semantic=name,
            random="different_group",
            pool="reuse",
            estimator="sampled",
            number=120,
            order="order",
            scale=False,
            resamples=300,
            level=0.9,
            options={},
            seed=3,
        )
        self.params |= params

    def add(self, kind: str, **arrays: np.ndarray) -> None:
        """A file of a kind of passes."""
        file = self.folder / f"{kind}.safetensors"
        ids = self.view["image"]
        own = {
            "kind": kind,
            "ids": self.made_for or ids_digest(ids[arrays.get("rows", range(320))]),
        }
        write_arrays(file, arrays, {**self.metadata, **own})
        self.extra_outputs[kind] = {"file": str(file), "digest": "x", "images": 1}

    def without(self, kind: str, reason: str) -> None:
        self.extra_outputs[kind] = {"reason": reason}

    def augment(self) -> np.ndarray:
        """All augmentations of the first 100 images, each a little stronger than the last."""
        rows = np.arange(100, dtype=np.int32)
        for at, kind in enumerate(AUGMENTATIONS):
            moved = self.logits[:100] + 0.1 * (at + 1) * self.rng.normal(size=(100, 3))
            self.add(kind, logits=moved.astype(np.float32), rows=rows)
        return rows

    def profile(self, name: str) -> pl.DataFrame:
        extra_outputs: Any = []
        if self.extra_outputs:
            extra_outputs = self.folder / "manifest.json"
            write_json(
                extra_outputs, {"model": "m", "study": "s", "extra_outputs": self.extra_outputs}
            )
        out = self.folder / f"{name}.parquet"
        model_profile.main(
            SimpleNamespace(
                params=self.params,
                wildcards=SimpleNamespace(model="m", study="s", profile=name),
                input=SimpleNamespace(
                    view=self.folder / "view.parquet",
                    pairs=self.folder / "pairs.parquet",
                    logits=self.folder / "logits.safetensors",
                    calibration=self.folder / "calibration.json",
                    extra_outputs=extra_outputs,
                ),
                output=[out],
            )
        )
        table = read_table(out, model="m", study="s", profile=name)
        assert dict(table.schema) == PROFILE
        assert (table["value"].is_null() == table["reason"].is_not_null()).all()
        return table

    @property
    def p(self) -> np.ndarray:
        z = self.logits[:300].astype(float)
        return expit(z) if self.task == "multilabel" else softmax(z, axis=1)

    def mean_distance(self, kind: str, vectors: np.ndarray | None = None) -> float:
        """By a loop over the pairs that a score uses."""
        vectors = self.p if vectors is None else vectors
        place = {image: row for row, image in enumerate(self.view["image"])}
        found = [
            np.sum((vectors[place[row["a"]]] - vectors[place[row["b"]]]) ** 2)
            for row in self.pairs.filter(pl.col("kind") == kind).head(120).iter_rows(named=True)
        ]
        return float(np.mean(found))


def value(table: pl.DataFrame, quantity: str, part: str | None = None) -> dict[str, Any]:
    same = pl.col("part").is_null() if part is None else pl.col("part") == part
    rows = table.filter((pl.col("quantity") == quantity) & same)
    assert len(rows) == 1, rows
    return rows.row(0, named=True)


# Gaps --------------------------------------------------------------------------------------------


def test_each_gap_is_scored_on_all_pairs_of_visits_so_far_apart(tmp_path: Path) -> None:
    study = Study(tmp_path, number=10_000)
    table = study.profile("gaps")
    total = np.mean(
        [
            np.sum((study.p[int(a[1:])] - study.p[int(b[1:])]) ** 2)
            for a, b in study.pairs.filter(pl.col("kind") == "random").select("a", "b").iter_rows()
        ]
    )
    for gap in range(1, 5):
        ends = [
            (a, b)
            for a, b in combinations(range(300), 2)
            if a // 5 == b // 5 and b % 5 - a % 5 == gap
        ]
        within = np.mean([np.sum((study.p[a] - study.p[b]) ** 2) for a, b in ends])
        row = value(table, "stamp", str(gap))
        assert row["n"] == len(ends) == 60 * (5 - gap)
        assert row["value"] == pytest.approx(1 - within / (total + 1e-8))
        assert row["low"] < row["value"] < row["high"]
        other = [bool((study.label[a] != study.label[b]).any()) for a, b in ends]
        assert value(table, "changed", str(gap))["value"] == pytest.approx(np.mean(other))
    assert value(table, "stamp", "5")["reason"].startswith("0 pooled pairs are 5 visits apart")


def test_a_gap_by_file_name_is_so_many_consecutive_pairs_end_to_end(tmp_path: Path) -> None:
    """Of images a to f of a group d is not in the pool: c and e are two apart, not neighbours."""
    pairs = pl.DataFrame(
        [
            ("a", "b", "temporal"),
            ("b", "c", "temporal"),
            ("e", "f", "temporal"),
            ("c", "x", "random"),
        ],
        schema=["a", "b", "kind"],
        orient="row",
    )
    images = pl.Series(["f", "a", "x", "c", "e", "b"])

    def found(gap: int) -> set[tuple[str, str]]:
        ends = gaps.chained_pairs(pairs, images, gap)
        return {(images[int(a)], images[int(b)]) for a, b in zip(*ends, strict=True)}

    assert found(1) == {("a", "b"), ("b", "c"), ("e", "f")}
    assert found(2) == {("a", "c")}
    assert found(3) == set()
    # in a study: by file name and by visit number alike where all consecutive pairs are drawn
    study = Study(tmp_path, number=10_000)
    every = consecutive(study.view.filter(pl.col("role") == "pool"))
    random = study.pairs.filter(pl.col("kind") == "random")
    pairs = pl.concat([every.with_columns(kind=pl.lit("temporal")), random])
    write_table(tmp_path / "pairs.parquet", pairs, {"study": "s"})
    by_visit = study.profile("gaps")
    study.params["order"] = "image"
    by_name = study.profile("gaps")
    for gap in "1234":
        one, other = (value(table, "stamp", gap) for table in (by_visit, by_name))
        assert (one["n"], one["value"]) == (other["n"], pytest.approx(other["value"]))


def test_visits_without_a_number_take_no_part() -> None:
    rows = pl.DataFrame({"image": ["a", "b", "c"], "group": ["g"] * 3, "order": [1, None, 2]})
    assert [end.tolist() for end in gaps.visit_pairs(rows, 1)] == [[0], [2]]


def test_classes_have_no_gaps(tmp_path: Path) -> None:
    table = Study(tmp_path, "multiclass").profile("gaps")
    assert table["value"].is_null().all()
    assert set(table["reason"]) == {"the groups are classes, whose images have no order"}


# Seeds -------------------------------------------------------------------------------------------


def test_halves_vary_as_the_mean_of_all_pairs_would() -> None:
    values = np.random.default_rng(0).exponential(size=400)
    found = seeds.half_means(values, 20_000, 1)
    assert found.std() == pytest.approx(values.std(ddof=1) / 20, rel=0.03)
    assert found.mean() == pytest.approx(values.mean(), abs=0.002)


def test_redrawn_random_pairs_go_on_where_the_studys_own_end(tmp_path: Path) -> None:
    study = Study(tmp_path)
    table = study.profile("seeds")
    drawn = study.pairs.filter(pl.col("kind") == "temporal")
    more = random_pairs(endpoints(drawn), 150 + 2 * 120, 3)
    assert more.head(150).equals(study.pairs.filter(pl.col("kind") == "random").drop("kind"))
    place = {image: row for row, image in enumerate(study.view["image"])}
    for draw in range(2):
        chosen = more.slice(150 + draw * 120, 120)
        total = np.mean(
            [
                np.sum((study.p[place[a]] - study.p[place[b]]) ** 2)
                for a, b in chosen.select("a", "b").iter_rows()
            ]
        )
        row = value(table, "random", str(draw))
        assert row["value"] == pytest.approx(1 - study.mean_distance("temporal") / (total + 1e-8))
    assert table.group_by("quantity").len()["len"].to_list() == [seeds.REDRAWS] * 3
    spread = {name: own["value"].std() for (name,), own in table.group_by("quantity")}
    assert spread["both"] ** 2 == pytest.approx(
        spread["semantic"] ** 2 + spread["random"] ** 2, rel=0.5
    )


def test_a_constant_model_has_reasons_and_no_numbers(tmp_path: Path) -> None:
    study = Study(tmp_path)
    study.augment()
    flat = np.zeros_like(study.logits)
    write_arrays(
        tmp_path / "logits.safetensors", {"logits": flat}, {**study.metadata, "parameters": 9}
    )
    for name in ("gaps", "seeds", "nuisance", "bounds", "ordering"):
        table = study.profile(name)
        assert table["value"].is_null().all(), name
        assert "the outputs are nearly constant" in table["reason"].to_list()


def test_outputs_too_flat_for_a_score_have_none_as_a_layer_either(tmp_path: Path) -> None:
    study = Study(tmp_path)
    flat = 1e-4 * study.logits  # not constant, and below what a score accepts
    write_arrays(
        tmp_path / "logits.safetensors", {"logits": flat}, {**study.metadata, "parameters": 9}
    )
    table = study.profile("layers")
    for kind in ("raw", "normalised"):
        assert value(table, kind, "output")["reason"] == "the outputs are nearly constant"


# Layers ------------------------------------------------------------------------------------------


def test_a_layers_stamp_is_its_share_of_variance_between_groups(tmp_path: Path) -> None:
    """Features with between variance b and within variance w a dimension: STAMP is b / (b + w)."""
    study = Study(tmp_path, number=10_000)
    rng = np.random.default_rng(8)
    shares = {"early": 0.1, "mid": 0.4, "late": 0.6, "penultimate": 0.9}
    arrays = {}
    for name, share in shares.items():
        between = rng.normal(size=(60, 400))[np.arange(300) // 5] * np.sqrt(share)
        own = between + rng.normal(size=(300, 400)) * np.sqrt(1 - share)
        arrays[name] = np.concatenate([own, np.full((20, 400), 77.0)]).astype(np.float32)
    study.add("embeddings", embeddings=arrays["penultimate"], **arrays)
    table = study.profile("layers")
    for name, share in shares.items():
        for kind in ("raw", "normalised"):
            assert value(table, kind, name)["value"] == pytest.approx(share, abs=0.04)
    assert value(table, "raw", "output")["value"] == pytest.approx(
        1
        - np.mean(
            [
                np.sum((study.p[int(a[1:])] - study.p[int(b[1:])]) ** 2)
                for a, b in study.pairs.filter(pl.col("kind") == "temporal")
                .select("a", "b")
                .iter_rows()
            ]
        )
        / np.mean(
            [
                np.sum((study.p[int(a[1:])] - study.p[int(b[1:])]) ** 2)
                for a, b in study.pairs.filter(pl.col("kind") == "random")
                .select("a", "b")
                .iter_rows()
            ]
        )
    )


def test_the_scale_of_single_images_moves_raw_but_not_normalised_features(tmp_path: Path) -> None:
    study = Study(tmp_path)
    rng = np.random.default_rng(2)
    plain = {name: rng.normal(size=(320, width)).astype(np.float32) for name, width in TAPS.items()}
    study.add("embeddings", **plain)
    before = study.profile("layers")
    scale = rng.uniform(0.5, 3, size=(320, 1)).astype(np.float32)
    study.add("embeddings", **{name: array * scale for name, array in plain.items()})
    after = study.profile("layers")
    for name in TAPS:
        own = [value(table, "normalised", name)["value"] for table in (before, after)]
        assert own[0] == pytest.approx(own[1], abs=1e-5)
        raw = [value(table, "raw", name)["value"] for table in (before, after)]
        assert abs(raw[0] - raw[1]) > 1e-3


def test_layers_that_a_network_lacks_have_the_reason(tmp_path: Path) -> None:
    study = Study(tmp_path)
    study.without("embeddings", "a file of logits has no layers")
    table = study.profile("layers")
    assert value(table, "raw", "mid")["reason"] == "a file of logits has no layers"
    assert value(table, "raw", "output")["value"] is not None
    study.add("embeddings", mid=np.ones((320, 4), np.float32))
    table = study.profile("layers")
    assert value(table, "raw", "early")["reason"] == "the network has no layer 'early'"
    assert value(table, "raw", "mid")["reason"] == "features are nearly constant"


# Cosines -----------------------------------------------------------------------------------------


def grouped_embeddings(share: float, width: int = 12) -> np.ndarray:
    """Embeddings of which a share of the variance is the patients', and 20 others."""
    rng = np.random.default_rng(21)
    between = rng.normal(size=(60, width))[np.arange(300) // 5] * np.sqrt(share)
    own = between + rng.normal(size=(300, width)) * np.sqrt(1 - share)
    return np.concatenate([own, np.full((20, width), 5.0)]).astype(np.float32)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_cosines_delta_and_p_are_those_of_loops_and_scipy(tmp_path: Path, share: float) -> None:
    study = Study(tmp_path)
    h = grouped_embeddings(share)
    study.add("embeddings", embeddings=h)
    table = study.profile("cosines")
    place = {image: row for row, image in enumerate(study.view["image"])}
    cosines = {}
    for part, kind in (("semantic", "temporal"), ("random", "random")):
        pairs = study.pairs.filter(pl.col("kind") == kind).head(120)
        ends = [(h[place[a]], h[place[b]]) for a, b in pairs.select("a", "b").iter_rows()]
        cosines[part] = np.array([1 - cosine(a.astype(float), b.astype(float)) for a, b in ends])
        row = value(table, "cosine", part)
        assert (row["value"], row["n"]) == (pytest.approx(cosines[part].mean()), 120)
    near, far = cosines["semantic"], cosines["random"]
    signs = np.sign(near[:, None] - far[None, :])
    delta = value(table, "delta")
    assert delta["value"] == pytest.approx(signs.mean())
    assert delta["low"] <= delta["value"] <= delta["high"]
    assert (delta["low"] > 0) == (share > 0)
    gap = value(table, "difference")
    assert gap["value"] == pytest.approx(near.mean() - far.mean())
    assert (gap["low"] > 0) == (share > 0)
    p = mannwhitneyu(near, far, method="asymptotic").pvalue
    assert value(table, "log10_p")["value"] == pytest.approx(np.log10(p))


def test_the_interval_of_delta_is_about_that_of_resampled_patients(tmp_path: Path) -> None:
    """The linear bootstrap beside the plain one: patients drawn again, delta from what is left."""
    study = Study(tmp_path, resamples=2000)
    h = grouped_embeddings(0.3).astype(float)
    study.add("embeddings", embeddings=h.astype(np.float32))
    found = value(study.profile("cosines"), "delta")
    h /= np.linalg.norm(h, axis=1, keepdims=True)
    sets = []
    for kind in ("temporal", "random"):
        pairs = study.pairs.filter(pl.col("kind") == kind).head(120)
        a, b = (np.array([int(i[1:]) for i in pairs[end]]) for end in ("a", "b"))
        sets.append((np.sum(h[a] * h[b], axis=1), a // 5, b // 5))
    (near, patient, _), (far, first, second) = sets
    signs = np.sign(near[:, None] - far[None, :])
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(2000):
        times = np.bincount(rng.integers(0, 60, 60), minlength=60)
        of_near, of_far = times[patient], times[first] * times[second]
        draws.append(of_near @ signs @ of_far / (of_near.sum() * of_far.sum()))
    low, high = np.quantile(draws, [0.05, 0.95])
    assert found["low"] == pytest.approx(low, abs=0.25 * (high - low))
    assert found["high"] == pytest.approx(high, abs=0.25 * (high - low))


def test_embeddings_that_say_nothing_have_the_reason_and_zeros_no_angle(tmp_path: Path) -> None:
    study = Study(tmp_path)
    study.add("embeddings", embeddings=np.full((320, 4), 3.0, np.float32))
    table = study.profile("cosines")
    assert table["reason"].str.contains("nearly constant").all()
    h = grouped_embeddings(0.5)
    first = study.pairs.filter(pl.col("kind") == "temporal")["a"][0]
    h[int(first[1:])] = 0
    study.add("embeddings", embeddings=h)
    used = study.pairs.filter(pl.col("kind") == "temporal").head(120)
    without = used.filter((pl.col("a") != first) & (pl.col("b") != first))
    assert value(study.profile("cosines"), "cosine", "semantic")["n"] == len(without) < 120
    study.add("embeddings", mid=np.ones((320, 4), np.float32))
    assert value(study.profile("cosines"), "delta")["reason"] == "the network has no embeddings"


def test_a_vector_of_zeros_stays_one() -> None:
    assert unit_length(np.array([[0.0, 0], [3, 4]])).tolist() == [[0, 0], [0.6, 0.8]]


# Nuisance and ordering ---------------------------------------------------------------------------


def test_the_nuisance_ratio_is_the_augmented_over_the_random_distance(tmp_path: Path) -> None:
    study = Study(tmp_path, scale=True)
    rows = study.augment()
    study.without("crop", "not here")
    table = study.profile("nuisance")
    p = expit(study.logits[:300].astype(float) / 2)
    total = study.mean_distance("random", p)
    for kind in AUGMENTATIONS[:-1]:
        moved = expit(read_arrays(study.extra_outputs[kind]["file"])["logits"].astype(float) / 2)
        within = np.mean([np.sum((p[row] - moved[row]) ** 2) for row in rows])
        row = value(table, "ratio", kind)
        assert row["value"] == pytest.approx(within / (total + 1e-8))
        assert row["low"] < row["value"] < row["high"] and row["n"] == 100
    assert value(table, "ratio", "crop")["reason"] == "not here"


def test_the_four_controls_are_the_means_of_their_own_pairs(tmp_path: Path) -> None:
    study = Study(tmp_path)
    study.augment()
    table = study.profile("ordering")
    place = {image: row for row, image in enumerate(study.view["image"])}
    same, other = [], []
    for pair in study.pairs.filter(pl.col("kind") == "temporal").head(120).iter_rows(named=True):
        a, b = place[pair["a"]], place[pair["b"]]
        alike = (study.label[a] == study.label[b]).all()
        (same if alike else other).append(np.sum((study.p[a] - study.p[b]) ** 2))
    assert value(table, "A", None)["value"] == pytest.approx(np.mean(same))
    assert value(table, "C", None)["value"] == pytest.approx(np.mean(other))
    assert value(table, "A")["n"] + value(table, "C")["n"] == 120
    assert value(table, "D")["value"] == pytest.approx(study.mean_distance("random"))
    means = [value(table, name)["value"] for name in "BACD"]
    assert value(table, "order")["value"] == float(means == sorted(means))
    chances = [
        value(table, "probability", part)["value"] for part in ("B <= A", "A <= C", "C <= D")
    ]
    assert all(0 <= one <= 1 for one in chances)
    assert value(table, "probability", "all")["value"] <= min(chances)
    assert chances[0] > 0.99  # a tenth of the noise against a whole visit


def test_bootstrap_probability_of_a_step_agrees_with_a_loop_over_resamples(tmp_path: Path) -> None:
    study = Study(tmp_path, resamples=4000)
    study.augment()
    table = study.profile("ordering")
    place = {image: row for row, image in enumerate(study.view["image"])}
    by_group: dict[bool, list[tuple[int, float]]] = {True: [], False: []}
    for pair in study.pairs.filter(pl.col("kind") == "temporal").head(120).iter_rows(named=True):
        a, b = place[pair["a"]], place[pair["b"]]
        alike = bool((study.label[a] == study.label[b]).all())
        by_group[alike].append((a // 5, np.sum((study.p[a] - study.p[b]) ** 2)))
    rng = np.random.default_rng(0)
    held = []
    for _ in range(2000):
        times = np.bincount(rng.integers(0, 60, 60), minlength=60)
        means = [
            sum(times[g] * d for g, d in by_group[alike])
            / max(1, sum(times[g] for g, _ in by_group[alike]))
            for alike in (True, False)
        ]
        held.append(means[0] <= means[1])
    found = value(table, "probability", "A <= C")["value"]
    assert found == pytest.approx(np.mean(held), abs=0.05)


def test_classes_have_no_negative_controls(tmp_path: Path) -> None:
    study = Study(tmp_path, "multiclass")
    study.augment()
    table = study.profile("ordering")
    assert table["value"].is_null().all() and "the groups are classes" in table["reason"][0]


# Centroids, sensitivity, bounds ------------------------------------------------------------------


def test_the_centroid_gap_is_the_mean_distance_to_the_nearest_known_mean() -> None:
    centres = np.array([[0.0, 0], [1, 0], [1, 3]])
    labels = np.repeat([0.0, 1, 2], 4)
    offsets = np.tile([[0.1, 0], [-0.1, 0], [0, 0.2], [0, -0.2]], (3, 1))
    p = centres[labels.astype(int)] + offsets
    belong = centroids.members(labels, "multiclass", ["a", "b", "c"], 2)
    terms = centroids.class_terms(p, belong)
    assert terms.gap == pytest.approx([1, 1, 3])
    # along x the deviations are +-0.1, along y +-0.2; ddof is 1 over four images
    assert terms.variance == pytest.approx([0.02 / 3, 0.02 / 3, 0.08 / 3])
    assert terms.ratio == pytest.approx([0.02 / 3, 0.02 / 3, 0.08 / 27])


def test_multilabel_images_belong_to_each_label_and_the_rest_to_no_finding() -> None:
    labels = np.array([[1, 1], [0, 0], [0, 1], [0, np.nan], [0, 0], [1, 0]])
    belong = centroids.members(labels, "multilabel", ["a", "b"], 1)
    assert belong.names == ["a", "b", "No Finding"]
    pairs = sorted(zip(belong.classes.tolist(), belong.rows.tolist(), strict=True))
    assert pairs == [(0, 0), (0, 5), (1, 0), (1, 2), (2, 1), (2, 4)]
    fewer = centroids.members(labels, "multilabel", ["a", "b"], 3)
    assert fewer.names == []


def test_positives_are_set_against_negatives_and_the_unlabeled_left_out() -> None:
    p = np.array([[1.0, 0], [0, 0], [0, 4], [9, 9]])
    labels = np.array([[1.0], [0], [0], [np.nan]])
    assert centroids.side_gaps(p, labels, 1) == pytest.approx([np.hypot(1, 2)])
    assert np.isnan(centroids.side_gaps(p, labels, 2)).all()


def test_the_sensitivity_of_a_linear_map_along_its_axes_is_its_largest_singular_value() -> None:
    rng = np.random.default_rng(4)
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    matrix = turn @ np.diag(np.arange(1.0, 9))
    x = rng.normal(size=(5, 8))
    steps = 0.01 * np.eye(8)[:, None, :]  # one direction each, the same for all images
    norms = np.full((8, 5), 0.01)
    norms[0] = 0  # a perturbation of no length tells nothing
    found = identifiability.sensitivity(x @ matrix.T, (x + steps) @ matrix.T, norms)
    assert found == pytest.approx(np.full(5, 8.0))


def test_the_lipschitz_proxy_is_of_probabilities_and_averages_the_steepest(tmp_path: Path) -> None:
    study = Study(tmp_path)
    rng = np.random.default_rng(6)
    rows = np.array([3, 7, 250], dtype=np.int32)
    # of full precision, which the scores' own logits need not be
    base = study.logits[rows] + 0.01 * rng.normal(size=(3, 3)).astype(np.float32)
    norms = rng.uniform(0.5, 1, size=(8, 3)).astype(np.float32)
    after = study.logits[rows] + 0.1 * rng.normal(size=(8, 3, 3)).astype(np.float32)
    study.add("perturbations", logits=after, base=base, norms=norms, rows=rows)
    table = study.profile("identifiability")
    steepest = [
        max(
            np.linalg.norm(expit(after[k, i].astype(float)) - expit(base[i].astype(float)))
            / norms[k, i]
            for k in range(8)
        )
        for i in range(3)
    ]
    assert value(table, "lipschitz")["value"] == pytest.approx(np.mean(steepest), rel=1e-5)
    labels = study.label[:300]
    means = [study.p[labels[:, c]].mean(axis=0) for c in range(3)]
    means.append(study.p[~labels.any(axis=1)].mean(axis=0))
    nearest = [
        min(np.linalg.norm(one - two) for at, two in enumerate(means) if at != own)
        for own, one in enumerate(means)
    ]
    assert value(table, "centroid_gap")["value"] == pytest.approx(np.mean(nearest))
    sides = [
        np.linalg.norm(study.p[labels[:, c]].mean(axis=0) - study.p[~labels[:, c]].mean(axis=0))
        for c in range(3)
    ]
    assert value(table, "side_gap")["value"] == pytest.approx(np.mean(sides))


@pytest.mark.parametrize("task", ["multilabel", "multiclass"])
@pytest.mark.parametrize("scale", [False, True])
def test_variants_of_the_proxy_are_a_mean_of_norms_and_a_slope_over_the_pairs_of_the_score(
    tmp_path: Path, task: str, scale: bool
) -> None:
    study = Study(tmp_path, task, scale=scale)
    rng = np.random.default_rng(7)
    norms = rng.uniform(1, 2, 5).astype(np.float32)
    study.add("jacobian", norms=norms, rows=np.arange(5, dtype=np.int32))
    place = {image: row for row, image in enumerate(study.view["image"])}
    pairs = study.pairs.filter(pl.col("kind") == study.params.semantic)
    a, b = (np.array([place[one] for one in pairs[end]], dtype=np.int32) for end in ("a", "b"))
    squared = rng.uniform(50, 90, len(a))  # of all 150 pairs; the score uses 120
    study.add("pixel_distances", a=a, b=b, squared=squared)
    table = study.profile("identifiability")
    assert value(table, "lipschitz_spectral")["value"] == pytest.approx(sum(map(float, norms)) / 5)
    assert value(table, "lipschitz_spectral")["n"] == 5
    moved = apart = 0.0
    for at in range(120):
        z = [study.logits[row[at]].astype(float) / (2 if scale else 1) for row in (a, b)]
        p = [softmax(one) if task == "multiclass" else expit(one) for one in z]
        moved += sum((p[0] - p[1]) ** 2)
        apart += squared[at]
    row = value(table, "lipschitz_pairs")
    assert row["value"] == pytest.approx(np.sqrt(moved / apart)) and row["n"] == 120
    assert value(table, "lipschitz")["reason"] == (
        "the extra output 'perturbations' was not asked for"
    )


def test_a_variant_that_a_model_has_not_keeps_its_reason(tmp_path: Path) -> None:
    study = Study(tmp_path)
    study.without("jacobian", "gradients can't be taken: it is a file")
    place = {image: row for row, image in enumerate(study.view["image"])}
    pairs = study.pairs.filter(pl.col("kind") == "temporal")
    a, b = (np.array([place[one] for one in pairs[end]], dtype=np.int32) for end in ("a", "b"))
    study.add("pixel_distances", a=a, b=b, squared=np.zeros(len(a)))
    table = study.profile("identifiability")
    assert value(table, "lipschitz_spectral")["reason"] == "gradients can't be taken: it is a file"
    assert "are the same" in value(table, "lipschitz_pairs")["reason"]
    study.add("pixel_distances", a=b, b=a, squared=np.ones(len(a)))
    with pytest.raises(ValueError, match="of other pairs than the score"):
        study.profile("identifiability")


def test_class_and_patient_shares_of_variance_are_apart_and_without_bias() -> None:
    """Outputs of two classes, variance 1 within and 1 between: eta squared is 1/2."""
    rng = np.random.default_rng(3)
    labels = np.arange(40_000) % 2
    p = np.stack([2.0 * labels, np.zeros(40_000)], axis=1)
    p[:, 0] += rng.normal(size=40_000)
    belong = centroids.members(labels.astype(float), "multiclass", ["a", "b"])
    found = {row["quantity"]: row["value"] for row in bounds._terms(p, belong)}
    assert found["class_eta2"] == pytest.approx(0.5, abs=0.02)
    assert found["spread_ratio"] == pytest.approx(1.0, abs=0.05)
    # gamma = 2 and sigma_proj = 1, so r = 1/4 of both classes: a quarter of S_W / S_B
    assert found["mean_ratio"] == pytest.approx(0.25, abs=0.02)
    assert found["agreement"] == pytest.approx(0.25, abs=0.02)
    assert found["cv"] < 0.1


def test_patients_may_explain_what_classes_do_not(tmp_path: Path) -> None:
    table = Study(tmp_path).profile("bounds")
    assert value(table, "patient_eta2")["value"] > value(table, "class_eta2")["value"] + 0.2
    classes = table.filter(pl.col("quantity") == "class_ratio")
    assert classes["part"].to_list() == [*CLASSES, "No Finding"]
    ratio = classes["value"].to_numpy()
    assert value(table, "mean_ratio")["value"] == pytest.approx(ratio.mean())
    assert value(table, "cv")["value"] == pytest.approx(ratio.std(ddof=1) / ratio.mean())
    spread = value(table, "spread_ratio")["value"]
    eta2 = value(table, "class_eta2")["value"]
    assert spread == pytest.approx((1 - eta2) / eta2, rel=1e-5)
    assert value(table, "agreement")["value"] == pytest.approx(ratio.mean() / spread)


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_a_robustness_profile_is_what_a_loop_over_changed_images_gives(
    tmp_path: Path, task: str
) -> None:
    scored = {"far": {"classes": {"all": CLASSES[:2]}, "merge": {}, "among": None}}
    if task == "multiclass":
        scored["far"] = {"classes": {}, "merge": {}, "among": CLASSES[:2]}
    study = Study(tmp_path, task, options={"minimum": 3, "scored": scored})
    rows = np.arange(0, 200, 2, dtype=np.int32)
    moved = {}
    for size, change in enumerate(("blur", "noise"), 1):
        moved[change] = study.logits[rows] + size * study.rng.normal(size=(100, 3))
        study.add(change, logits=moved[change].astype(np.float32), rows=rows)
    table = study.profile("robustness")
    clean, labels = study.logits[rows].astype(float), study.view[rows]

    def metric(z: np.ndarray, classes: int = 3) -> float:
        if task == "multiclass":
            inside = [at for at in range(100) if labels["label"][at] < classes]
            return float(
                np.mean([z[at, :classes].argmax() == labels["label"][at] for at in inside])
            )
        areas = [roc_auc_score(labels[one], z[:, at]) for at, one in enumerate(CLASSES[:classes])]
        return float(np.mean(areas))

    total = study.mean_distance("random")
    outputs = {
        name: expit(z) if task == "multilabel" else softmax(z, axis=1) for name, z in moved.items()
    }
    for name, z in moved.items():
        own = value(table, "metric", name)
        assert own["value"] == pytest.approx(metric(z), abs=1e-6)
        assert own["low"] < own["value"] < own["high"] and own["n"] == 100
        fall = value(table, "fall", name)
        assert fall["value"] == pytest.approx(metric(clean) - metric(z), abs=1e-6)
        few = value(table, "metric:far/all", name)
        assert few["value"] == pytest.approx(metric(z, 2), abs=1e-6)
        apart = np.sum((outputs[name] - study.p[rows]) ** 2, axis=1).mean()
        found = value(table, "stability", name)
        assert found["value"] == pytest.approx(1 - apart / total, abs=1e-5)
        assert found["low"] < found["value"] < found["high"]
    for quantity in ("metric", "fall", "stability"):
        both = [value(table, quantity, name)["value"] for name in moved]
        assert value(table, quantity, "mean")["value"] == pytest.approx(np.mean(both))


def test_a_model_without_stress_tests_has_a_reason_in_every_row(tmp_path: Path) -> None:
    study = Study(tmp_path, "multilabel", options={"minimum": 3, "scored": {}})
    study.without("blur", "its logits are precomputed")
    table = study.profile("robustness")
    assert table["value"].is_null().all()
    assert set(table["part"]) == {"clean", "blur", "mean"}
    for quantity in ("metric", "fall", "stability"):
        assert "precomputed" in value(table, quantity, "blur")["reason"]


def test_passes_of_another_model_or_of_other_images_are_refused(tmp_path: Path) -> None:
    study = Study(tmp_path)
    study.made_for = "other"
    study.augment()
    with pytest.raises(Exception, match="made with ids 'other'"):
        study.profile("nuisance")


def test_classes_without_an_output_are_left_out_of_outputs_and_passes(tmp_path: Path) -> None:
    study = Study(tmp_path)
    study.logits[:, 1] = np.nan
    write_arrays(
        tmp_path / "logits.safetensors",
        {"logits": study.logits},
        {**study.metadata, "parameters": 9},
    )
    rows = np.arange(50, dtype=np.int32)
    moved = study.logits[:50] + 0.5
    study.add("composite", logits=moved, rows=rows)
    found = value(study.profile("nuisance"), "ratio", "composite")["value"]
    p = expit(study.logits[:300, [0, 2]].astype(float))
    within = np.mean(np.sum((p[:50] - expit(logit(p[:50]) + 0.5)) ** 2, axis=1))
    assert found == pytest.approx(within / study.mean_distance("random", p), rel=1e-4)
