"""Copies of a user's files that a storage left elsewhere: paths lead there and back again."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stamp.core.artifacts import read_table, table_metadata, write_table
from stamp.data.local_copies import LocalCopies, named_again

COPIES = LocalCopies({"mine/images": "/disk/fs/mine/images", "w/a.onnx": "/disk/fs/w/a.onnx"})


@pytest.mark.parametrize(
    ("path", "copy"),
    [
        ("mine/images/a/1.png", "/disk/fs/mine/images/a/1.png"),
        ("mine/./images/1.png", "/disk/fs/mine/images/1.png"),
        ("mine/images2/1.png", "mine/images2/1.png"),
        ("/elsewhere/1.png", "/elsewhere/1.png"),
        ("w/a.onnx", "/disk/fs/w/a.onnx"),
    ],
)
def test_a_path_leads_to_its_copy_if_its_folder_was_staged(path: str, copy: str) -> None:
    assert COPIES.here(path) == copy
    assert LocalCopies({}).here(path) == path


@pytest.mark.parametrize("root", ["mine", "/data/mine"])
def test_an_index_made_from_copies_names_the_users_own_paths(root: str) -> None:
    local = LocalCopies({f"{root}/table.csv": f"/disk/fs/{root.lstrip('/')}/table.csv"})
    there = local.folder(root)
    assert there == f"/disk/fs/{root.lstrip('/')}"
    index = pl.DataFrame({"path": [f"{there}/a/1.png", "/elsewhere/2.png"]})
    assert named_again(index, there, root)["path"].to_list() == [
        f"{root}/a/1.png",
        "/elsewhere/2.png",
    ]
    assert LocalCopies({}).folder(root) == root


def test_only_the_users_files_of_a_block_are_replaced() -> None:
    block = {"source": "onnx", "file": "w/a.onnx", "initial": {"file": "w/a.onnx"}, "mean": [0.5]}
    found = COPIES.block(block)
    assert found["file"] == found["initial"]["file"] == "/disk/fs/w/a.onnx"
    assert (found["source"], found["mean"]) == ("onnx", [0.5])


def test_a_view_keeps_everything_but_its_paths(tmp_path: Path) -> None:
    view, folder = tmp_path / "source.parquet", tmp_path / "made"
    rows = pl.DataFrame({"image": ["1", "2"], "path": ["mine/images/1.png", "/other/2.png"]})
    write_table(view, rows, {"study": "clinic"})
    folder.mkdir()
    made = COPIES.view(view, folder)
    assert table_metadata(made) == table_metadata(view)
    assert read_table(made, study="clinic").to_dict(as_series=False) == {
        "image": ["1", "2"],
        "path": ["/disk/fs/mine/images/1.png", "/other/2.png"],
    }
