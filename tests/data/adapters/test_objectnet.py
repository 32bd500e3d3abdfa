"""ObjectNet's folders become sets of ImageNet classes by the archive's own mappings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from official import objectnet as official
from PIL import Image

from stamp.config.labels.imagenet_classes import classes
from stamp.core.errors import UserError
from stamp.data.adapters import objectnet
from stamp.data.archives import unpack
from stamp.data.download import absent
from stamp.data.views import check_index

IMAGES, SEED, SIZE = 3, 4, 32
# The wnids of the words in the maker's labels, as in WordNet.
WNIDS = {
    "Alarm clock": ["n02708093", "n03196217"],
    "Nail (fastener)": ["n03804744"],
    "Screw": ["n04153751"],
    "Still Camera": ["n03976467", "n04069434"],
    "T-shirt": ["n03595614"],
    "TV": ["n04404412"],
    "Weight (exercise)": ["n02790996", "n03255030"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("objectnet")
    official.make(root, IMAGES, SEED, SIZE)
    return root


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil: its folder objectnet-1.0."""
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy" / "objectnet-1.0"


def index(root: Path, **options: Any) -> pl.DataFrame:
    return check_index(objectnet.index(options, root, 0), "objectnet")


def refused(root: Path, **options: Any) -> str:
    with pytest.raises(UserError) as error:
        index(root, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def change(file: Path, **entries: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **entries}))


def test_every_label_is_the_set_of_its_imagenet_classes(made: Path) -> None:
    table, wnids = index(made), classes()
    found = {
        group: [wnids[number] for number in accepted]
        for group, accepted in table.select("group", "accepted").iter_rows()
    }
    assert found == WNIDS
    assert table["label"].to_list() == [numbers[0] for numbers in table["accepted"].to_list()]
    assert table["label"].dtype == pl.Int16
    assert table["accepted"].dtype == pl.List(pl.Int16)


def test_a_set_is_in_the_order_of_the_class_numbers(made: Path) -> None:
    """The mapping names the classes of "Still Camera" and "Weight" in the other order."""
    for numbers in index(made)["accepted"].to_list():
        assert numbers == sorted(numbers)


def test_the_columns_are_those_of_an_index(made: Path) -> None:
    table = index(made)
    assert len(table) == IMAGES * len(WNIDS)
    assert table["domain"].unique().to_list() == ["objectnet"]
    assert table["split"].unique().to_list() == ["test"]
    assert table["order"].null_count() == len(table)
    assert absent(table["path"].to_list()) == []
    for image, path in table.select("image", "path").iter_rows():
        folder, stem = image.split("/")
        assert Path(path) == made / "objectnet-1.0/images" / folder / f"{stem}.png"
    assert table["image"].to_list() == sorted(table["image"])
    assert {image.split("/")[0] for image in table["image"]} >= {"t-shirt", "weight_exercise"}


def test_kinds_that_are_no_imagenet_class_can_stay_without_a_label(made: Path) -> None:
    table = index(made, only_overlap=False)
    other = table.filter(pl.col("label").is_null())
    assert set(other["group"]) == {"Air freshener", "Tape / duct tape"}
    assert len(other) == 2 * IMAGES
    assert other["accepted"].null_count() == len(other)
    assert table.filter(pl.col("label").is_not_null()).equals(index(made))


def test_folders_with_capitals_spaces_and_dots_are_taken_as_they_are(tmp_path: Path) -> None:
    kinds = {
        "TV_Set (old)": ("TV", ("television, television system",)),
        "Mr._Coffee": ("Coffee Machine", ("espresso maker",)),
    }
    official.make(tmp_path, 1, SEED, 16, kinds)
    for file in (tmp_path / "objectnet-1.0/images/Mr._Coffee").iterdir():
        file.rename(file.with_name("a.b.PNG"))
    table = index(tmp_path)
    assert table["image"][0] == "Mr._Coffee/a.b"
    assert table["image"][1].startswith("TV_Set (old)/")
    assert [classes()[number] for number in table["label"]] == ["n03297495", "n04404412"]
    assert absent(table["path"].to_list()) == []


def test_the_folder_may_be_the_unpacked_one_itself(made: Path) -> None:
    assert index(made / "objectnet-1.0").equals(index(made))


def test_the_encrypted_archive_unpacks_to_the_same_index(made: Path, tmp_path: Path) -> None:
    before = index(made)
    shutil.copytree(made, tmp_path / "served")
    (archive,) = official.archives(tmp_path / "served")
    assert list((tmp_path / "served").iterdir()) == [archive]
    with pytest.raises(UserError, match="needs a password"):
        unpack(archive, tmp_path / "out")
    unpack(archive, tmp_path / "out", password="objectnetisatestset")
    after = index(tmp_path / "out")
    assert after.drop("path").equals(before.drop("path"))
    for one, other in zip(before["path"], after["path"], strict=True):
        assert Path(one).read_bytes() == Path(other).read_bytes()


def test_made_pictures_have_a_border_that_two_pixels_remove_and_one_does_not(made: Path) -> None:
    for path in index(made)["path"]:
        with Image.open(path) as picture:
            pixels = np.asarray(picture).astype(int)
        frames = [pixels[k : len(pixels) - k, k : pixels.shape[1] - k] for k in range(3)]
        rings = [np.concatenate([f[0], f[-1], f[:, 0], f[:, -1]]) for f in frames]
        redness = [(ring[:, 0] - ring[:, 1:].max(axis=1)).mean() for ring in rings]
        assert (rings[0] == [255, 0, 0]).all()
        assert redness[1] > redness[2] + 20
        inside = pixels[2:-2, 2:-2]
        assert np.array_equal(official.framed(inside.astype(np.uint8)), pixels)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("nai", "no class 'nai': did you mean 'nail'?"),
        ("Nail", "no class 'Nail': did you mean 'nail'?"),
        ("digital clock, analog clock", "no class 'digital clock, analog clock'"),
        ("crane", "'crane' is the name of several classes"),
    ],
)
def test_names_that_are_not_exactly_one_class_are_refused(
    names: str, said: str, copy: Path
) -> None:
    file = copy / "mappings/objectnet_to_imagenet_1k.json"
    change(file, Screw=names)
    text = refused(copy.parent)
    assert text.startswith(f"{file}: 'Screw': ")
    assert said in text


def test_a_class_that_is_named_twice_counts_once(copy: Path) -> None:
    change(copy / "mappings/objectnet_to_imagenet_1k.json", Screw="screw; screw")
    numbers = index(copy.parent).filter(pl.col("group") == "Screw")["accepted"].to_list()
    assert numbers == [[classes().index("n04153751")]] * IMAGES


def test_a_label_without_a_folder_is_refused(copy: Path) -> None:
    change(copy / "mappings/objectnet_to_imagenet_1k.json", Spoon="wooden spoon")
    assert "no folder has the label 'Spoon'" in refused(copy.parent)


def test_numbers_that_are_not_one_a_line_are_refused(copy: Path) -> None:
    file = copy / "mappings/pytorch_to_imagenet_2012_id.json"
    first, second = list(json.loads(file.read_text()).items())[:2]
    change(file, **{first[0]: second[1]})
    assert f"{file}: expected 1000 classes, one for each line" in refused(copy.parent)
    change(file, **{first[0]: "7"})
    assert f"{file}: expected a JSON object whose values are of type int" in refused(copy.parent)


def test_a_lost_line_of_the_words_is_noticed(copy: Path) -> None:
    file = copy / "mappings/imagenet_to_label_2012_v2"
    file.write_text("\n".join(file.read_text().splitlines()[1:]))
    assert "found 1000 classes and 999 lines" in refused(copy.parent)


@pytest.mark.parametrize(
    "name",
    [
        "folder_to_objectnet_label.json",
        "objectnet_to_imagenet_1k.json",
        "pytorch_to_imagenet_2012_id.json",
        "imagenet_to_label_2012_v2",
    ],
)
def test_a_missing_mapping_says_how_to_unpack_quickly(name: str, copy: Path) -> None:
    (copy / "mappings" / name).unlink()
    text = refused(copy.parent)
    assert text.startswith(f"{copy / 'mappings' / name}: no such file; ")
    assert "7z x -pobjectnetisatestset" in text


def test_a_broken_mapping_is_named(copy: Path) -> None:
    file = copy / "mappings/folder_to_objectnet_label.json"
    file.write_text('{"tv": "TV",')
    assert refused(copy.parent).startswith(f"{file}: can't be read as JSON")


def test_a_kind_that_is_not_unpacked_is_named(copy: Path) -> None:
    shutil.rmtree(copy / "images/air_freshener")
    assert len(index(copy.parent)) == IMAGES * len(WNIDS)
    assert f"{copy / 'images/air_freshener'}: no image" in refused(copy.parent, only_overlap=False)
    for file in (copy / "images/screw").iterdir():
        file.rename(file.with_suffix(".part"))
    assert f"{copy / 'images/screw'}: no image; ObjectNet is open" in refused(copy.parent)


def test_an_empty_folder_says_where_the_data_set_is(tmp_path: Path) -> None:
    assert "https://objectnet.dev/downloads/objectnet-1.0.zip" in refused(tmp_path)


def test_options_are_checked(made: Path) -> None:
    assert "unknown option 'overlap'" in refused(made, overlap=True)
    assert "expected true or false" in refused(made, only_overlap="yes")
