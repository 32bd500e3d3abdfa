"""Pixels are, to the last bit, those of timm's own evaluation transform."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from stamp.config.preprocessing import Preprocessing, merged
from stamp.images.pixels import RESAMPLING, resize
from stamp.models.torchvision_ops import timm

CROPS = (0.875, 0.9, 0.95, 0.965, 1.0)
METHODS = ("bicubic", "bilinear")

# width, height: tall, wide, smaller than the size, square, a pixel off what the crop asks for
SIZES = (
    *((37, 113), (151, 40), (5, 9), (9, 5), (1, 7), (62, 62), (61, 63), (62, 65)),
    *((70, 70), (69, 71), (71, 70), (68, 70), (300, 299), (500, 375), (333, 500)),
)


def picture(width: int, height: int, seed: int = 0) -> Image.Image:
    """Noise: every pixel that is taken from elsewhere shows."""
    rng = np.random.default_rng([seed, width, height])
    return Image.fromarray(rng.integers(0, 256, size=(height, width, 3), dtype=np.uint8))


def by_timm(image: Image.Image, size: int, interpolation: str, crop: float) -> np.ndarray:
    """What timm feeds a model in evaluation, before normalisation, as [height, width, 3]."""
    transform = timm.data.create_transform(
        (3, size, size),
        is_training=False,
        interpolation=interpolation,
        crop_pct=crop,
        crop_mode="center",
        normalize=False,
    )
    return transform(image).permute(1, 2, 0).numpy()


def ours(image: Image.Image, size: int, interpolation: str, crop: float | None) -> np.ndarray:
    return np.asarray(resize(image, Preprocessing(size, 3, interpolation, crop)))


@pytest.mark.parametrize("crop", CROPS)
@pytest.mark.parametrize("interpolation", METHODS)
def test_a_crop_gives_timms_pixels(interpolation: str, crop: float) -> None:
    for width, height in SIZES:
        image = picture(width, height)
        expected = by_timm(image, 62, interpolation, crop)
        assert np.array_equal(ours(image, 62, interpolation, crop), expected), (width, height)


@pytest.mark.parametrize(("size", "crop"), [(224, c) for c in CROPS] + [(300, 1.0), (320, 0.875)])
def test_the_published_sizes_give_timms_pixels_of_a_photograph(size: int, crop: float) -> None:
    for width, height in ((500, 375), (375, 500), (231, 400)):
        image = picture(width, height)
        assert np.array_equal(
            ours(image, size, "bicubic", crop), by_timm(image, size, "bicubic", crop)
        )


@settings(max_examples=150, deadline=None)
@given(
    width=st.integers(1, 90),
    height=st.integers(1, 90),
    size=st.integers(1, 48),
    crop=st.one_of(st.sampled_from(CROPS), st.floats(0.3, 1.0)),
    method=st.sampled_from(METHODS),
)
def test_any_picture_size_and_crop_give_timms_pixels(
    width: int, height: int, size: int, crop: float, method: str
) -> None:
    image = picture(width, height)
    assert np.array_equal(ours(image, size, method, crop), by_timm(image, size, method, crop))


@pytest.mark.parametrize("interpolation", RESAMPLING)
def test_without_a_crop_the_whole_picture_is_squeezed(interpolation: str) -> None:
    image = picture(50, 20)
    expected = image.resize((16, 16), RESAMPLING[interpolation])
    assert np.array_equal(ours(image, 16, interpolation, None), np.asarray(expected))


def test_a_picture_that_has_the_size_is_left_alone() -> None:
    image = picture(24, 24)
    assert np.array_equal(ours(image, 24, "bicubic", None), np.asarray(image))
    assert np.array_equal(ours(image, 24, "bicubic", 1.0), np.asarray(image))


def test_gray_pictures_are_cropped_alike() -> None:
    image = picture(61, 47).convert("L")
    found = np.asarray(resize(image, Preprocessing(32, 1, "bicubic", 0.9)))
    expected = by_timm(image, 32, "bicubic", 0.9)[..., 0]
    assert np.array_equal(found, expected)


def test_a_whole_crop_and_no_crop_have_names_of_their_own() -> None:
    assert merged({"size": 8, "crop": 1.0}).key == merged({"size": 8, "crop": 1}).key
    assert merged({"size": 8, "crop": 1.0}).key != merged({"size": 8}).key
