"""Arrays written part by part are valid safetensors files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from stamp.core.array_writer import ArrayWriter, RowWriter
from stamp.core.artifacts import array_metadata, read_arrays


def test_rows_written_one_batch_at_a_time_are_a_valid_safetensors_file(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    path = tmp_path / "x.safetensors"
    writer = RowWriter(path, "logits", (7, 3), {"model": "ümlaut"})
    for start in (0, 4):
        writer.append(values[start : start + 4])
    writer.close()
    assert np.array_equal(load_file(path)["logits"], values)
    assert array_metadata(path)["model"] == "ümlaut"


def test_several_arrays_are_written_part_by_part_in_any_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    arrays = {
        "half": rng.normal(size=(2, 5, 3)).astype(np.float16),
        "rows": np.arange(5, dtype=np.int32),
        "full": rng.normal(size=(5, 4)).astype(np.float32),
    }
    path = tmp_path / "x.safetensors"
    announced = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    writer = ArrayWriter(path, announced, {"model": "m"})
    for start in (3, 0):
        part = slice(start, start + 3)
        for plane in (1, 0):
            writer.put("half", arrays["half"][plane, part], start, plane)
        writer.put("full", arrays["full"][part], start)
    writer.put("rows", arrays["rows"])
    with pytest.raises(ValueError, match=r"rows of shape \(3, 4\) do not fit into full \(5, 4\)"):
        writer.put("full", np.zeros((3, 4)), 3)
    writer.file.close()
    found = read_arrays(path, model="m")
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array)


def test_fewer_rows_than_announced_are_an_error(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path / "x", "logits", (7, 3), {})
    writer.append(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="48 bytes of rows written, 84 announced"):
        writer.close()
