"""The pixel cache holds exactly what PIL gives, and says what it can't read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stamp.config.preprocessing import Preprocessing, merged
from stamp.core.errors import UserError
from stamp.images import pixels
from stamp.images.pixel_cache import PixelCache


@pytest.fixture
def pictures(tmp_path: Path) -> list[str]:
    rng = np.random.default_rng(0)
    paths = []
    for number, shape in enumerate([(40, 30), (30, 40, 3), (50, 50, 4), (33, 70)]):
        path = tmp_path / f"{number}.png"
        Image.fromarray(rng.integers(0, 256, size=shape, dtype=np.uint8)).save(path)
        paths.append(str(path))
    return paths


def written(tmp_path: Path, paths: list[str], how: Preprocessing, threads: int = 2):
    ids = [f"i{k}" for k in range(len(paths))]
    target, record = tmp_path / "c.npy", tmp_path / "c.json"
    pixels.write_cache(target, record, pixels.ImageFiles(ids, paths, "here"), how, threads)
    return PixelCache(target, record, ids)


@pytest.mark.parametrize("channels", [1, 3])
def test_rows_are_the_resized_pictures_in_order(
    tmp_path: Path, pictures: list[str], channels: int
) -> None:
    cache = written(tmp_path, pictures, Preprocessing(24, channels, "bicubic"))
    mode = "L" if channels == 1 else "RGB"
    for row, path in zip(cache.rows(0, 9), pictures, strict=True):
        with Image.open(path) as opened:
            expected = opened.convert(mode).resize((24, 24), Image.Resampling.BICUBIC)
        assert np.array_equal(row, np.asarray(expected).reshape(24, 24, channels))
    assert np.array_equal(cache.rows(1, 3), cache.rows(0, 4)[1:3])


def test_a_crop_keeps_the_centre_of_the_shorter_side(tmp_path: Path) -> None:
    picture = np.zeros((100, 200), dtype=np.uint8)
    picture[:, 50:150] = 255
    Image.fromarray(picture).save(tmp_path / "p.png")
    image = pixels.decode(str(tmp_path / "p.png"), Preprocessing(80, 1, "nearest", crop=0.8))
    assert image.shape == (80, 80, 1)
    assert (image == 255).all()


def test_the_number_of_threads_changes_nothing(tmp_path: Path, pictures: list[str]) -> None:
    how = Preprocessing(24, 1)
    one = written(tmp_path / "a", pictures, how, threads=1)
    four = written(tmp_path / "b", pictures, how, threads=4)
    assert np.array_equal(one.rows(0, 4), four.rows(0, 4))


@pytest.mark.parametrize(
    ("content", "line"),
    [(None, "no such image"), (b"not a picture", "can't be read as an image: is not PNG")],
)
def test_a_missing_or_unreadable_image_is_named_and_nothing_is_written(
    tmp_path: Path, pictures: list[str], content: bytes | None, line: str
) -> None:
    broken = tmp_path / "broken.png"
    if content is not None:
        broken.write_bytes(content)
    with pytest.raises(UserError) as caught:
        written(tmp_path, [*pictures, str(broken)], Preprocessing(24, 1))
    assert str(caught.value).startswith(f"{broken}: {line}")
    assert not list(tmp_path.glob("*c.npy*")) and not list(tmp_path.glob("*c.json*"))


def test_a_truncated_image_is_refused(tmp_path: Path, pictures: list[str]) -> None:
    whole = Path(pictures[0]).read_bytes()
    Path(pictures[0]).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="can't be read as an image"):
        pixels.decode(pictures[0], Preprocessing(24, 1))


def test_a_preprocessing_has_a_name_of_its_own_and_a_model_overrides_its_study() -> None:
    assert Preprocessing(48, 1).key == "48-gray-bilinear"
    assert merged({"size": 224}, {"crop": 0.95, "interpolation": "bicubic"}).key == (
        "224-rgb-bicubic-crop0.95"
    )
