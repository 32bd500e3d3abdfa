"""Files are whole or not there, and carry what they were made from."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import load_file

from stamp.core import artifacts as io
from stamp.core.errors import UserError


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "table.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError), io.whole(target) as part:
        part.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["table.txt"]


def test_a_full_disk_is_one_line_that_names_the_file(tmp_path: Path) -> None:
    refused = pytest.raises(UserError, match=r"table\.parquet: no space left")
    with refused as caught, io.whole(tmp_path / "table.parquet") as part:
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


def test_rows_written_one_batch_at_a_time_are_a_valid_safetensors_file(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    path = tmp_path / "x.safetensors"
    writer = io.RowWriter(path, "logits", (7, 3), {"model": "ümlaut"})
    for start in (0, 4):
        writer.append(values[start : start + 4])
    writer.close()
    assert np.array_equal(load_file(path)["logits"], values)
    assert io.array_metadata(path)["model"] == "ümlaut"


def test_several_arrays_are_written_part_by_part_in_any_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    arrays = {
        "half": rng.normal(size=(2, 5, 3)).astype(np.float16),
        "rows": np.arange(5, dtype=np.int32),
        "full": rng.normal(size=(5, 4)).astype(np.float32),
    }
    path = tmp_path / "x.safetensors"
    announced = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    writer = io.ArrayWriter(path, announced, {"model": "m"})
    for start in (3, 0):
        part = slice(start, start + 3)
        for plane in (1, 0):
            writer.put("half", arrays["half"][plane, part], start, plane)
        writer.put("full", arrays["full"][part], start)
    writer.put("rows", arrays["rows"])
    with pytest.raises(ValueError, match=r"rows of shape \(3, 4\) do not fit into full \(5, 4\)"):
        writer.put("full", np.zeros((3, 4)), 3)
    writer.file.close()
    found = io.read_arrays(path, model="m")
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array)


def test_fewer_rows_than_announced_are_an_error(tmp_path: Path) -> None:
    writer = io.RowWriter(tmp_path / "x", "logits", (7, 3), {})
    writer.append(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="48 bytes of rows written, 84 announced"):
        writer.close()


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
    with pytest.raises(PermissionError), io.whole(tmp_path / "x.txt"):
        raise PermissionError(errno.EACCES, "Permission denied", "/elsewhere/pixels.npy")
    assert not list(tmp_path.iterdir())
