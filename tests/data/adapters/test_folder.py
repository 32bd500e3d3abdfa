"""A user's own folders become the index: one per class, inside those of splits or domains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from naming import check_named

from stamp.core.errors import UserError
from stamp.data.adapters import folder
from stamp.data.views import check_index, keep


def put(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"")
    return root


def index(root: Path, seed: int = 0, **options: Any) -> pl.DataFrame:
    return check_index(folder.index(options, root, seed), "mine")


def mistake(root: Path, **options: Any) -> str:
    with pytest.raises(UserError) as caught:
        folder.index(options, root, 0)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_folder_a_class_gives_sorted_classes_and_class_groups(tmp_path: Path) -> None:
    put(tmp_path, "dog/2.PNG", "dog/1.jpg", "cat/a.dcm", "cat/notes.txt", ".git/x.png", "list.txt")
    found = index(tmp_path)
    assert found["image"].to_list() == ["cat/a.dcm", "dog/1.jpg", "dog/2.PNG"]
    assert found["path"][0] == str(tmp_path / "cat" / "a.dcm")
    assert found["group"].to_list() == found["class"].to_list() == ["cat", "dog", "dog"]
    assert found["label"].to_list() == [0, 1, 1]
    assert found["order"].to_list() == [None] * 3
    assert keep(found, "multiclass", ["cat", "dog"], "here").height == 3


def test_levels_say_what_each_folder_means(tmp_path: Path) -> None:
    put(tmp_path, "test/north/dog/p1/1.png", "train/south/cat/p2/1.png", "train/south/cat/p2/2.png")
    found = index(tmp_path, levels=["split", "domain", "class", "group"], classes=["dog", "cat"])
    assert found["split"].to_list() == ["test", "train", "train"]
    assert found["domain"].to_list() == ["north", "south", "south"]
    assert found["group"].to_list() == ["p1", "p2", "p2"]
    assert found["label"].to_list() == [0, 1, 1]


def test_splits_are_drawn_within_every_class(tmp_path: Path) -> None:
    put(tmp_path, *(f"{name}/{n}.png" for name in ("a", "b") for n in range(100)))
    found = index(tmp_path, seed=2)
    shares = found.group_by("class").agg((pl.col("split") == "calibration").mean())["split"]
    assert all(0.05 < share < 0.4 for share in shares)  # a fifth each, four standard errors
    people = put(tmp_path / "p", *(f"a/p{n % 9}/{n}.png" for n in range(40)))
    kept = index(people, levels=["class", "group"])
    assert kept.group_by("group").agg(pl.col("split").n_unique())["split"].max() == 1


def test_images_at_another_depth_are_named(tmp_path: Path) -> None:
    put(tmp_path, "train/cat/1.png")
    what = (f"{tmp_path}/train/cat/1.png", "2 folders", "option 'levels'", "[class]")
    check_named(mistake(tmp_path), *what)
    put(tmp_path, "loose.png")
    assert "loose.png: lies in no folder" in mistake(tmp_path)


def test_an_empty_class_is_named(tmp_path: Path) -> None:
    put(tmp_path, "cat/1.png", "dog/readme.txt")
    check_named(mistake(tmp_path), f"{tmp_path}/dog", "without an image", ".png", ".dcm")


def test_what_is_not_there_or_not_known_is_one_line(tmp_path: Path) -> None:
    check_named(mistake(tmp_path / "none"), tmp_path / "none", "no such folder")
    check_named(mistake(tmp_path), tmp_path, "no image")
    put(tmp_path, "cat/1.png")
    assert mistake(tmp_path, classes=["cats"]).endswith("did you mean 'cats'?")
    assert mistake(tmp_path, levels=["clas", "class"]).endswith("did you mean 'class'?")
    assert "expected a list with 'class'" in mistake(tmp_path, levels=["split"])


def test_a_class_may_be_a_link_to_a_folder_elsewhere(tmp_path: Path) -> None:
    put(tmp_path / "disk", "1.png", "2.png")
    root = put(tmp_path / "root", "cat/1.png")
    (root / "dog").symlink_to(tmp_path / "disk")
    assert index(root)["image"].to_list() == ["cat/1.png", "dog/1.png", "dog/2.png"]
    (root / "cat" / "back").symlink_to(root)  # a link that leads to itself is not followed
    assert index(root).height == 3
