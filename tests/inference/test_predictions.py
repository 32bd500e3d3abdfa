"""Streamed targets: one row per image, the same predictions as from logits, flat memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image
from scipy.special import softmax
from scipy.stats import entropy
from torch import nn

from stamp.config.preprocessing import Preprocessing
from stamp.core.artifacts import array_metadata, ids_digest, read_arrays, write_table
from stamp.core.errors import UserError
from stamp.data.views import scored_classes
from stamp.images import decoded_images
from stamp.images.pixels import decode
from stamp.inference import predictions, streamed_sample
from stamp.inference.logits import Execution
from stamp.inference.outputs import PREDICTION_COLUMNS, Outputs, combined, read_predictions
from stamp.models.loaded_model import LoadedModel
from stamp.scoring import evaluate

HOW = Preprocessing(16, 3)
CLASSES = [f"n{number}" for number in range(7)]


class Means(nn.Module):
    """Seven fixed mixtures of the mean colours."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.head = nn.Linear(3, 7)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.head(pixels.mean(dim=(2, 3)))


@pytest.fixture
def view(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = []
    for number in range(25):
        path = tmp_path / f"{number}.png"
        image = rng.integers(0, 256, size=(1, 1, 3)) * np.ones((20, 20, 1))
        image[[0, 1, -2, -1]] = (255, 0, 0)  # a red frame
        image[:, [0, 1, -2, -1]] = (255, 0, 0)
        Image.fromarray(image.astype(np.uint8)).save(path)
        kind = "blur-1" if number % 2 else "blur-2"
        label = int(rng.integers(0, 7))
        rows.append({"image": f"i{number}", "path": str(path), "domain": kind, "split": "test"})
        rows[-1] |= {"label": label, "accepted": sorted({label, (label + 1) % 7})}
    file = tmp_path / "view.parquet"
    write_table(file, pl.DataFrame(rows), {})
    return file


def run(
    view: Path,
    among: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
    border: int = 0,
    made_from: Mapping[str, Any] = MappingProxyType({}),
) -> Path:
    monkeypatch.setattr(predictions, "PART", 8)
    target = view.with_name("predictions.safetensors")
    loaded = LoadedModel(Means(), (0.5,) * 3, (0.25,) * 3)
    metadata = {"model": "m", "view": "c"}
    streamed = predictions.StreamedTarget(view, HOW, len(CLASSES), among, border)
    execution = Execution("cpu", threads=2, batch=3)
    predictions.extract_predictions(target, streamed, loaded, metadata, execution, made_from)
    return target


def logits_of(view: Path, border: int = 0) -> np.ndarray:
    images = [decode(path, HOW, border) for path in pl.read_parquet(view)["path"]]
    batch = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2) / 255
    with torch.inference_mode():
        return Means()((batch - 0.5) / 0.25).numpy()


def test_predictions_are_what_logits_give(view: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    among = np.array([1, 3, 4])
    found = read_arrays(run(view, among, monkeypatch))["predictions"]
    z = logits_of(view)
    p = softmax(z[:, among].astype(float), axis=1)
    np.testing.assert_array_equal(found[:, 0], among[z[:, among].argmax(axis=1)])
    np.testing.assert_array_equal(found[:, 1], z.argmax(axis=1))
    np.testing.assert_allclose(found[:, 2], p.max(axis=1), rtol=1e-5)
    np.testing.assert_allclose(found[:, 3], entropy(p, axis=1), rtol=1e-4)


def test_a_few_images_of_every_domain_keep_their_logits(
    view: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = streamed_sample.sampled_rows(view, 4)
    table = pl.read_parquet(view)
    for domain in ("blur-1", "blur-2"):
        own = [row for row in range(25) if table["domain"][row] == domain]
        ids = {row: hashlib.sha256(table["image"][row].encode()).hexdigest() for row in own}
        assert sorted(set(rows) & set(own)) == sorted(sorted(own, key=ids.__getitem__)[:4])
    monkeypatch.setattr(streamed_sample, "BLOCK", 3)
    assert (streamed_sample.sampled_rows(view, 4) == rows).all()
    monkeypatch.setattr(predictions, "sampled_rows", lambda view: rows)
    found = read_predictions(view, run(view, np.array([1, 3]), monkeypatch), "m")
    assert found.sample is not None
    np.testing.assert_array_equal(found.sample[0], rows)
    np.testing.assert_allclose(found.sample[1], logits_of(view)[rows], rtol=1e-3, atol=1e-3)
    assert len(found.logits) == 25


def test_the_logits_of_a_sample_keep_their_probabilities() -> None:
    rng = np.random.default_rng(0)
    z = (rng.normal(size=(200, 1000)) * 3 + 60).astype(np.float32)
    z[:, 3] += rng.gamma(3, 3, size=200)
    rows, kept = streamed_sample.unpacked(streamed_sample.packed(z, np.arange(200)))
    np.testing.assert_array_equal(rows, np.arange(200))
    for temperature in (0.5, 1, 3):
        p, q = (softmax(one.astype(float) / temperature, axis=1) for one in (z, kept))
        np.testing.assert_allclose(q.max(axis=1), p.max(axis=1), rtol=1e-3)
        np.testing.assert_allclose(entropy(q, axis=1), entropy(p, axis=1), rtol=2e-3, atol=1e-6)


def test_a_border_is_cut_off_before_resizing(view: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = read_arrays(run(view, np.arange(7), monkeypatch, border=2))["predictions"]
    clean = logits_of(view, border=2)
    np.testing.assert_array_equal(found[:, 1], clean.argmax(axis=1))
    path = pl.read_parquet(view)["path"][0]
    assert len(np.unique(decode(path, HOW, 2).reshape(-1, 3), axis=0)) == 1  # no red is left
    assert len(np.unique(decode(path, HOW, 1).reshape(-1, 3), axis=0)) > 1
    with pytest.raises(UserError, match="all of it border"):
        decode(path, HOW, 10)


def test_predictions_name_the_images_they_are_of(
    view: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = run(view, np.arange(7), monkeypatch)
    card = array_metadata(target)
    assert card["ids"] == ids_digest(pl.read_parquet(view)["image"])
    assert (card["images"], card["columns"]) == ("25", ",".join(PREDICTION_COLUMNS))
    with pytest.raises(UserError, match="made with model 'm'"):
        read_predictions(view, target, "other")


def unfinished(view: Path) -> list[str]:
    """The files of the predictions that are kept, without those of the sample's logits."""
    found = sorted(path.name for path in view.parent.glob(".predictions*"))
    sample = [name for name in found if ".sample." in name]
    assert len(sample) in (0, 2)
    return [name for name in found if name not in sample]


def interrupted(view: Path, monkeypatch: pytest.MonkeyPatch, after: int, **more: Any) -> None:
    """A run that ends before the image of this number is decoded."""

    def failing(path: str, *how: Any) -> np.ndarray:
        if int(Path(path).stem) >= after:
            raise KeyboardInterrupt
        return decode(path, *how)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(decoded_images, "decode", failing)
        run(view, np.arange(7), monkeypatch, **more)


def watched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the images that are decoded from now on."""
    seen: list[int] = []

    def counting(path: str, *how: Any) -> np.ndarray:
        seen.append(int(Path(path).stem))
        return decode(path, *how)

    monkeypatch.setattr(decoded_images, "decode", counting)
    return seen


def test_a_run_that_was_stopped_goes_on_after_the_last_part_it_kept(
    view: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    straight = run(view, np.arange(7), monkeypatch).read_bytes()
    assert unfinished(view) == []
    (view.parent / "predictions.safetensors").unlink()
    interrupted(view, monkeypatch, after=20)  # parts of 8: two are kept
    assert len(unfinished(view)) == 2 and not (view.parent / "predictions.safetensors").exists()
    interrupted(view, monkeypatch, after=20)  # nothing more is won, nothing is lost
    seen = watched(monkeypatch)
    assert run(view, np.arange(7), monkeypatch).read_bytes() == straight
    assert sorted(seen) == list(range(16, 25))
    assert unfinished(view) == []


@pytest.mark.parametrize(
    "harm", ["other weights", "no record", "cut short", "garbled", "no sample"]
)
def test_what_was_kept_of_another_run_or_is_damaged_is_not_taken_up(
    view: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    straight = run(view, np.arange(7), monkeypatch).read_bytes()
    interrupted(view, monkeypatch, after=20, made_from={"weights": "a"})
    rows, record = (view.parent / name for name in unfinished(view))
    if harm == "no record":
        record.unlink()
    elif harm == "cut short":
        rows.write_bytes(rows.read_bytes()[:-1])
    elif harm == "garbled":
        record.write_text("[1")
    elif harm == "no sample":
        for file in view.parent.glob(".predictions*.sample.*"):
            file.unlink()
    seen = watched(monkeypatch)
    weights = "b" if harm == "other weights" else "a"
    target = run(view, np.arange(7), monkeypatch, made_from={"weights": weights})
    assert target.read_bytes() == straight
    assert len(seen) == 25 and unfinished(view) == []


def test_rows_after_the_last_record_are_written_again(
    view: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    straight = run(view, np.arange(7), monkeypatch).read_bytes()
    interrupted(view, monkeypatch, after=20)
    rows = view.parent / unfinished(view)[0]
    with open(rows, "ab") as file:  # of a part that was never told of
        file.write(b"\0" * 48)
    assert run(view, np.arange(7), monkeypatch).read_bytes() == straight


def test_a_streamed_evaluation_is_that_of_the_logits(
    view: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    among = np.array([0, 1, 2, 5])
    outputs = read_predictions(view, run(view, among, monkeypatch), "m")
    rows, kept = combined([outputs], None)
    how = evaluate.EvaluationSettings("multiclass", CLASSES, among=among)
    streamed = evaluate.evaluate_view(rows, kept, replace(how, streamed=True), "here")
    whole = Outputs(pl.read_parquet(view), logits_of(view), 1)
    plain = evaluate.evaluate_view(whole.rows, whole.logits, how, "here")
    assert streamed.equals(plain)
    z = logits_of(view)
    right = [
        among[row[among].argmax()] in accepted
        for row, accepted in zip(z, pl.read_parquet(view)["accepted"].to_list(), strict=True)
    ]
    assert plain["value"][0] == np.mean(right)
    every = plain.filter(pl.col("class") == "top1_of_all")["value"][0]
    truth = pl.read_parquet(view)["accepted"].to_list()
    assert every == np.mean([row.argmax() in ok for row, ok in zip(z, truth, strict=True)])


def test_a_subset_of_the_source_has_its_images_and_its_logits_alone() -> None:
    z = np.array([[3.0, 2, 1, 0], [0, 1, 2, 3], [1, 5, 0, 2], [9, 0, 1, 2]])
    found = evaluate.on_subsets(
        z,
        evaluate.LabeledImages([0, 2, 2, 1], pl.Series(["x"] * 4)),
        {"some": np.array([1, 2])},
        ["a", "b", "c", "d"],
    )
    assert found["domain"].to_list() == ["among:some"] * 3
    assert found["class"].to_list() == ["top1", "b", "c"]
    assert found["n"].to_list() == [3, 1, 2]
    assert found["value"].to_list()[1:] == [0.0, 0.5]
    assert found["value"][0] == pytest.approx(1 / 3)  # of images 1 (2: right), 2 (1), 3 (2)


def test_the_classes_that_predictions_are_taken_among(view: Path) -> None:
    assert scored_classes(None, CLASSES, view).tolist() == list(range(7))
    assert scored_classes(["n4", "n1"], CLASSES, view).tolist() == [1, 4]
    met = {number for each in pl.read_parquet(view)["accepted"].to_list() for number in each}
    assert scored_classes("labeled", CLASSES, view).tolist() == sorted(met)


def test_recalls_of_many_domains_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "MOST_RECALLS", 10)
    domains = pl.Series(["a", "b"] * 4)
    table = evaluate.evaluate_predictions(
        [0] * 8, evaluate.LabeledImages([0] * 8, domains), CLASSES
    )
    assert table.filter(pl.col("domain") == "all").height == 1 + len(CLASSES)
    assert table.filter(pl.col("domain") != "all")["class"].to_list() == ["top1", "top1"]
