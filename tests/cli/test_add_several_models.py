"""One call of `add-model` for many models: which models an argument names, and what goes wrong."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stamp.cli.add_model.several import key_of, named_models, separated
from stamp.cli.add_model.zoo_texts import entry_texts
from stamp.core.errors import UserError
from stamp.models.loaders.precomputed import read

CLASSES = ["A", "B"]
IDS = ["x/1.png", "x/2.png", "x/3.png"]
OUTPUTS = {name: np.random.default_rng(len(name)).normal(size=(3, 2)) for name in ("one", "three")}


def test_the_arrays_of_an_npz_are_the_outputs_of_each_model(tmp_path: Path) -> None:
    file = tmp_path / "all.npz"
    np.savez(file, image=np.array(IDS), **OUTPUTS)
    with separated("logits", str(file), only_tried=False) as files:
        pass
    assert named_models(files).keys() == OUTPUTS.keys()
    for key, one in named_models(files).items():
        found = read(Path(one), CLASSES, CLASSES)
        assert found.ids.to_list() == IDS
        np.testing.assert_array_equal(found.values, OUTPUTS[key])


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_table_with_a_column_of_models_is_split_by_it(tmp_path: Path, ending: str) -> None:
    rows = [
        {"model": f"net {name}", "image": one, "A": values[0], "B": values[1]}
        for name, outputs in OUTPUTS.items()
        for one, values in zip(IDS, outputs, strict=True)
    ]
    table, file = pl.DataFrame(rows).sample(fraction=1, shuffle=True, seed=2), tmp_path / ending
    file = file.with_suffix(f".{ending}")
    getattr(table, f"write_{ending}")(file)
    with separated("logits", str(file), only_tried=False) as files:
        pass
    assert sorted(named_models(files)) == ["net-one", "net-three"]
    found = read(Path(named_models(files)["net-one"]), CLASSES, CLASSES)
    own = dict(zip(found.ids.to_list(), found.values, strict=True))
    np.testing.assert_allclose([own[one] for one in IDS], OUTPUTS["one"])


def test_nothing_stays_of_a_trial_or_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "all.npz"
    np.savez(file, ids=np.array(IDS), **OUTPUTS)
    with separated("logits", str(file), only_tried=True) as files:
        assert all(Path(one).is_file() for one in files)
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(UserError, match="model 'one'"), separated("logits", str(file), False):
        raise UserError("model 'one': wrong")
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_names_the_files_of_its_kind(tmp_path: Path) -> None:
    for name in ("b.onnx", "a.onnx", "notes.txt", "a.onnx.data"):
        (tmp_path / name).touch()
    with separated("onnx", str(tmp_path), False) as files:
        assert list(named_models(files)) == ["a", "b"]
    with (
        pytest.raises(UserError, match=r"no file that ends in \.pt"),
        separated("torchscript", str(tmp_path), False),
    ):
        pass


def test_timm_names_are_listed_or_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "tags.txt"
    file.write_text("# mine\nresnet50.a1_in1k\n\nvit_base.x  # large\n")
    with separated("timm", [str(file), "resnet18"], False) as tags:
        assert tags == ["resnet50.a1_in1k", "vit_base.x", "resnet18"]
    assert key_of("resnet50.a1_in1k") == "resnet50.a1_in1k"


def test_two_models_of_one_key_are_refused() -> None:
    with pytest.raises(UserError, match="would both be model 'a-b'"):
        named_models(["x/a b.onnx", "y/a-b.onnx"])


@pytest.mark.parametrize(
    ("arrays", "line"),
    [
        ({"one": OUTPUTS["one"]}, "no array 'image'"),
        ({"image": np.array(IDS)}, "no array of outputs"),
        ({"image": np.array(IDS[:2]), "one": OUTPUTS["one"]}, r"'one' has shape \[3, 2\]"),
    ],
)
def test_an_npz_that_is_not_outputs_is_refused(tmp_path: Path, arrays: dict, line: str) -> None:
    np.savez(tmp_path / "all.npz", **arrays)
    with (
        pytest.raises(UserError, match=line),
        separated("logits", str(tmp_path / "all.npz"), False),
    ):
        pass


def test_texts_of_many_models_are_read_from_a_table(tmp_path: Path) -> None:
    file = tmp_path / "about.csv"
    file.write_text("model,family,label\none,CNN,Net One\nthree,ViT,\n")
    given = argparse.Namespace(
        about=str(file), label=None, family=None, objective="supervised", regime="plain",
        trained_on=["train"], contamination=None,
    )  # fmt: skip
    found = entry_texts(given, ["one", "three"])
    assert found["one"]["label"] == "Net One"
    assert (found["three"]["label"], found["three"]["family"]) == ("three", "ViT")
    with pytest.raises(UserError, match=r"about\.csv: no row of model 'two'"):
        entry_texts(given, ["one", "two"])
    given.about = None
    with pytest.raises(UserError, match="model 'one' has no family: give --family"):
        entry_texts(given, ["one"])


def test_outputs_in_percent_are_told_to_be_divided_by_100(tmp_path: Path) -> None:
    from stamp.models.loaders.precomputed import as_logits

    percent = np.array([[70.0, 30.0], [0.5, 99.5]])
    for task, told in [("multiclass", None), ("multiclass", "softmax"), ("multilabel", "sigmoid")]:
        with pytest.raises(UserError, match=r"o\.csv: .*divide by 100"):
            as_logits(percent, {"probabilities": told}, task, Path("o.csv"), [])
    logits = np.array([[7.0, -3.0], [0.5, 9.5]])
    for block in ({}, {"probabilities": False}):
        assert as_logits(logits, block, "multiclass", Path("o.csv"), []) is logits
    assert as_logits(percent, {"probabilities": False}, "multiclass", Path("o.csv"), []) is percent
