"""ImageNet: the classes' order, three layouts of one validation set, its splits, ReaL labels."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from official import imagenet as official
from PIL import Image

from stamp.config.labels import imagenet_classes as source
from stamp.core.errors import UserError
from stamp.data.adapters import imagenet
from stamp.data.archives import unpack
from stamp.data.download import complete
from stamp.data.pairs import class_pairs
from stamp.data.views import check_index
from stamp.images.reading import open_image

LAYOUTS = ("devkit", "folders", "kaggle")
REPOSITORY = Path(__file__).resolve().parents[3]
TRUTH = f"{official.DEVKIT}/data/ILSVRC2012_validation_ground_truth.txt"
META = f"{official.DEVKIT}/data/meta.mat"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same pictures in each layout."""
    home = tmp_path_factory.mktemp("imagenet")
    for layout in LAYOUTS:
        official.make(home / layout, per_class=6, seed=4, size=32, layout=layout)
    return {layout: home / layout for layout in LAYOUTS}


@pytest.fixture(scope="module")
def truth() -> dict[str, str]:
    return {official.name(number): wnid for number, wnid in official.validation(6)}


@pytest.fixture
def root(made: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the official layout that a test may change."""
    return Path(shutil.copytree(made["devkit"], tmp_path / "imagenet"))


def found(root: Path, seed: int = 1, **options: object) -> pl.DataFrame:
    return imagenet.index({"partial": True, **options}, root, seed)


def mistake(root: Path, **options: object) -> str:
    with pytest.raises(UserError) as caught:
        found(root, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_class_numbers_are_those_that_models_were_trained_with():
    wnids = source.classes()
    assert len(set(wnids)) == 1000
    # tench, goldfish, black swan, golden retriever, sports car, toilet tissue
    known = {0: "n01440764", 1: "n01443537", 100: "n01860187", 207: "n02099601", 817: "n04285008"}
    known[999] = "n15075141"
    assert {number: wnids[number] for number in known} == known
    assert [source.number_of()[wnid] for wnid in wnids] == list(range(1000))


@pytest.mark.parametrize("name", ["imagenet_a", "imagenet_r"])
def test_the_shipped_class_lists_are_timms(name):
    numbers = source.shipped(f"{name}_indices")
    assert numbers == sorted(set(numbers)) and len(numbers) == 200
    theirs = source.shipped_file(f"{name}_synsets.txt").read_text().split()
    listed = (REPOSITORY / "resources" / "classes" / f"{name}.csv").read_text().split()
    assert listed == ["class", *(source.classes()[number] for number in numbers)]
    assert sorted(listed[1:]) == sorted(theirs)


def test_imagenet_a_and_r_share_86_classes():
    both = set(source.shipped("imagenet_a_indices")) & set(source.shipped("imagenet_r_indices"))
    assert len(both) == 86


def test_the_classes_are_known_without_timm_torch_or_tables():
    code = (
        "import sys; from stamp.config.labels import imagenet_classes as known; known.number_of();"
        "print({'timm', 'torch', 'polars', 'numpy', 'scipy'} & set(sys.modules))"
    )
    assert _run(code) == "set()"


def test_an_index_of_class_folders_needs_neither_timm_nor_scipy(made):
    code = (
        "import sys; from pathlib import Path; from stamp.data.adapters import imagenet;"
        f"imagenet.index({{'partial': True, 'real': True}}, Path({str(made['folders'])!r}), 1);"
        "print({'timm', 'torch', 'scipy'} & set(sys.modules))"
    )
    assert _run(code) == "set()"


def _run(code: str) -> str:
    environment = {"PYTHONPATH": str(REPOSITORY / "workflow" / "scripts")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_without_timm_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install timm"):
        source.shipped("imagenet_a_indices")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_each_image_its_class(made, truth, layout):
    for option in ("auto", layout):
        index = check_index(found(made[layout], layout=option), "imagenet")
        assert dict(index.select("image", "group").iter_rows()) == truth
        wnids = source.classes()
        assert index["group"].to_list() == [wnids[label] for label in index["label"]]
        assert index.schema["label"] == pl.Int16
        assert index["image"].is_sorted()
        for image, path in index.select("image", "path").iter_rows():
            assert Path(path).is_file() and Path(path).stem == image
        assert set(index["domain"]) == {"imagenet"} and index["order"].is_null().all()


def test_the_layouts_differ_in_nothing_but_paths(made):
    first, *others = (found(made[layout], real=True).drop("path") for layout in LAYOUTS)
    assert all(first.equals(other) for other in others)


def test_class_ids_of_the_made_development_kit_are_shuffled_as_in_the_official_one(made):
    ids = (made["devkit"] / TRUTH).read_text().split()
    numbers = source.number_of()
    index = found(made["devkit"])
    rows = index["image"].str.slice(-8).cast(pl.Int32).to_list()
    by_position = [int(ids[row - 1]) - 1 for row in rows]
    agree = [
        place == numbers[wnid] for place, wnid in zip(by_position, index["group"], strict=True)
    ]
    assert np.mean(agree) < 0.2


@pytest.mark.parametrize("place", [".", "ILSVRC2012_img_val"])
def test_the_archive_may_have_been_unpacked_elsewhere(root, truth, place):
    target = root / place
    target.mkdir(exist_ok=True)
    for file in (root / "val").iterdir():
        file.rename(target / file.name)
    (root / "val").rmdir()
    index = found(root)
    assert dict(index.select("image", "group").iter_rows()) == truth
    assert complete("imagenet", index["path"].to_list(), root, None, "form", "")["fetched"] == 0


def test_the_official_archives_are_asked_to_be_unpacked_by_commands_that_work(root, truth):
    official.archives(root)
    text = mistake(root)
    command = re.search("`(.*)`", text)
    assert command is not None
    subprocess.run(command[1], shell=True, cwd=root, check=True)
    assert dict(found(root).select("image", "group").iter_rows()) == truth


def test_unpacked_by_the_library_they_give_the_same(root, truth):
    images, kit = official.archives(root)
    unpack(images, root / "val")
    unpack(kit, root)
    assert dict(found(root).select("image", "group").iter_rows()) == truth


def test_the_whole_development_kit_labels_50000_images(root):
    index = imagenet.index({}, root, seed=1)
    assert len(index) == 50_000 and index["image"].n_unique() == 50_000
    assert index["image"][49_999] == "ILSVRC2012_val_00050000"
    with pytest.raises(UserError, match=r"49928 of 50000 images are missing .* needs an account"):
        complete("imagenet", index["path"].to_list(), root, None, "form", imagenet.HELP)


@pytest.mark.parametrize("held", [1, 2, 4])
def test_calibration_takes_as_many_images_of_every_class_as_asked(made, held):
    index = found(made["folders"], calibration_per_class=held)
    counts = Counter(index.select("group", "split").iter_rows())
    expected = {(wnid, "calibration"): held for wnid in official.CLASSES}
    expected |= {(wnid, "test"): 6 - held for wnid in official.CLASSES}
    assert counts == expected


def test_the_split_depends_on_the_seed_alone_and_grows_with_the_count(made):
    def calibration(seed: int, held: int) -> set[str]:
        index = found(made["folders"], seed, calibration_per_class=held)
        return set(index.filter(pl.col("split") == "calibration")["image"])

    assert calibration(1, 2) == calibration(1, 2) < calibration(1, 3)
    assert calibration(1, 2) != calibration(2, 2)


def test_test_images_give_pairs_that_no_calibration_image_is_in(made):
    index = found(made["folders"])
    test = index.filter(pl.col("split") == "test")
    pairs = class_pairs(test, 40, seed=1)
    held = set(index["image"]) - set(test["image"])
    assert not held & {*pairs["a"], *pairs["b"]}
    assert (pairs["group_a"] == pairs["group_b"]).all()


def test_real_labels_are_those_of_the_shipped_list_with_the_own_class_first(made, truth):
    lists = json.loads(source.shipped_file("imagenet_real_labels.json").read_text())
    assert len(lists) == 50_000 and sum(not found for found in lists) == 3_163
    index = found(made["kaggle"], real=True)
    numbers, seen = source.number_of(), Counter()
    for row in index.iter_rows(named=True):
        theirs = lists[int(row["image"][-8:]) - 1]
        own = numbers[truth[row["image"]]]
        seen[min(len(theirs), 2)] += 1
        if not theirs:
            assert row["accepted"] is None and row["label"] is None
            assert row["split"] == "test" and row["group"] == truth[row["image"]]
            continue
        assert sorted(row["accepted"]) == sorted(theirs)
        assert row["label"] == row["accepted"][0] == own
    assert seen[0] == 1 and seen[2] > 0
    assert index.schema["accepted"] == pl.List(pl.Int16)


def test_a_real_label_replaces_one_that_it_contradicts(root):
    """Over all 50,000 images: the first accepted class is the original one wherever it may be."""
    index = imagenet.index({"real": True}, root, seed=1)
    lists = source.real_labels()
    numbers = source.number_of()
    own = [numbers[wnid] for wnid in index["group"]]
    expected = [
        None if not theirs else mine if mine in theirs else theirs[0]
        for mine, theirs in zip(own, lists, strict=True)
    ]
    assert index["label"].to_list() == expected
    assert index["accepted"].null_count() == 3_163
    lengths = index["accepted"].list.len().fill_null(0).to_list()
    assert lengths == [len(theirs) for theirs in lists]


def test_unlabeled_images_are_the_last_to_calibrate(made):
    for seed in range(3):
        index = found(made["folders"], seed, real=True, calibration_per_class=5)
        assert index.filter(split="calibration")["label"].null_count() == 0


def test_without_real_labels_there_is_no_column_of_them(made):
    assert "accepted" not in found(made["folders"]).columns


def test_pictures_vary_in_size_and_colour_mode_and_all_are_read_as_colour(made):
    modes, sizes = Counter(), set()
    for path in found(made["folders"])["path"]:
        with Image.open(path) as opened:
            assert opened.format == "JPEG"
            modes[opened.mode] += 1
            sizes.add(opened.size)
        assert open_image(path, 3).mode == "RGB"
    assert modes["L"] == modes["CMYK"] == 1 and modes["RGB"] == 70
    assert len(sizes) > 20 and any(w > h for w, h in sizes) and any(w < h for w, h in sizes)


def test_the_made_classes_can_be_told_apart_by_their_pictures(made):
    index = found(made["folders"])
    small = [np.asarray(open_image(path, 3).resize((6, 6)), float) for path in index["path"]]
    x, y = np.stack(small).reshape(len(index), -1), index["label"].to_numpy()
    distance = ((x[:, None] - x) ** 2).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    assert (y[distance.argmin(axis=1)] == y).mean() > 0.7  # chance: 0.08


def test_part_of_the_set_is_refused_unless_it_is_meant(made):
    text = mistake(made["folders"], partial=False)
    assert "72 images" in text and "50,000" in text and "'partial: true'" in text


def test_what_is_missing_is_named_with_where_it_comes_from(root, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "no validation images; ImageNet needs an account" in mistake(tmp_path / "empty")
    assert "no such folder" in mistake(tmp_path / "nowhere")
    shutil.rmtree(root / official.DEVKIT)
    assert "LOC_val_solution.csv" in mistake(root) and "no labels" in mistake(root)
    assert "no labels" in mistake(root, layout="devkit")
    assert "no such file" in mistake(root, layout="kaggle")
    assert "no validation images" in mistake(root, layout="folders")


def test_labels_without_images_are_no_data_set(root):
    shutil.rmtree(root / "val")
    assert "no validation images" in mistake(root)


def test_an_archive_that_is_unpacked_already_is_not_asked_for(root):
    (root / "ILSVRC2012_img_val.tar").touch()
    official_kit = root / official.DEVKIT
    shutil.rmtree(official_kit)
    text = mistake(root)
    assert "no labels" in text and "tar -xf" not in text


@pytest.mark.parametrize("bad", ["0", "1004", "tench"])
def test_a_ground_truth_that_is_no_class_id_is_named_by_its_line(root, bad):
    ids = (root / TRUTH).read_text().split()
    ids[41] = bad
    (root / TRUTH).write_text("\n".join(ids))
    assert f"line 42 is '{bad}'" in mistake(root)


def test_inner_nodes_of_the_synset_table_are_no_classes(root):
    ids = (root / TRUTH).read_text().split()
    (root / TRUTH).write_text("\n".join(["1001", *ids[1:]]))
    assert "line 1 is '1001'" in mistake(root)


def test_a_damaged_synset_table_is_named(root):
    (root / META).write_bytes(b"no such thing")
    assert "meta.mat: can't be read" in mistake(root)
    (root / META).unlink()
    assert "meta.mat: no such file" in mistake(root)


def test_a_synset_table_of_other_classes_is_refused(root):
    from scipy.io import loadmat, savemat

    table = loadmat(root / META)["synsets"]
    savemat(root / META, {"synsets": table[5:]})
    assert "names 995 of the 1000 classes" in mistake(root)


def test_a_solution_without_a_class_is_named(made, tmp_path):
    root = Path(shutil.copytree(made["kaggle"], tmp_path / "kaggle"))
    file = root / imagenet.SOLUTION
    with open(file, newline="") as opened:
        rows = list(csv.reader(opened))
    rows[7][1] = "n99999999 1 2 3 4 "
    with open(file, "w", newline="") as opened:
        csv.writer(opened).writerows(rows)
    assert f"image '{rows[7][0]}' has no class of ImageNet" in mistake(root)


def test_a_folder_that_is_no_class_is_named(made, tmp_path):
    root = Path(shutil.copytree(made["folders"], tmp_path / "folders"))
    (root / "val" / "n01440765").mkdir()
    assert "n01440765" in mistake(root) and "did you mean 'n01440764'" in mistake(root)


def test_real_labels_need_the_official_names(made, tmp_path):
    root = Path(shutil.copytree(made["folders"], tmp_path / "folders"))
    file = next((root / "val" / official.CLASSES[0]).iterdir())
    file.rename(file.with_name("tench.JPEG"))
    assert "image 'tench' is not named" in mistake(root, real=True)
    assert "tench" in set(found(root)["image"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "folder"}, "did you mean 'folders'"),
        ({"calibration": 2}, "did you mean 'calibration_per_class'"),
        ({"calibration_per_class": 0}, "from 1 to 49"),
        ({"calibration_per_class": 6}, "class n01440764 has 6 images, too few"),
        ({"real": "yes"}, "expected true or false"),
        ({"partial": 1}, "expected true or false"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_right(made, options, message):
    assert message in mistake(made["folders"], **options)
