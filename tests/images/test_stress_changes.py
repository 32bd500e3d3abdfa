"""The changes of stress tests against PIL and SciPy, and what all of them must keep."""

from __future__ import annotations

import inspect
import io
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from scipy import ndimage

from stamp.config.registries.stress_changes import changes
from stamp.core.errors import UserError
from stamp.images import stress_changes

IDS = [f"image {number}" for number in range(12)]
SEED = 5
COLOUR = ("saturation", "colour_cast")


def photographs(channels: int, size: int = 40) -> torch.Tensor:
    """Smooth images with edges, all values in use."""
    rng = np.random.default_rng(channels)
    rough = ndimage.gaussian_filter(rng.normal(size=(len(IDS), size, size, channels)), (0, 2, 2, 0))
    rough[:, size // 3 : size // 2, size // 4 : size // 2] += rough.std() * 2
    low, high = rough.min(axis=(1, 2, 3), keepdims=True), rough.max(axis=(1, 2, 3), keepdims=True)
    return torch.from_numpy(np.rint(255 * (rough - low) / (high - low)).astype(np.uint8))


def changed(
    name: str, pixels: torch.Tensor, ids: Sequence[str] = IDS, seed: int = SEED
) -> np.ndarray:
    return getattr(stress_changes, name)(pixels, ids, seed).numpy()


def as_pictures(pixels: torch.Tensor) -> list[Image.Image]:
    gray = pixels.shape[3] == 1
    return [Image.fromarray(one[..., 0] if gray else one) for one in pixels.numpy()]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", changes())
def test_a_change_depends_on_the_seed_and_the_image_id_alone(name: str, channels: int) -> None:
    if channels == 1 and name in COLOUR:
        pytest.skip("a change of colours")
    pixels = photographs(channels)
    whole = changed(name, pixels)
    assert whole.shape == tuple(pixels.shape) and whole.dtype == np.uint8
    assert (whole != pixels.numpy()).mean() > 0.02
    order = [4, 1, 3]
    some = changed(name, pixels[order], [IDS[place] for place in order])
    assert (some == whole[order]).all()
    again = changed(name, pixels, seed=SEED)
    assert (again == whole).all()


@pytest.mark.parametrize("name", ["noise", "salt_and_pepper", "exposure", "occlusion", "shift"])
def test_what_is_drawn_differs_between_images_and_seeds(name: str) -> None:
    pixels = photographs(1)[:1].repeat(len(IDS), 1, 1, 1)
    found = changed(name, pixels)
    assert len({one.tobytes() for one in found}) > 1
    assert (changed(name, pixels, seed=SEED + 1) != found).any()


def test_a_new_function_of_the_module_is_a_change_that_a_study_can_name() -> None:
    public = [
        name
        for name, found in inspect.getmembers(stress_changes, inspect.isfunction)
        if found.__module__ == stress_changes.__name__ and not name.startswith("_")
    ]
    assert sorted(changes()) == sorted(public)
    assert all(text.endswith(".") for text in changes().values())
    assert not {"inversion", "invert", "flip", "mirror"} & set(changes())


def test_blur_is_the_convolution_that_scipy_makes() -> None:
    pixels = photographs(3, size=72)
    smooth = ndimage.gaussian_filter(
        pixels.numpy().astype(float), (0, 72 / 64, 72 / 64, 0), mode="mirror", truncate=4.5
    )
    assert np.abs(changed("blur", pixels) - smooth).max() < 1


@pytest.mark.parametrize("channels", [1, 3])
def test_encodings_are_those_of_pil(channels: int) -> None:
    pixels = photographs(channels)
    side = pixels.shape[1]
    for place, picture in enumerate(as_pictures(pixels)):
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=20)
        expected = np.asarray(Image.open(file)).reshape(side, side, channels)
        assert (changed("jpeg", pixels)[place] == expected).all()
        levels = np.asarray(ImageOps.posterize(picture, 3)).reshape(side, side, channels)
        assert (changed("posterise", pixels)[place] == levels).all()
        small = picture.resize((side // 2, side // 2), Image.Resampling.BOX)
        large = np.asarray(small.resize((side, side), Image.Resampling.NEAREST), dtype=int)
        found = changed("pixelation", pixels)[place]
        assert np.abs(found - large.reshape(found.shape)).max() <= 1  # halves are rounded


def test_tones_and_colours_are_those_of_pil() -> None:
    pixels = photographs(3)
    for place, picture in enumerate(as_pictures(pixels)):
        half = np.asarray(ImageEnhance.Contrast(picture).enhance(0.5), dtype=int)
        assert np.abs(changed("contrast", pixels)[place] - half).max() <= 1
        pale = np.asarray(ImageEnhance.Color(picture).enhance(0.3), dtype=int)
        assert np.abs(changed("saturation", pixels)[place] - pale).max() <= 1
    values = pixels.numpy().astype(int)
    assert (changed("brighter", pixels) == np.minimum(values + 51, 255)).all()
    assert (changed("darker", pixels) == np.maximum(values - 51, 0)).all()


def test_noise_has_the_size_that_is_told() -> None:
    gray = torch.full((12, 64, 64, 1), 128, dtype=torch.uint8)
    moved = changed("noise", gray).astype(float) - 128
    assert abs(moved.mean()) < 1 and abs(moved.std() - 25.5) < 0.6
    dots = changed("salt_and_pepper", gray)
    for value in (0, 255):
        assert abs((dots == value).mean() - 0.025) < 0.004
    assert set(np.unique(dots)) == {0, 128, 255}


@pytest.mark.parametrize(("name", "degrees"), [("rotation", 15), ("small_rotation", 5)])
def test_rotations_are_those_of_pil_to_one_side_or_the_other(name: str, degrees: float) -> None:
    pixels = photographs(1)
    sides = set()
    for picture, found in zip(as_pictures(pixels), changed(name, pixels), strict=True):
        fits = {}
        for sign in (-1, 1):
            turned = picture.rotate(sign * degrees, Image.Resampling.BILINEAR)
            apart = np.abs(np.asarray(turned, dtype=int) - found[..., 0])
            fits[sign] = np.median(apart)
        best = min(fits, key=lambda sign: fits[sign])
        assert fits[best] <= 1 < fits[-best]
        sides.add(best)
    assert sides == {-1, 1}


def test_scale_is_an_affine_map_about_the_centre() -> None:
    pixels = photographs(1)
    side = pixels.shape[1]
    seen = set()
    for image, found in zip(pixels.numpy(), changed("scale", pixels), strict=True):
        fits = {}
        for factor in (0.8, 1.25):
            middle = (side - 1) / 2
            there = ndimage.affine_transform(
                image[..., 0].astype(float), np.eye(2) * factor, middle * (1 - factor), order=1
            )
            fits[factor] = np.abs(there - found[..., 0])[2:-2, 2:-2].mean()
        best = min(fits, key=lambda factor: fits[factor])
        assert fits[best] < 2 < fits[1 / best]
        seen.add(best)
    assert seen == {0.8, 1.25}


def test_shift_moves_by_a_tenth_of_the_side() -> None:
    spot = np.zeros((12, 40, 40, 1), dtype=np.uint8)
    spot[:, 18:22, 18:22] = 200
    found = changed("shift", torch.from_numpy(spot))[..., 0]
    for image in found:
        row, column = ndimage.center_of_mass(image)
        assert np.hypot(row - 19.5, column - 19.5) == pytest.approx(4, abs=0.05)


def test_bars_and_squares_leave_the_rest_of_the_image_alone() -> None:
    pixels = photographs(3, size=50) // 2 + 60
    inside = slice(6, 44)
    bars = changed("collimation", pixels)
    assert (bars[:, inside, inside] == pixels.numpy()[:, inside, inside]).all()
    assert not bars[:, :2].any() and not bars[:, -2:].any()
    assert not bars[:, :, :2].any() and not bars[:, :, -2:].any()
    covered = (changed("occlusion", pixels) != pixels.numpy()).any(axis=3)
    for mask in covered:
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        assert 14 <= np.ptp(rows) + 1 <= 16 and 14 <= np.ptp(columns) + 1 <= 16
        assert 12 <= rows.mean() <= 37.5 and 12 <= columns.mean() <= 37.5


def test_exposure_and_window_are_increasing_maps_of_gray() -> None:
    ramp = np.tile(np.arange(256, dtype=np.uint8)[:, None], (12, 1, 256))[..., None]
    for image in changed("exposure", torch.from_numpy(ramp))[:, :, 0, 0]:
        power = np.log(image[128] / 255) / np.log(128 / 255)
        assert min(abs(power - 1.6), abs(power - 1 / 1.6)) < 0.02
        assert (np.diff(image.astype(int)) >= 0).all() and image[0] == 0 and image[255] == 255
    for image in changed("window", torch.from_numpy(ramp))[:, :, 0, 0].astype(int):
        between = (image > 0) & (image < 255)
        assert between.sum() == pytest.approx(0.7 * 255, abs=3)
        assert np.polyfit(np.flatnonzero(between), image[between], 1)[0] == pytest.approx(
            1 / 0.7, rel=0.01
        )


@pytest.mark.parametrize("name", COLOUR)
def test_a_change_of_colours_refuses_gray_images(name: str) -> None:
    with pytest.raises(UserError, match=f"'{name}' changes colours"):
        changed(name, photographs(1))
