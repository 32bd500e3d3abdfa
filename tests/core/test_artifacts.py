"""Files are whole or not there, and carry what they were made from."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stamp.core import artifacts as io
from stamp.core.errors import UserError


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "table.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError), io.atomic_write(target) as part:
        part.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["table.txt"]


def test_a_full_disk_is_one_line_that_names_the_file(tmp_path: Path) -> None:
    refused = pytest.raises(UserError, match=r"table\.parquet: no space left")
    with refused as caught, io.atomic_write(tmp_path / "table.parquet") as part:
        part.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_table_comes_back_and_another_provenance_is_refused_by_name(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": [1, 2], "b": ["x", None]})
    path = tmp_path / "deep" / "t.parquet"
    io.write_table(path, table, {"model": "resnet", "n": 3})
    assert io.read_table(path, model="resnet", n=3).equals(table)
    with pytest.raises(
        UserError, match=r"t\.parquet: made with model 'resnet', but 'vit' is needed"
    ):
        io.read_table(path, model="vit")


def test_arrays_of_another_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    io.write_arrays(path, {"draws": np.arange(4.0)}, {"model": "a"})
    assert io.read_arrays(path, model="a")["draws"].tolist() == [0, 1, 2, 3]
    with pytest.raises(UserError, match="made with model 'a', but 'b'"):
        io.read_arrays(path, model="b")


def test_the_digest_of_ids_sees_order_and_borders() -> None:
    assert io.ids_digest(["a", "b"]) != io.ids_digest(["b", "a"])
    assert io.ids_digest(["ab", "c"]) != io.ids_digest(["a", "bc"])


def test_json_refuses_what_is_not_a_number(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        io.write_json(tmp_path / "x.json", {"value": float("nan")})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", ["csv", "parquet", "json", "safetensors"])
def test_what_can_not_be_written_is_one_line_that_names_it(tmp_path: Path, ending: str) -> None:
    """A file stands where the folder would be, or a folder where the file would be."""
    (tmp_path / "taken").write_text("mine")
    (tmp_path / f"folder.{ending}").mkdir()
    for target in (tmp_path / "taken" / f"x.{ending}", tmp_path / f"folder.{ending}"):
        with pytest.raises(UserError) as caught:
            if ending == "json":
                io.write_json(target, {"a": 1})
            elif ending == "safetensors":
                io.write_arrays(target, {"a": np.ones(2)}, {})
            else:
                io.write_table(target, pl.DataFrame({"a": [1]}), {})
        assert str(caught.value).startswith(f"{target}: can't be written: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"folder.{ending}", "taken"]
    assert (tmp_path / "taken").read_text() == "mine"


def test_an_error_of_another_file_is_not_taken_for_the_one_that_is_written(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), io.atomic_write(tmp_path / "x.txt"):
        raise PermissionError(errno.EACCES, "Permission denied", "/elsewhere/pixels.npy")
    assert not list(tmp_path.iterdir())
