"""CheXpert: the real training table, all layouts in circulation, uncertain and blank labels."""

from __future__ import annotations

import csv
import gzip
import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest
from naming import check_named
from official import chexpert as official
from PIL import Image
from project import ROOT

from stamp.config.labels import label_maps as labelmaps
from stamp.core.errors import UserError
from stamp.data.adapters import chexpert
from stamp.data.label_tables import CLASSES, labels, shipped
from stamp.data.views import check_index

REAL = shipped("chexpert_train.csv.gz")
real = pytest.mark.skipif(REAL is None, reason="torchxrayvision is not installed")
SHARED = {
    "Atelectasis",
    "Cardiomegaly",
    "Consolidation",
    "Edema",
    "Effusion",
    "Pneumonia",
    "Pneumothorax",
}
ALL = {"splits": ["train", "valid", "test"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("chexpert")
    official.make(root, patients=40, seed=3, size=32)
    return root


def mistake(root: Path, **options: object) -> str:
    with pytest.raises(UserError) as caught:
        chexpert.index(options, root, seed=1)
    return str(caught.value)


def written(lines: Iterable[str]) -> dict[str, dict[str, str]]:
    """The table's rows by the path below the version's folder, read by another reader."""
    return {row["Path"].removeprefix("CheXpert-v1.0-small/"): row for row in csv.DictReader(lines)}


@real
def test_the_shipped_table_has_all_training_rows_and_frontal_images(tmp_path):
    options = {"splits": ["train"], "metadata": "shipped"}
    whole = chexpert.index({**options, "frontal": False}, tmp_path, seed=1)
    frontal = check_index(chexpert.index(options, tmp_path, seed=1), "chexpert")
    assert (whole.height, frontal.height) == (223_414, 191_027)
    assert whole["group"].n_unique() == 64_540
    assert frontal["Atelectasis"].null_count() == 29_863
    unlabeled = [name for name in CLASSES if frontal[name].null_count() == frontal.height]
    assert set(CLASSES) - set(unlabeled) == SHARED


@real
def test_uncertain_labels_of_the_training_frontals_are_as_the_documentation_counts_them(tmp_path):
    page = (ROOT / "docs" / "medical.md").read_text()
    options = {"splits": ["train"], "metadata": "shipped"}
    kept, left = (
        chexpert.index({**options, "uncertain": policy}, tmp_path, seed=1)
        for policy in ("zero", "ignore")
    )
    for name in sorted(SHARED):
        assert kept[name].null_count() == 0
        assert f"| {name} | {kept[name].sum():,} | {left[name].null_count():,} |" in page
    views = dict(kept["position"].value_counts().iter_rows())
    assert f"{views['AP']:,} AP, {views['PA']:,} PA" in page


@real
def test_labels_of_the_shipped_table_are_those_that_another_reader_finds(tmp_path):
    with gzip.open(REAL, "rt") as lines:
        rows = written(lines)
    index = chexpert.index({"splits": ["train"], "metadata": "shipped"}, tmp_path, seed=1)
    meant = {"1.0": 1, "0.0": 0, "": 0, "-1.0": None}
    for column, name in labelmaps.read("chexpert").items():
        assert index[name].to_list() == [meant[rows[image][column]] for image in index["image"]]


@pytest.mark.parametrize("layout", list(official.LAYOUTS))
def test_every_layout_gives_the_same_index_and_paths_of_real_pictures(made, tmp_path, layout):
    official.make(tmp_path, patients=40, seed=3, size=32, layout=layout)
    splits = list(official.LAYOUTS[layout].tables)
    index = check_index(chexpert.index({"splits": splits}, tmp_path, seed=1), "chexpert")
    expected = chexpert.index({"splits": splits}, made, seed=1)
    assert index.drop("path").equals(expected.drop("path"))
    assert {Image.open(path).size for path in index["path"]} == {(40, 32)}


def test_tables_in_the_root_find_pictures_in_the_versions_folder(made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    home = tmp_path / "CheXpert-v1.0-small"
    home = home.rename(tmp_path / "CheXpert-v1.0")
    for file in home.glob("*.csv"):
        file.rename(tmp_path / file.name)
    index = chexpert.index(ALL, tmp_path, seed=1)
    assert all(Path(path).is_file() for path in index["path"])
    assert set(index["path"].str.contains("/CheXpert-v1.0/")) == {True}


def test_pictures_beside_the_table_come_before_those_elsewhere(made, tmp_path):
    shutil.copytree(made / "CheXpert-v1.0-small", tmp_path / "CheXpert-v1.0")
    (tmp_path / "CheXpert-v1.0-small" / "valid").mkdir(parents=True)
    assert all(Path(path).is_file() for path in chexpert.index({}, tmp_path, seed=1)["path"])


def test_the_first_batch_of_the_full_size_set_serves_the_valid_split(made, tmp_path):
    batch = tmp_path / "CheXpert-v1.0 batch 1 (validate & csv)"
    shutil.copytree(made / "CheXpert-v1.0-small", batch)
    assert all(Path(path).is_file() for path in chexpert.index({}, tmp_path, seed=1)["path"])


def test_an_index_needs_no_picture(made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    before = chexpert.index(ALL, tmp_path, seed=1)
    for split in ("train", "valid", "test"):
        shutil.rmtree(tmp_path / "CheXpert-v1.0-small" / split)
    assert chexpert.index(ALL, tmp_path, seed=1).equals(before)


def test_the_zip_unpacks_into_the_same_data_set(made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    [file] = official.archives(tmp_path)
    assert file.name == "CheXpert-v1.0-small.zip"
    assert not (tmp_path / "CheXpert-v1.0-small").exists()
    zipfile.ZipFile(file).extractall(tmp_path)
    index = chexpert.index(ALL, tmp_path, seed=1)
    assert index.drop("path").equals(chexpert.index(ALL, made, seed=1).drop("path"))
    assert all(Path(path).is_file() for path in index["path"])


def test_expert_labels_of_valid_are_the_default_and_those_of_the_table(made):
    index = chexpert.index({}, made, seed=1)
    assert index["split"].unique().to_list() == ["valid"]
    rows = written((made / "CheXpert-v1.0-small" / "valid.csv").read_text().splitlines())
    frontal = [image for image, row in rows.items() if row["Frontal/Lateral"] == "Frontal"]
    assert index["image"].to_list() == frontal
    for column, name in labelmaps.read("chexpert").items():
        assert index[name].to_list() == [float(rows[image][column]) for image in frontal]


def test_ids_patients_and_studies_are_read_from_the_path(made):
    index = chexpert.index({**ALL, "frontal": False}, made, seed=1)
    for image, group, order in index.select("image", "group", "order").iter_rows():
        split, patient, study, view = image.split("/")
        assert patient == f"patient{int(group):05d}" and study == f"study{order}"
        assert split in official.FIRST and view in ("view1_frontal.jpg", "view2_lateral.jpg")
    assert index.group_by("group").agg(pl.col("split").n_unique())["split"].max() == 1
    assert index["order"].max() > 1


def test_the_test_table_without_views_keeps_frontal_images_by_their_names(made):
    test = {"splits": ["test"]}
    frontal = chexpert.index(test, made, seed=1)
    whole = chexpert.index({**test, "frontal": False}, made, seed=1)
    assert 0 < frontal.height < whole.height
    assert frontal["image"].str.ends_with("_frontal.jpg").all()
    assert frontal["position"].null_count() == frontal.height


@pytest.mark.parametrize("healthy", ["1.0", "", "0.0"])
@pytest.mark.parametrize("blank", ["zero", "ignore"])
@pytest.mark.parametrize("uncertain", ["ignore", "zero", "one"])
def test_the_policy_is_what_it_says(uncertain, blank, healthy):
    values = ["1.0", "0", "-1", "-1.0", None]
    table = pl.DataFrame({"Pleural Effusion": values, "No Finding": [healthy or None] * 5})
    found = labels(table, {"Pleural Effusion": "Effusion"}, uncertain, blank, "here")
    unsure = {"ignore": None, "zero": 0, "one": 1}[uncertain]
    unsaid = 0 if blank == "zero" or healthy == "1.0" else None
    assert found["Effusion"].to_list() == [1, 0, unsure, unsure, unsaid]
    assert found.schema == dict.fromkeys(CLASSES, pl.Int8)
    assert found.drop("Effusion").null_count().sum_horizontal().item() == 5 * 13


def test_uncertain_training_labels_are_left_out_unless_asked(made):
    train = {"splits": ["train"]}
    parts = {
        how: chexpert.index({**train, "uncertain": how}, made, seed=1).select(sorted(SHARED))
        for how in ("ignore", "zero", "one")
    }
    unsure = parts["ignore"].null_count().sum_horizontal().item()
    positive = {how: part.sum().sum_horizontal().item() for how, part in parts.items()}
    assert unsure > 0
    assert positive["zero"] == positive["ignore"] == positive["one"] - unsure


def test_a_missing_table_is_named_with_what_to_do(tmp_path):
    said = mistake(tmp_path)
    assert said.startswith(f"{tmp_path / 'valid.csv'}: no such file; CheXpert is given out")
    assert "train.csv: no such file" in mistake(tmp_path, splits=["train"])
    assert "valid.csv: no such file" in mistake(tmp_path, metadata="shipped")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"split": ["valid"]}, "unknown option 'split': did you mean 'splits'?"),
        ({"splits": ["val"]}, "option 'splits': unknown value 'val': did you mean 'valid'?"),
        ({"splits": "valid"}, "expected a list of one or more of: train, valid, test"),
        ({"splits": []}, "expected a list of one or more of"),
        ({"uncertain": "zeros"}, "did you mean 'zero'?"),
        ({"blank": "one"}, "option 'blank': unknown value 'one'"),
        ({"frontal": "yes"}, "option 'frontal' is 'yes'; expected true"),
        ({"metadata": "train.csv"}, "option 'metadata': unknown value 'train.csv'"),
    ],
)
def test_a_mistaken_option_is_named(made, options, said):
    assert said in mistake(made, **options)


def test_a_strange_label_or_path_is_refused(made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "CheXpert-v1.0-small" / "valid.csv"
    text = file.read_text()
    cells = text.splitlines()[1].split(",")
    cells[7] = "2.0"
    file.write_text(text.replace(text.splitlines()[1], ",".join(cells)))
    check_named(mistake(tmp_path), "valid.csv", "Cardiomegaly", "'2.0'", "1 rows", "1, 0, -1")
    file.write_text(text.replace("/valid/", "/train/", 2))
    check_named(mistake(tmp_path), "valid.csv", "2 paths", "valid/patient00001/")
