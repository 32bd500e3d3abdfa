"""The RSNA challenge's tables become the index, and NIH's training images can be left out."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from naming import check_named
from PIL import Image
from tests.official import rsna as official
from tests.official.vindr import phantom

from stamp.core.errors import UserError
from stamp.data.adapters import rsna
from stamp.data.label_tables import CLASSES
from stamp.data.views import check_index
from stamp.images.reading import open_image

NOWHERE = Path("/no/such/folder")
IMAGES, SEED, MAPPED = 60, 6, 50


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    root = tmp_path_factory.mktemp("rsna")
    return root, official.make(root, IMAGES, SEED, size=32)


@pytest.fixture
def known(made: tuple[Path, list[str]], tmp_path: Path) -> dict[str, str]:
    """The mapping (all but the last ten images) and NIH's lists; two images a patient."""
    names = [f"{k // 2 + 1:08d}_{k % 2:03d}.png" for k in range(MAPPED)]
    file = official.mapping(made[0], names).rename(tmp_path / "mapping.json")
    (tmp_path / "train_val_list.txt").write_text("\n".join(names[:30]) + "\n")
    (tmp_path / "test_list.txt").write_text("\r\n".join(names[30:]))
    return {"mapping": str(file), "nih_lists": str(tmp_path)}


def index(root: Path, **options: Any) -> pl.DataFrame:
    return check_index(rsna.index(options, root, 0), "rsna")


def targets(root: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    with open(root / official.LABELS, newline="") as opened:
        for row in csv.DictReader(opened):
            name = row["patientId"]
            found[name] = max(found.get(name, 0), int(row["Target"]))
    return found


def test_the_shipped_labels_have_the_published_counts() -> None:
    assert len(rsna.boxes(rsna.labels_file(NOWHERE))) == 30227
    table = index(NOWHERE)
    assert len(table) == 26684
    assert table["Pneumonia"].sum() == 6012
    assert table["Pneumonia"].null_count() == 0
    assert table["overlap"].unique().to_list() == ["unknown"]


def test_an_image_is_positive_if_any_of_its_boxes_is(made: tuple[Path, list[str]]) -> None:
    root, names = made
    table, expected = index(root), targets(root)
    assert len(rsna.boxes(root / official.LABELS)) > IMAGES
    assert dict(table.select("image", "Pneumonia").iter_rows()) == expected
    assert 5 < table["Pneumonia"].sum() < IMAGES - 5
    assert table["image"].to_list() == sorted(names)


def test_the_columns_are_those_of_an_index(made: tuple[Path, list[str]]) -> None:
    root, _ = made
    table = index(root)
    for name in CLASSES:
        assert table[name].dtype == pl.Int8
        assert (table[name].null_count() == IMAGES) == (name != "Pneumonia")
    assert table["domain"].unique().to_list() == ["rsna"]
    assert table["split"].unique().to_list() == ["test"]
    assert table["group"].to_list() == table["image"].to_list()
    assert table["nih"].null_count() == IMAGES
    for image, path in table.select("image", "path").iter_rows():
        assert path == str(root / "stage_2_train_images" / f"{image}.dcm")
        assert Path(path).is_file()


def test_images_of_the_training_lists_are_left_out(
    made: tuple[Path, list[str]], known: dict[str, str]
) -> None:
    root, names = made
    table = index(root, **known)
    assert set(table["image"]) == set(names[30:])
    overlap = dict(table.select("image", "overlap").iter_rows())
    assert {overlap[name] for name in names[30:MAPPED]} == {"test"}
    assert {overlap[name] for name in names[MAPPED:]} == {"none"}
    groups = dict(table.select("image", "group").iter_rows())
    assert [groups[name] for name in names[30:34]] == ["16", "16", "17", "17"]
    assert groups[names[-1]] == names[-1]


@pytest.mark.parametrize(
    ("without", "kept"),
    [
        ([], range(IMAGES)),
        (["train"], range(30, IMAGES)),
        (["val", "calibration"], range(30, IMAGES)),
        (["test"], [*range(30), *range(MAPPED, IMAGES)]),
        (["train_val", "test"], range(MAPPED, IMAGES)),
    ],
)
def test_without_says_which_lists_are_left_out(
    made: tuple[Path, list[str]], known: dict[str, str], without: list[str], kept: Any
) -> None:
    root, names = made
    table = index(root, without=without, **known)
    assert set(table["image"]) == {names[k] for k in kept}


def test_what_lies_in_the_folder_is_found_without_being_named(
    made: tuple[Path, list[str]], known: dict[str, str], tmp_path: Path
) -> None:
    root = tmp_path / "all"
    root.mkdir()
    (root / official.LABELS).write_bytes((made[0] / official.LABELS).read_bytes())
    (root / official.MAPPING).write_bytes(Path(known["mapping"]).read_bytes())
    table = index(root)
    assert (len(table), table["overlap"].unique().to_list()) == (IMAGES, ["unknown"])
    assert table["nih"].null_count() == IMAGES - MAPPED
    for name in ("train_val_list.txt", "test_list.txt"):
        (root / name).write_bytes((tmp_path / name).read_bytes())
    assert index(root).drop("path").equals(index(made[0], **known).drop("path"))


def test_a_wish_that_can_not_be_met_is_an_error_but_the_default_is_none(
    made: tuple[Path, list[str]],
) -> None:
    root, _ = made
    assert len(index(root)) == IMAGES
    assert len(index(root, without=[])) == IMAGES
    with pytest.raises(UserError, match=r"option 'without' needs pneumonia-challenge.*\.json"):
        rsna.index({"without": ["train"]}, root, 0)


def test_normal_negatives_leave_out_other_findings(made: tuple[Path, list[str]]) -> None:
    root, _ = made
    with open(root / official.DETAILS, newline="") as opened:
        kinds = {row["patientId"]: row["class"] for row in csv.DictReader(opened)}
    table = index(root, negatives="normal")
    wanted = {name for name, kind in kinds.items() if kind in ("Lung Opacity", "Normal")}
    assert set(table["image"]) == wanted and 0 < len(wanted) < IMAGES
    found = dict(table.select("image", "Pneumonia").iter_rows())
    assert all(found[name] == (kinds[name] == "Lung Opacity") for name in wanted)


def test_normal_negatives_need_their_table(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        rsna.index({"negatives": "normal"}, tmp_path, 0)
    check_named(str(caught.value), tmp_path / official.DETAILS, "no such file", rsna.HELP)
    (tmp_path / official.DETAILS).write_text("patientId,class\nx,Normal\n")
    with pytest.raises(UserError, match="no row for image '0004cfab"):
        rsna.index({"negatives": "normal"}, tmp_path, 0)


def test_a_zipped_table_in_the_folder_goes_before_the_shipped_one(
    made: tuple[Path, list[str]], tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / f"{official.LABELS}.zip", "w") as archive:
        archive.write(made[0] / official.LABELS, official.LABELS)
    assert index(tmp_path).drop("path").equals(index(made[0]).drop("path"))
    (tmp_path / f"{official.LABELS}.zip").write_bytes(b"PK nothing")
    with pytest.raises(UserError, match=r"can't be read as stage_2_train_labels\.csv in a zip"):
        rsna.index({}, tmp_path, 0)


def test_pictures_are_what_the_jpeg_holds(
    made: tuple[Path, list[str]],
) -> None:
    root, names = made
    _, pictures = phantom("clinic", IMAGES, SEED, 32)
    paths = dict(index(root).select("image", "path").iter_rows())
    for name, picture in zip(names[:10], pictures, strict=False):
        coded = io.BytesIO()
        Image.fromarray(picture).save(coded, "JPEG", quality=95)
        plain = np.asarray(Image.open(coded), dtype=float)
        assert np.array_equal(np.asarray(open_image(paths[name], 1), dtype=float), plain)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"negative": "all"}, "unknown option 'negative': did you mean 'negatives'?"),
        ({"negatives": "none"}, "option 'negatives': unknown value 'none'"),
        ({"without": ["trian"]}, "option 'without': unknown value 'trian': did you mean 'train'?"),
        ({"without": "train"}, "option 'without' is 'train'"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], line: str) -> None:
    with pytest.raises(UserError) as caught:
        rsna.index(options, NOWHERE, 0)
    assert str(caught.value).startswith("data set 'rsna': ") and line in str(caught.value)


def test_absent_and_broken_files_are_named(
    made: tuple[Path, list[str]],
    known: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root, _ = made
    with pytest.raises(UserError, match=r"nothing\.json: no such file"):
        rsna.index({"mapping": str(tmp_path / "nothing.json")}, root, 0)
    with pytest.raises(UserError, match=r"train_val_list\.txt: no such file"):
        rsna.index({**known, "nih_lists": str(tmp_path / "nothing")}, root, 0)
    elsewhere = {**known, "nih_lists": str(tmp_path / "nothing"), "without": []}
    assert index(root, **elsewhere)["overlap"].unique().to_list() == ["unknown"]
    for content in ("{", "[1]", json.dumps([{"img_id": "a"}]), '{"a": 1}'):
        (tmp_path / "broken.json").write_text(content)
        with pytest.raises(UserError, match=r"broken\.json: expected a list of records"):
            rsna.index({"mapping": str(tmp_path / "broken.json")}, root, 0)
    monkeypatch.setattr(rsna, "shipped", lambda: None)
    with pytest.raises(UserError) as caught:
        rsna.index({}, tmp_path, 0)
    check_named(str(caught.value), tmp_path / official.LABELS, "no such file", rsna.HELP)
    (tmp_path / official.LABELS).write_text("patientId,Target\nx,2\n")
    with pytest.raises(UserError, match=r"Target .*'2'.*'x'.* 0 or 1"):
        rsna.index({}, tmp_path, 0)
