"""VinDr-CXR's own tables become the index, with readers joined by a rule that one can choose."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from naming import check_named
from tests.official import vindr as official

from stamp.config.labels import label_maps as labelmaps
from stamp.core.errors import UserError
from stamp.data.adapters import vindr
from stamp.data.label_tables import CLASSES
from stamp.data.views import check_index
from stamp.images.reading import open_image

MAP = {
    "Atelectasis": "Atelectasis",
    "Cardiomegaly": "Cardiomegaly",
    "Consolidation": "Consolidation",
    "Infiltration": "Infiltration",
    "Nodule/Mass": "Nodule/Mass",
    "Pleural effusion": "Effusion",
    "Pleural thickening": "Pleural_Thickening",
    "Pneumothorax": "Pneumothorax",
    "Pulmonary fibrosis": "Fibrosis",
}
# How many of the 15,000 training images have 0, 1, 2, 3 readers who see the class.
VOTES = {
    "Atelectasis": [14814, 124, 44, 18],
    "Cardiomegaly": [12700, 483, 520, 1297],
    "Consolidation": [14647, 232, 90, 31],
    "Infiltration": [14387, 368, 154, 91],
    "Nodule/Mass": [14174, 421, 224, 181],
    "Effusion": [13968, 398, 195, 439],
    "Pleural_Thickening": [13019, 1099, 517, 365],
    "Pneumothorax": [14904, 38, 13, 45],
    "Fibrosis": [13383, 600, 384, 633],
}
NOWHERE = Path("/no/such/folder")
IMAGES, SEED = 80, 4


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    root = tmp_path_factory.mktemp("vindr")
    return root, official.make(root, IMAGES, SEED, size=32)


def read_rows(file: Path) -> list[dict[str, str]]:
    with open(file, newline="") as opened:
        return list(csv.DictReader(opened))


def index(root: Path, **options: Any) -> pl.DataFrame:
    return check_index(vindr.index(options, root, 0), "vindr")


def by_hand(marks: list[int], rule: str) -> int | None:
    if rule == "unanimous":
        return marks[0] if len(set(marks)) == 1 else None
    if rule == "majority":
        return int(sum(marks) > len(marks) / 2)
    return int(any(marks))


def test_the_label_map_has_the_nine_classes() -> None:
    assert labelmaps.read("vindr") == MAP


def test_the_votes_of_the_shipped_table_are_the_published_ones() -> None:
    votes = vindr.votes(vindr.readings(NOWHERE, "train", "kaggle"))
    assert len(votes) == 15000
    assert votes["readers"].unique().to_list() == [3]
    for name, expected in VOTES.items():
        assert np.bincount(votes[name].to_numpy(), minlength=4).tolist() == expected


def test_the_rules_count_the_shipped_table_as_its_votes_say() -> None:
    for rule, least in (("unanimous", 3), ("majority", 2), ("union", 1)):
        table = index(NOWHERE, splits=["train"], agreement=rule)
        assert len(table) == 15000
        for name, votes in VOTES.items():
            assert table[name].sum() == sum(votes[least:])
            undecided = votes[1] + votes[2] if rule == "unanimous" else 0
            assert table[name].null_count() == undecided
        if rule == "unanimous":
            positive = table.filter(pl.any_horizontal(pl.col(list(VOTES)) == 1))
            assert len(positive) == 2666


def test_of_the_training_images_those_that_readers_agree_on_may_be_kept(
    made: tuple[Path, list[str]],
) -> None:
    assert len(index(NOWHERE, splits=["train"], train_images="positive")) == 2666
    any_reader = index(NOWHERE, splits=["train"], train_images="positive", agreement="union")
    assert len(any_reader) > 2666
    root, _ = made
    every, kept = (
        index(root, splits=["train", "test"], train_images=which) for which in vindr.TRAIN_IMAGES
    )
    seen = [any(row[name] == 1 for name in MAP.values()) for row in every.iter_rows(named=True)]
    expected = every.filter(pl.Series(seen) | (pl.col("split") == "test"))
    assert kept.equals(expected) and len(kept) < len(every), "test images all stay"
    with pytest.raises(UserError, match=r"'train_images'.*positive"):
        index(root, train_images="positve")


def test_the_default_is_the_consensus_test_part(made: tuple[Path, list[str]]) -> None:
    root, names = made
    table = index(root)
    rows = {row["image_id"]: row for row in read_rows(root / "annotations/image_labels_test.csv")}
    assert table["image"].to_list() == sorted(rows) == sorted(names[: IMAGES * 3 // 4])
    assert table["split"].unique().to_list() == ["test"]
    for row in table.iter_rows(named=True):
        for label, name in MAP.items():
            assert row[name] == int(rows[row["image"]][label])
    assert min(table[name].sum() for name in MAP.values()) > 0
    for rule in vindr.AGREEMENTS:
        assert index(root, agreement=rule).equals(table)


def test_the_columns_are_those_of_an_index(made: tuple[Path, list[str]]) -> None:
    root, _ = made
    table = index(root, splits=["train", "test"])
    assert len(table) == IMAGES
    assert table["group"].equals(table["image"].alias("group"))
    assert table["order"].null_count() == IMAGES
    assert table["domain"].unique().to_list() == ["vindr"]
    for name in (*CLASSES, "Nodule/Mass"):
        assert table[name].dtype == pl.Int8
        assert (table[name].null_count() == IMAGES) == (name not in MAP.values())
    for path, image, split in table.select("path", "image", "split").iter_rows():
        assert path == str(root / split / f"{image}.dicom") and Path(path).is_file()


@pytest.mark.parametrize("rule", vindr.AGREEMENTS)
def test_readers_are_joined_by_the_rule(made: tuple[Path, list[str]], rule: str) -> None:
    root, _ = made
    marks = defaultdict(list)
    for row in read_rows(root / "annotations/image_labels_train.csv"):
        for label, name in MAP.items():
            marks[row["image_id"], name].append(int(row[label]))
    assert any(len(set(votes)) == 2 for votes in marks.values())
    for row in index(root, splits=["train"], agreement=rule).iter_rows(named=True):
        assert row["readers"] == 3
        for name in MAP.values():
            assert row[name] == by_hand(marks[row["image"], name], rule)


def test_a_missing_mark_is_no_vote(tmp_path: Path) -> None:
    head = ["image_id", "rad_ID", *MAP]
    rows = [
        ["a", "R1", *["1.0"] * 9],
        ["a", "R2", "", *["1.0"] * 8],
        ["b", "R1", *[""] * 9],
        ["b", "R2", "", *["0"] * 8],
    ]
    official.write_csv(tmp_path / "annotations/image_labels_train.csv", [head, *rows])
    for rule in vindr.AGREEMENTS:
        table = index(tmp_path, splits=["train"], agreement=rule)
        assert table["Atelectasis"].to_list() == [1, None]
        assert table["Fibrosis"].to_list() == [1, 0]


@pytest.mark.parametrize("rule", vindr.AGREEMENTS)
def test_the_kaggle_table_says_who_drew_a_class_at_least_once(tmp_path: Path, rule: str) -> None:
    official.make(tmp_path, 24, SEED, size=32, layout="kaggle")
    readers, seen = defaultdict(set), defaultdict(set)
    rows = read_rows(tmp_path / "train.csv")
    for row in rows:
        readers[row["image_id"]].add(row["rad_id"])
        seen[row["image_id"], row["class_name"]].add(row["rad_id"])
    boxes = [(row["image_id"], row["rad_id"], row["class_name"]) for row in rows]
    assert len(set(boxes)) < len(boxes)
    table = index(tmp_path, splits=["train"], agreement=rule)
    assert len(table) == 24
    for row in table.iter_rows(named=True):
        for label, name in MAP.items():
            drawn = seen[row["image"], label]
            marks = [int(reader in drawn) for reader in readers[row["image"]]]
            assert row[name] == by_hand(marks, rule)


def test_every_way_of_storing_shows_the_picture(made: tuple[Path, list[str]]) -> None:
    root, names = made
    paths = dict(index(root, splits=["train", "test"]).select("image", "path").iter_rows())
    _, pictures = official.phantom("north", IMAGES, SEED, 32)
    for k, (name, picture) in enumerate(zip(names, pictures, strict=True)):
        found = np.asarray(open_image(paths[name], 1), dtype=float)
        if k % official.KINDS == 3:
            low, high = picture.min(), picture.max()
            stretched = (picture.astype(float) - low) / (int(high) - int(low)) * 255
            assert np.abs(found - stretched).max() <= 0.51
        else:
            assert np.array_equal(found, picture)


def test_the_same_seed_makes_the_same_tree(tmp_path: Path) -> None:
    for name in ("a", "b"):
        official.make(tmp_path / name, 10, 1, size=32)
    files = sorted(file for file in (tmp_path / "a").rglob("*") if file.is_file())
    assert len(files) == 14
    for file in files:
        assert file.read_bytes() == (tmp_path / "b" / file.relative_to(tmp_path / "a")).read_bytes()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"agrement": "union"}, "unknown option 'agrement': did you mean 'agreement'?"),
        ({"agreement": "most"}, "option 'agreement': unknown value 'most'"),
        ({"splits": ["tets"]}, "option 'splits': unknown value 'tets': did you mean 'test'?"),
        ({"splits": []}, "option 'splits' is []"),
        ({"layout": "kagle"}, "option 'layout': unknown value 'kagle': did you mean 'kaggle'?"),
        ({"layout": "kaggle"}, "which has no labels in the Kaggle layout"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], line: str) -> None:
    with pytest.raises(UserError) as caught:
        vindr.index(options, NOWHERE, 0)
    assert str(caught.value).startswith("data set 'vindr': ") and line in str(caught.value)


def test_an_absent_table_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError) as caught:
        vindr.index({}, tmp_path, 0)
    file = tmp_path / "annotations" / "image_labels_test.csv"
    check_named(str(caught.value), file, "no such file", vindr.HELP)
    monkeypatch.setattr(vindr, "shipped", lambda: None)
    with pytest.raises(UserError) as caught:
        vindr.index({"splits": ["train"], "layout": "kaggle"}, tmp_path, 0)
    check_named(str(caught.value), tmp_path / "train.csv", "no such file", vindr.HELP)


def test_a_mark_that_is_neither_0_nor_1_is_named(tmp_path: Path) -> None:
    rows = [["image_id", *MAP], ["a", "2", *["0"] * 8]]
    file = tmp_path / "annotations" / "image_labels_test.csv"
    official.write_csv(file, rows)
    with pytest.raises(UserError) as caught:
        vindr.index({}, tmp_path, 0)
    check_named(str(caught.value), file, "Atelectasis", "'2'", "image 'a'", "0 or 1")
