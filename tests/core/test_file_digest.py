"""A file counts by its content; what is remembered of it is never believed too long."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from stamp.core import file_digest
from stamp.core.errors import UserError
from stamp.core.file_digest import Digests


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every file had been written long ago."""
    monkeypatch.setattr(file_digest, "SETTLED", -(10**18))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are read."""
    found: list[Path] = []
    read = file_digest.read_sha256

    def counted(path: str | Path) -> str:
        found.append(Path(path))
        return read(path)

    monkeypatch.setattr(file_digest, "read_sha256", counted)
    return found


def test_a_known_file_is_read_once_by_all_processes(
    tmp_path: Path, settled: None, reads: list[Path]
) -> None:
    file, memory = tmp_path / "w.bin", tmp_path / "results" / "digests.json"
    file.write_bytes(b"abc")
    for _ in range(3):  # each as another process
        digests = Digests(memory, large=0)
        assert digests.of(file) == sha(file)
        digests.save()
    assert reads == [file]


@pytest.mark.parametrize("how", ["older", "same size and time", "moved into place", "rewritten"])
def test_every_way_to_replace_a_file_is_noticed(tmp_path: Path, settled: None, how: str) -> None:
    file, other = tmp_path / "w.bin", tmp_path / "other.bin"
    file.write_bytes(b"abc")
    os.utime(file, (2_000, 2_000))
    digests = Digests(tmp_path / "digests.json", large=0)
    first = digests.of(file)
    digests.save()
    other.write_bytes(b"abcd" if how == "older" else b"xyz")
    os.utime(other, (1_000, 1_000) if how == "older" else (2_000, 2_000))
    if how == "moved into place":
        os.replace(other, file)
    elif how == "rewritten":
        file.write_bytes(b"xyz")
    else:
        shutil.copy2(other, file)  # as cp -p
    for again in (digests, Digests(tmp_path / "digests.json", large=0)):
        assert again.of(file) == sha(file) != first


def test_a_file_of_a_moment_ago_and_a_small_file_are_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: list[Path]
) -> None:
    """Two changes within one tick of the file system's clock leave the same size and time."""
    file = tmp_path / "w.bin"
    file.write_bytes(b"abc")
    fresh = Digests(tmp_path / "digests.json", large=0)
    assert fresh.of(file) == fresh.of(file) and len(reads) == 2
    monkeypatch.setattr(file_digest, "SETTLED", -(10**18))
    small = Digests(tmp_path / "digests.json", large=4)
    assert small.of(file) == small.of(file) and len(reads) == 4


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"/x": 3}', '{"/x": [["a"], 1]}'])
def test_a_damaged_memory_costs_time_and_nothing_else(
    tmp_path: Path, settled: None, text: str
) -> None:
    file, memory = tmp_path / "w.bin", tmp_path / "digests.json"
    file.write_bytes(b"abc")
    memory.write_text(text)
    digests = Digests(memory, large=0)
    assert digests.of(file) == sha(file)
    digests.save()
    assert json.loads(memory.read_text())[str(file)][1] == sha(file)


def test_where_nothing_can_be_remembered_digests_are_right(tmp_path: Path, settled: None) -> None:
    file = tmp_path / "w.bin"
    file.write_bytes(b"abc")
    digests = Digests(file / "digests.json", large=0)  # a file is no folder
    assert digests.of(file) == sha(file)
    digests.save()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w.bin"]


def test_processes_that_remember_at_once_keep_what_the_others_found(
    tmp_path: Path, settled: None
) -> None:
    files = [tmp_path / "a", tmp_path / "b"]
    memories = [Digests(tmp_path / "digests.json", large=0) for _ in files]
    for file, memory in zip(files, memories, strict=True):
        file.write_bytes(file.name.encode())
        memory.of(file)
    for memory in memories:
        memory.save()
    assert set(json.loads((tmp_path / "digests.json").read_text())) == set(map(str, files))


def test_a_file_that_is_not_there_can_be_planned_with(tmp_path: Path) -> None:
    assert file_digest.planned(tmp_path / "none") == "absent"


def test_another_checksum_is_one_line_with_the_file_and_both(tmp_path: Path) -> None:
    file = tmp_path / "w.bin"
    file.write_bytes(b"abc")
    file_digest.check_sha256(file, sha(file))
    with pytest.raises(UserError) as mistake:
        file_digest.check_sha256(file, "0" * 64)
    for named in (str(file), sha(file), "0" * 64):
        assert named in str(mistake.value)
    assert "\n" not in str(mistake.value)
