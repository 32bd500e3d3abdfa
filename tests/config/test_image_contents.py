"""A user's images count by what they hold, and a plan reads only those that look changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from stamp.config.contents import image_contents
from stamp.core import file_digest


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(file_digest, "SETTLED", -(10**18))
    paths = [tmp_path / f"{number}.png" for number in range(5)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * 9)
        os.utime(path, (5_000, 5_000))
    return [str(path) for path in paths]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    read = file_digest.read_sha256
    monkeypatch.setattr(
        file_digest, "read_sha256", lambda path: (found.append(str(path)), read(path))[1]
    )
    return found


def kept(images: list[str], record: Path) -> str:
    """What a run leaves: the plan's token, and what the job found."""
    planned = image_contents.token(images, record)
    image_contents.keep(images, record, planned)
    return planned


def test_the_first_plan_reads_no_image_and_later_ones_those_that_look_changed(
    images: list[str], tmp_path: Path, reads: list[str]
) -> None:
    record = tmp_path / "record.json"
    image_contents.token(images, record)
    assert reads == []
    first = kept(images, record)
    assert sorted(reads) == images
    reads.clear()
    assert image_contents.token(images, record) == first and reads == []
    os.utime(images[2], (9_000, 9_000))
    assert image_contents.token(images, record) == first and reads == [images[2]]
    reads.clear()
    assert image_contents.token(images, record) == first and reads == []


@pytest.mark.parametrize("time", [1_000, 5_000, 9_000])
def test_a_replaced_image_is_noticed_whatever_its_size_and_time(
    images: list[str], tmp_path: Path, time: int
) -> None:
    record, other = tmp_path / "record.json", tmp_path / "other"
    first = kept(images, record)
    other.write_bytes(b"x" * 9)  # of the same size
    os.utime(other, (time, time))
    shutil.copy2(other, images[3])
    changed = image_contents.token(images, record)
    assert changed != first
    assert kept(images, record) == changed == image_contents.token(images, record)


def test_a_lost_record_is_no_reason_to_believe_a_changed_image(
    images: list[str], tmp_path: Path
) -> None:
    record = tmp_path / "record.json"
    first = kept(images, record)
    record.unlink()
    assert image_contents.token(images, record) == first
    os.utime(images[0], (1, 1))
    assert image_contents.token(images, record) != first


def test_missing_added_and_renamed_images_are_changes(images: list[str], tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    first = kept(images, record)
    assert image_contents.token(images[:-1], record) != first
    os.rename(images[0], tmp_path / "z.png")
    assert image_contents.token(images, record) != first
    assert image_contents.token([*images[1:], str(tmp_path / "z.png")], record) != first


def test_the_order_of_the_images_does_not_count(images: list[str], tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    first = kept(images, record)
    assert image_contents.token(images[::-1], record) == first
