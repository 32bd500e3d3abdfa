"""Metrics from extra outputs: the right rows and classes of each, and a reason for what is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.linalg import sqrtm
from scipy.special import expit, softmax

from stamp.config.registries.extra_outputs import KINDS
from stamp.config.registries.metrics import METRICS, metrics_of
from stamp.core.artifacts import ids_digest, read_json, write_arrays, write_json
from stamp.metrics.from_extra_outputs import (
    MEASURES,
    TARGET_MEASURES,
    ExtraInputs,
    TargetEmbeddings,
    extra_values,
)
from stamp.metrics.inputs import ScaledOutputs, StreamedOutputs, TargetDomains, TargetOutputs
from stamp.metrics.metrics import NO_IMAGES_KEPT, NO_TARGETS, metric_table
from stamp.metrics.of_embeddings import transferability
from stamp.metrics.value import DEGENERATE, NO_EXTRA_OUTPUTS, NO_LABELS

N, IMAGES, CLASSES = 60, 24, 4
VIEW = pl.DataFrame(
    {
        "image": [f"i{number}" for number in range(N)],
        # calibration images stand between those of the pool
        "role": ["calibration" if number % 5 == 2 else "pool" for number in range(N)],
        "group": [f"g{number // 6}" for number in range(N)],
    }
)
POOL = [number for number in range(N) if number % 5 != 2]
THERE = np.array([True, False, True, True])
TEMPERATURE = 1.7
SEMANTIC = (np.arange(0, 20, 2), np.arange(1, 20, 2))
RANDOM = (np.arange(10), np.arange(30, 40))


def arrays(rng: np.random.Generator) -> dict[str, dict[str, np.ndarray]]:
    """Passes of the first pool images, with a class that the model has not."""
    rows = np.array(POOL[:IMAGES], dtype=np.int32)

    def logits(*planes: int) -> np.ndarray:
        values = rng.normal(size=(*planes, IMAGES, CLASSES)).astype(np.float32)
        values[..., 1] = np.nan
        return values

    found: dict[str, Any] = {
        kind: {"logits": logits()} for kind in ("flip", "rotation", "brightness", "contrast")
    }
    found |= {"crop": {"logits": logits()}, "tta": {"logits": logits(9)}}
    found["mc_dropout"] = {"logits": logits(5)}
    found["composite"] = {"logits": logits(), "embeddings": rng.normal(size=(IMAGES, 6))}
    found["rotation_prediction"] = {"embeddings": rng.normal(size=(3, IMAGES, 6))}
    found["gradcam"] = {"dice": rng.random(IMAGES), "pair_dice": rng.random(IMAGES // 2)}
    for each in found.values():
        each["rows"] = rows
    return {**found, "embeddings": {"embeddings": rng.normal(size=(N, 6))}}


def manifest(folder: Path, found: dict[str, Any], **more: Any) -> Path:
    images, entries = VIEW["image"].to_list(), {}
    for kind, each in found.items():
        own = [images[row] for row in each["rows"]] if "rows" in each else images
        card = {"model": "m", "view": "source", "kind": kind, "ids": ids_digest(own)}
        write_arrays(folder / kind / "m.safetensors", each, card)
        entries[kind] = {"file": f"{kind}/m.safetensors", "images": len(own)}
    write_json(
        folder / "m.json", {"model": "m", "study": "s", "extra_outputs": {**entries, **more}}
    )
    return folder / "m.json"


def pool_outputs(rng: np.random.Generator, task: str, constant: bool = False) -> ScaledOutputs:
    logits = rng.normal(size=(1 if constant else len(POOL), 3)) * 2
    logits = np.broadcast_to(logits, (len(POOL), 3))
    shape = (len(POOL),) if task == "multiclass" else (len(POOL), 3)
    labels = rng.integers(0, 3 if task == "multiclass" else 2, shape).astype(float)
    return ScaledOutputs.of(logits, labels, task, TEMPERATURE)


def extra(source: ScaledOutputs, file: Path | None) -> ExtraInputs:
    return ExtraInputs(file, VIEW, SEMANTIC, RANDOM, source, THERE)


def outputs(logits: np.ndarray, task: str) -> np.ndarray:
    scaled = logits[..., [0, 2, 3]].astype(float) / TEMPERATURE
    return softmax(scaled, axis=-1) if task == "multiclass" else expit(scaled)


@pytest.fixture(params=["multiclass", "multilabel"])
def task(request: pytest.FixtureRequest) -> str:
    return request.param


def test_every_metric_that_needs_passes_is_measured() -> None:
    made = [one for one in METRICS if one.extra_outputs and one.of_one_model]
    assert set(MEASURES) == {metric.name for metric in made if not metric.of_target}
    assert set(TARGET_MEASURES) == {metric.name for metric in made if metric.of_target}


def test_changed_outputs_are_set_against_those_of_the_same_images(
    tmp_path: Path, task: str
) -> None:
    rng = np.random.default_rng(0)
    found, source = arrays(rng), pool_outputs(rng, task)
    data = extra(source, manifest(tmp_path, found))
    values = extra_values(data, list(MEASURES))
    total = np.mean([sum((source.p[a] - source.p[b]) ** 2) for a, b in zip(*RANDOM, strict=True)])
    p = source.p[:IMAGES]
    for kind in ("flip", "rotation", "brightness", "contrast", "crop", "composite"):
        q = outputs(found[kind]["logits"], task)
        within = np.mean([sum((p[i] - q[i]) ** 2) for i in range(IMAGES)])
        assert values[f"aug_{kind}"][0].value == pytest.approx(1 - within / (total + 1e-8))
        assert values[f"aug_{kind}"][1] == IMAGES
        if kind == "flip":
            assert values["tta_flip"][0].value == pytest.approx(within)
    views = [p, outputs(found["flip"]["logits"], task), *outputs(found["tta"]["logits"], task)]
    assert len(views) == 11
    assert values["tta_multi"][0].value == pytest.approx(
        np.var(views, axis=0, ddof=1).sum(axis=1).mean()
    )
    drawn = np.var(outputs(found["mc_dropout"]["logits"], task), axis=0, ddof=1).sum(axis=1).mean()
    wanted = drawn if task == "multiclass" else drawn / 3
    assert values["mc_dropout"][0].value == pytest.approx(wanted)
    assert values["gradcam_dice"][0].value == pytest.approx(found["gradcam"]["dice"].mean())
    pairs = values["gradcam_dice_pairs"]
    assert pairs[0].value == pytest.approx(found["gradcam"]["pair_dice"].mean())
    assert pairs[1] == IMAGES // 2


def test_features_are_those_of_the_pool_in_its_order(tmp_path: Path, task: str) -> None:
    rng = np.random.default_rng(1)
    found, source = arrays(rng), pool_outputs(rng, task)
    values = extra_values(extra(source, manifest(tmp_path, found)), list(MEASURES))
    h = found["embeddings"]["embeddings"][POOL]

    def cosine(a: int, b: int) -> float:
        return float(h[a] @ h[b] / np.linalg.norm(h[a]) / np.linalg.norm(h[b]))

    near = np.mean([cosine(a, b) for a, b in zip(*SEMANTIC, strict=True)])
    far = np.mean([cosine(a, b) for a, b in zip(*RANDOM, strict=True)])
    assert values["embedding_instability"][0].value == pytest.approx(1 - near)
    assert values["feature_alignment"][0].value == pytest.approx(near - far)
    assert values["feature_norm"][1] == len(POOL)
    assert values["feature_norm"][0].value == pytest.approx(np.sqrt((h**2).sum(axis=1)).mean())
    first, second = h[:IMAGES], found["composite"]["embeddings"]
    moved = ((first.mean(axis=0) - second.mean(axis=0)) ** 2).sum()
    assert values["fd_frechet"][0].value > moved
    groups = np.array([int(VIEW["group"][row][1:]) for row in POOL])
    within = [h[groups == g].var(axis=0, ddof=1).sum() * 2 for g in np.unique(groups)]
    different = [
        ((h[a] - h[b]) ** 2).sum()
        for a in range(len(POOL))
        for b in range(len(POOL))
        if groups[a] != groups[b]
    ]
    assert values["fd_groups"][0].value == pytest.approx(1 - np.mean(within) / np.mean(different))


def target_manifest(
    folder: Path, rows: list[int], h: np.ndarray, images: dict[str, list[str]]
) -> Path:
    every = [image for named in images.values() for image in named]
    card = {"model": "m", "view": "targets", "kind": "target_embeddings"}
    card["ids"] = ids_digest([every[row] for row in rows])
    file = folder / "elsewhere" / "target_embeddings" / "m.safetensors"
    write_arrays(file, {"embeddings": h, "rows": np.array(rows, dtype=np.int32)}, card)
    entries = {
        "target_embeddings": {"file": "target_embeddings/m.safetensors", "images": len(rows)}
    }
    manifest = folder / "elsewhere" / "m.json"
    write_json(manifest, {"model": "m", "study": "s", "extra_outputs": entries})
    return manifest


def dispersion(h: np.ndarray, p: np.ndarray, task: str) -> float:
    """Xie et al.'s log of the scatter of the pseudo-classes' means, by loops."""
    unit = np.array([row / np.sqrt((row**2).sum()) for row in h])
    if task == "multiclass":
        splits = [p.argmax(axis=1)]
    else:
        counts = [min(max(round(column.mean() * len(p)), 1), len(p) - 1) for column in p.T]
        splits = [
            np.isin(np.arange(len(p)), np.argsort(-column)[:count]).astype(int)
            for column, count in zip(p.T, counts, strict=True)
        ]
    logs = []
    for split in splits:
        kinds = np.unique(split)
        gaps = [((unit[split == j].mean(axis=0) - unit.mean(axis=0)) ** 2).sum() for j in kinds]
        sizes = [(split == j).sum() for j in kinds]
        logs.append(np.log(np.dot(sizes, gaps) / (len(kinds) - 1)))
    return float(np.mean(logs))


def test_metrics_of_a_target_s_embeddings_are_of_its_own_images(tmp_path: Path, task: str) -> None:
    rng = np.random.default_rng(7)
    found, source = arrays(rng), pool_outputs(rng, task)
    images = {"far": [f"f{n}" for n in range(len(POOL))], "near": [f"n{n}" for n in range(9)]}
    rows = [*range(0, len(POOL), 2), *range(len(POOL), len(POOL) + 9)]  # every other one of far
    h = rng.normal(size=(len(rows), 6)) + np.arange(len(rows))[:, None] / 9
    there = TargetEmbeddings(target_manifest(tmp_path, rows, h, images), images)
    data = replace(extra(source, manifest(tmp_path, found)), target_embeddings=there)
    near = source.part(np.arange(len(source.p)) < 9)
    domains = pl.Series(["x"] * 20 + ["y"] * (len(POOL) - 20))
    nobody = source.part(np.zeros(len(source.p), dtype=bool))
    half, none = np.full(5, 0.5), np.zeros(0, dtype=int)
    halves = StreamedOutputs(np.zeros(5, dtype=int), half, half, none, nobody)
    streamed = {"far away": TargetOutputs(halves, TargetDomains(pl.Series(["z"] * 5)))}
    streamed = streamed if task == "multiclass" else {}
    targets = {
        "far": TargetOutputs(source, TargetDomains(domains)),
        "near": TargetOutputs(near, TargetDomains(pl.Series(["z"] * 9))),
    }
    table = metric_table(source, targets | streamed, data, ["fd_target", "dispersion"])
    pool = found["embeddings"]["embeddings"][POOL]
    parts = {("far", "all"): h[:-9], ("far", "x"): h[:10], ("far", "y"): h[10:-9]}
    parts["near", "all"] = h[-9:]
    assert len(table) == 2 * (len(parts) + len(streamed))
    p = {("far", "all"): source.p[::2], ("far", "x"): source.p[:20:2], ("near", "all"): near.p}
    p["far", "y"] = source.p[20::2]
    for row in table.iter_rows(named=True):
        if row["view"] == "far away":
            assert row["value"] is None and row["reason"] == NO_IMAGES_KEPT
            continue
        own = parts[row["view"], row["domain"]]
        if row["metric"] == "dispersion":
            expected = dispersion(own, p[row["view"], row["domain"]], task)
            assert row["value"] == pytest.approx(expected) and row["n"] == len(own)
            continue
        means, spread = pool.mean(axis=0) - own.mean(axis=0), np.cov(pool.T) + np.cov(own.T)
        root = sqrtm(np.cov(pool.T) @ np.cov(own.T)).real
        expected = means @ means + np.trace(spread - 2 * root)
        assert row["value"] == pytest.approx(expected) and row["n"] == len(own)


def test_scores_of_a_labeled_target_are_of_its_own_labels_and_the_classes_it_is_scored_on(
    tmp_path: Path, task: str
) -> None:
    rng = np.random.default_rng(8)
    found, source = arrays(rng), pool_outputs(rng, task)
    images = {"far": [f"f{n}" for n in range(len(POOL))]}
    rows = list(range(0, len(POOL), 2))
    h = rng.normal(size=(len(rows), 6)) + source.labels[rows].reshape(len(rows), -1)[:, :1]
    there = TargetEmbeddings(target_manifest(tmp_path, rows, h, images), images)
    data = replace(extra(source, manifest(tmp_path, found)), target_embeddings=there)
    where = TargetDomains(pl.Series(["x"] * len(POOL)), {"all": [0, 2]})
    unlabeled = replace(source, labels=np.full_like(source.labels, np.nan))
    target = TargetOutputs(unlabeled, where, labels=source.labels)
    names = ["logme_target", "leep_target", "h_score_target"]
    table = metric_table(source, {"far": target}, data, names)
    if task == "multiclass":
        y = np.where(source.labels == 1, np.nan, source.labels / 2)
        z = source.logits[:, [0, 2]] / TEMPERATURE
        p = softmax(z, axis=1)
    else:
        y, p = source.labels[:, [0, 2]], source.p[:, [0, 2]]
    expected = [
        transferability.logme(h, y[rows], task),
        transferability.leep(p, y, task),
        transferability.h_score(h, y[rows], task),
    ]
    for name, value in zip(names, expected, strict=True):
        row = table.filter(metric=name, domain="all").row(0, named=True)
        assert row["value"] == pytest.approx(value.value)
    none = metric_table(source, {"far": replace(target, labels=None)}, data, names)
    assert none["value"].is_null().all() and set(none["reason"]) == {NO_LABELS}


def test_distances_of_a_target_are_from_the_source_s_pool(tmp_path: Path, task: str) -> None:
    rng = np.random.default_rng(9)
    found, source = arrays(rng), pool_outputs(rng, task)
    images = {"far": [f"f{n}" for n in range(len(POOL))]}
    rows = list(range(len(POOL)))
    pool = found["embeddings"]["embeddings"][POOL]
    for moved, expected in ((0.0, (0, 0)), (1e3, (None, 2))):
        folder = tmp_path / str(moved)
        there = TargetEmbeddings(target_manifest(folder, rows, pool + moved, images), images)
        data = replace(extra(source, manifest(folder, found)), target_embeddings=there)
        target = TargetOutputs(source, TargetDomains(pl.Series(["x"] * len(POOL))))
        table = metric_table(source, {"far": target}, data, ["mmd", "proxy_a_distance"])
        values = dict(table.select("metric", "value").iter_rows())
        assert values["proxy_a_distance"] == pytest.approx(expected[1], abs=1e-6)
        if expected[0] is not None:
            assert values["mmd"] == pytest.approx(expected[0], abs=1e-6)
        else:
            assert values["mmd"] > 0.7


def test_a_pass_that_a_model_can_not_give_is_a_reason_in_each_metric_of_it(
    tmp_path: Path, task: str
) -> None:
    rng = np.random.default_rng(2)
    found = arrays(rng)
    for kind in ("embeddings", "mc_dropout"):
        del found[kind]
    missing = {"embeddings": {"reason": "no head"}, "mc_dropout": {"reason": "no dropout layer"}}
    source = pool_outputs(rng, task)
    data = extra(source, manifest(tmp_path, found, **missing))
    table = metric_table(source, {}, data)
    reasons = dict(table.filter(pl.col("value").is_null()).select("metric", "reason").iter_rows())
    for metric in metrics_of(task, stress_tests=False):
        if "embeddings" in metric.extra_outputs and not metric.of_target:
            assert reasons.pop(metric.name) == "no head"
        elif "mc_dropout" in metric.extra_outputs:
            assert reasons.pop(metric.name) == "no dropout layer"
        elif metric.of_target:
            assert reasons.pop(metric.name) == NO_TARGETS
        elif metric.unavailable:
            assert reasons.pop(metric.name) == metric.unavailable
    assert not reasons


def test_dropout_that_is_not_the_models_own_is_marked(tmp_path: Path, task: str) -> None:
    rng = np.random.default_rng(3)
    found, source = arrays(rng), pool_outputs(rng, task)
    file = manifest(tmp_path, found)
    record = read_json(file)
    record["extra_outputs"]["mc_dropout"]["note"] = "dropout of 0.1 before the last layer"
    write_json(file, record)
    value, _ = extra_values(extra(source, file), ["mc_dropout"])["mc_dropout"]
    assert value.value > 0 and value.reason == "dropout of 0.1 before the last layer"


def test_without_passes_every_metric_still_has_a_row(task: str) -> None:
    source = pool_outputs(np.random.default_rng(4), task)
    domains = pl.Series(["x"] * len(POOL))
    targets = {"far": TargetOutputs(source, TargetDomains(domains))}
    table = metric_table(source, targets, extra(source, None))
    assert set(table["metric"]) == {metric.name for metric in metrics_of(task, stress_tests=False)}
    none = table.filter(pl.col("reason") == NO_EXTRA_OUTPUTS)["metric"].to_list()
    assert none == [
        metric.name for metric in metrics_of(task, stress_tests=False) if metric.extra_outputs
    ]


def test_a_constant_model_has_no_metric_at_all(tmp_path: Path, task: str) -> None:
    rng = np.random.default_rng(5)
    source = pool_outputs(rng, task, constant=True)
    data = extra(source, manifest(tmp_path, arrays(rng)))
    domains = pl.Series(["x", "y"] * (len(POOL) // 2))
    table = metric_table(source, {"far": TargetOutputs(source, TargetDomains(domains))}, data)
    assert set(table["metric"]) == {metric.name for metric in metrics_of(task, stress_tests=False)}
    assert table["value"].is_null().all()
    assert set(table["reason"]) == {DEGENERATE}


def test_only_the_metrics_that_are_wanted_are_measured(tmp_path: Path, task: str) -> None:
    rng = np.random.default_rng(6)
    found, source = arrays(rng), pool_outputs(rng, task)
    only = {"flip": found["flip"]}
    data = extra(source, manifest(tmp_path, only))
    table = metric_table(source, {}, data, ["entropy", "tta_flip"])
    assert table["metric"].to_list() == ["entropy", "tta_flip"]
    assert table["value"].is_not_null().all()
    assert set(only) < set(KINDS)
