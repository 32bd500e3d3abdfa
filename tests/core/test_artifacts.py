"""Files are whole or not there, and carry what they were made from."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from project import ROOT

from stamp.core import artifacts, atomic_file
from stamp.core.errors import UserError


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "table.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError), artifacts.atomic_write(target) as part:
        part.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["table.txt"]


def test_a_full_disk_is_one_line_that_names_the_file(tmp_path: Path) -> None:
    refused = pytest.raises(UserError, match=r"table\.parquet: no space left")
    with refused as caught, artifacts.atomic_write(tmp_path / "table.parquet") as part:
        part.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    """One living process, one that is gone, and one of another machine, young and old."""
    own = atomic_file.part_of(tmp_path / "a.json").name
    machine = own.split(".")[-3]
    living = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True
    )
    dead = int(gone.stdout)
    kept = [
        own,
        f".a.json.{machine}.{living.pid}.part",
        f".a.json.{'0' * 8}.{dead}.part",
        "a.zip.part",
        ".hidden.part",
    ]
    swept = [
        f".a.json.{machine}.{dead}.part",
        f".other.{machine}.{dead}.part",
        f".b.{'0' * 8}.1.part",
    ]
    for name in (*kept, *swept):
        (tmp_path / name).write_text("half")
    old = time.time() - 8 * 86400
    os.utime(tmp_path / swept[-1], (old, old))
    artifacts.write_json(tmp_path / "a.json", {"whole": True})
    living.communicate(b"\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept[1:], "a.json"])


def test_a_folder_is_listed_once_however_many_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[Path] = []
    monkeypatch.setattr(atomic_file, "sweep", listed.append)
    for number in range(5):
        artifacts.write_json(tmp_path / f"{number}.json", {})
    assert listed == [tmp_path]


def test_a_table_comes_back_and_another_provenance_is_refused_by_name(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": [1, 2], "b": ["x", None]})
    path = tmp_path / "deep" / "t.parquet"
    artifacts.write_table(path, table, {"model": "resnet", "n": 3})
    assert artifacts.read_table(path, model="resnet", n=3).equals(table)
    with pytest.raises(
        UserError, match=r"t\.parquet: made with model 'resnet', but 'vit' is needed"
    ):
        artifacts.read_table(path, model="vit")


def test_arrays_of_another_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    artifacts.write_arrays(path, {"draws": np.arange(4.0)}, {"model": "a"})
    assert artifacts.read_arrays(path, model="a")["draws"].tolist() == [0, 1, 2, 3]
    with pytest.raises(UserError, match="made with model 'a', but 'b'"):
        artifacts.read_arrays(path, model="b")


def test_the_digest_of_ids_sees_order_and_borders() -> None:
    assert artifacts.ids_digest(["a", "b"]) != artifacts.ids_digest(["b", "a"])
    assert artifacts.ids_digest(["ab", "c"]) != artifacts.ids_digest(["a", "bc"])


def test_json_refuses_what_is_not_a_number(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        artifacts.write_json(tmp_path / "x.json", {"value": float("nan")})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", ["csv", "parquet", "json", "safetensors"])
def test_what_can_not_be_written_is_one_line_that_names_it(tmp_path: Path, ending: str) -> None:
    """A file stands where the folder would be, or a folder where the file would be."""
    (tmp_path / "taken").write_text("mine")
    (tmp_path / f"folder.{ending}").mkdir()
    for target in (tmp_path / "taken" / f"x.{ending}", tmp_path / f"folder.{ending}"):
        with pytest.raises(UserError) as caught:
            if ending == "json":
                artifacts.write_json(target, {"a": 1})
            elif ending == "safetensors":
                artifacts.write_arrays(target, {"a": np.ones(2)}, {})
            else:
                artifacts.write_table(target, pl.DataFrame({"a": [1]}), {})
        assert str(caught.value).startswith(f"{target}: can't be written: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"folder.{ending}", "taken"]
    assert (tmp_path / "taken").read_text() == "mine"


def test_an_error_of_another_file_is_not_taken_for_the_one_that_is_written(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), artifacts.atomic_write(tmp_path / "x.txt"):
        raise PermissionError(errno.EACCES, "Permission denied", "/elsewhere/pixels.npy")
    assert not list(tmp_path.iterdir())


def test_equal_arrays_are_equal_bytes_in_the_format_of_the_library(tmp_path: Path) -> None:
    """The library's own writer orders metadata differently from one call to the next."""
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=(3, 2)) for name in "cab"}
    metadata = {f"key {number}": f'\u00e9 "{number}"\n' for number in range(20)}
    written = set()
    for number in range(5):
        path = tmp_path / f"{number}.safetensors"
        artifacts.write_arrays(path, arrays, metadata)
        written.add(path.read_bytes())
    assert len(written) == 1
    assert artifacts.array_metadata(path) == metadata
    found = artifacts.read_arrays(path)
    assert all(np.array_equal(found[name], arrays[name]) for name in arrays)


def test_a_file_gets_the_users_umask_whatever_wrote_it(tmp_path: Path) -> None:
    script = """
import os, sys
from stamp.core.artifacts import atomic_write
with atomic_write(sys.argv[1]) as part:
    os.close(os.open(part, os.O_CREAT | os.O_WRONLY, 0o600))
"""
    for mask, mode in ((0o022, 0o644), (0o002, 0o664), (0o077, 0o600)):
        path = tmp_path / oct(mask)
        subprocess.run(
            [sys.executable, "-c", script, str(path)],
            env={"PYTHONPATH": str(ROOT / "workflow" / "scripts")},
            check=True,
            umask=mask,
        )
        assert path.stat().st_mode & 0o777 == mode
