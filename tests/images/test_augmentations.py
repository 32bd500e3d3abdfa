"""Changed pictures: what each change is, and that nothing but seed, id and name decides it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageEnhance
from scipy.stats import kstest

from stamp.images import augmentations as changes
from stamp.images.augmentations import AUGMENTATIONS, VIEWS
from stamp.models.torchvision_ops import declare_missing

declare_missing()
from torchvision.transforms import functional as vision  # noqa: E402

IDS = [f"image-{number}" for number in range(7)]


def pictures(n: int = 7, size: int = 24, channels: int = 3) -> torch.Tensor:
    rng = np.random.default_rng(5)
    return torch.from_numpy(rng.integers(0, 256, (n, size, size, channels), dtype=np.uint8))


def chw(pixels: torch.Tensor) -> torch.Tensor:
    return pixels.permute(0, 3, 1, 2)


def close(found: torch.Tensor, wanted: torch.Tensor, by: int = 1) -> bool:
    return int((found.int() - wanted.int()).abs().max()) <= by


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_neither_order_nor_batch_nor_company_changes_a_picture(name: str) -> None:
    change, pixels = AUGMENTATIONS[name], pictures()
    whole = change(pixels, IDS, 3)
    order = [4, 0, 6, 2]
    some = change(pixels[order], [IDS[place] for place in order], 3)
    assert torch.equal(some, whole[order])
    single = [change(pixels[k : k + 1], IDS[k : k + 1], 3) for k in range(len(IDS))]
    assert torch.equal(torch.cat(single), whole)


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_a_changed_picture_keeps_shape_and_type_and_leaves_the_original_alone(name: str) -> None:
    pixels = pictures(channels=1)
    before = pixels.clone()
    found = AUGMENTATIONS[name](pixels, IDS, 0)
    assert (found.shape, found.dtype) == (pixels.shape, torch.uint8)
    assert torch.equal(pixels, before)
    assert not torch.equal(found, pixels)


@pytest.mark.parametrize("name", ["rotation", "brightness", "contrast", "crop", "composite"])
def test_seed_and_id_both_decide_what_is_drawn(name: str) -> None:
    change, pixels = AUGMENTATIONS[name], pictures()
    assert not torch.equal(change(pixels, IDS, 0), change(pixels, IDS, 1))
    assert not torch.equal(change(pixels, IDS, 0), change(pixels, [f"{k}x" for k in IDS], 0))


def test_the_draws_are_uniform_and_those_of_two_changes_unrelated() -> None:
    ids = [str(number) for number in range(4000)]
    drawn = changes.uniforms(ids, 0, "crop", 4)
    for column in drawn.T:
        assert kstest(column, "uniform").pvalue > 1e-4
    together = np.column_stack([drawn, changes.uniforms(ids, 0, "rotation")])
    off = np.corrcoef(together.T)[~np.eye(5, dtype=bool)]
    assert np.abs(off).max() < 0.08


def test_ids_that_run_together_with_the_seed_are_still_apart() -> None:
    assert changes.uniforms(["1"], 2, "x") != changes.uniforms([""], 21, "x")
    assert changes.uniforms(["a"], 0, "bc") != changes.uniforms(["ab"], 0, "c")


def test_the_mirror_of_the_mirror_is_the_picture() -> None:
    pixels = pictures()
    found = changes.flip(pixels, IDS, 0)
    assert torch.equal(chw(found), vision.hflip(chw(pixels)))
    assert torch.equal(changes.flip(found, IDS, 0), pixels)


@pytest.mark.parametrize("angle", [-10.0, -3.7, 5.0, 30.0])
@pytest.mark.parametrize("size", [23, 24])
def test_rotation_is_torchvisions(angle: float, size: int) -> None:
    pixels = pictures(size=size)
    bilinear = vision.InterpolationMode.BILINEAR
    assert close(chw(changes.rotate(pixels, angle)), vision.rotate(chw(pixels), angle, bilinear))


def test_rotation_by_nothing_is_the_picture_and_by_a_quarter_is_the_turn() -> None:
    pixels = pictures()
    assert torch.equal(changes.rotate(pixels, 0.0), pixels)
    assert close(changes.rotate(pixels, 90.0), changes.turn(pixels, 1))
    assert torch.equal(chw(changes.turn(pixels, 1)), vision.rotate(chw(pixels), 90))


def test_quarter_turns_are_numpys_and_four_of_them_the_picture() -> None:
    pixels = pictures()
    for quarters in (1, 2, 3):
        wanted = np.rot90(pixels.numpy(), quarters, axes=(1, 2))
        assert np.array_equal(changes.turn(pixels, quarters).numpy(), wanted)
    assert torch.equal(changes.turn(changes.turn(pixels, 3), 1), pixels)


def test_a_rotated_white_picture_is_white_in_the_middle_and_black_in_the_corners() -> None:
    white = torch.full((1, 41, 41, 1), 255, dtype=torch.uint8)
    found = changes.rotate(white, 10.0)[0, :, :, 0]
    assert found[20, 20] == 255 and found[10:31, 10:31].min() == 255
    assert found[0, 0] == found[0, 40] == found[40, 0] == found[40, 40] == 0


@given(st.integers(0, 255), st.floats(0.5, 1.5))
@settings(max_examples=60, deadline=None)
def test_brightness_scales_and_contrast_keeps_a_constant_picture(value: int, factor: float) -> None:
    flat = torch.full((1, 8, 8, 1), value, dtype=torch.uint8)
    exact = min(255.0, value * factor)
    assert abs(int(changes.brighten(flat, factor)[0, 0, 0, 0]) - exact) <= 0.5 + 1e-4
    assert torch.equal(changes.change_contrast(flat, factor), flat)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("factor", [0.8, 0.93, 1.2])
def test_brightness_and_contrast_are_pillows(factor: float, channels: int) -> None:
    pixels = pictures(1, channels=channels)
    mode = "RGB" if channels == 3 else "L"
    picture = Image.fromarray(pixels[0].numpy().squeeze(), mode)
    for change, enhance in (
        (changes.brighten, ImageEnhance.Brightness),
        (changes.change_contrast, ImageEnhance.Contrast),
    ):
        wanted = torch.from_numpy(np.array(enhance(picture).enhance(factor)))
        assert close(change(pixels, factor)[0].squeeze(), wanted)


@pytest.mark.parametrize(("side", "top", "left"), [(20, 0, 4), (22, 1, 2), (17, 7, 0)])
def test_a_crop_is_torchvisions_resized_crop(side: int, top: int, left: int) -> None:
    pixels = pictures()
    wanted = vision.resized_crop(chw(pixels), top, left, side, side, [24, 24], antialias=True)
    assert close(chw(changes.crop(pixels, side, top, left)), wanted)


def test_a_crop_of_everything_is_the_picture() -> None:
    pixels = pictures()
    assert torch.equal(changes.crop(pixels, 24, 0, 0), pixels)
    assert torch.equal(changes.centre_crop(pixels, 1.0), pixels)


def test_a_crop_never_shows_what_lies_outside_of_its_square() -> None:
    pixels = torch.zeros((1, 24, 24, 1), dtype=torch.uint8)
    pixels[:, 3:23, 2:22] = 200
    assert torch.equal(changes.crop(pixels, 20, 3, 2), torch.full_like(pixels, 200))


def test_drawn_crops_have_the_area_that_was_asked_for_and_lie_within(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = {}

    def keep(pixels: torch.Tensor, side: np.ndarray, top: np.ndarray, left: np.ndarray) -> None:
        drawn.update(side=side, top=top, left=left)

    monkeypatch.setattr(changes, "crop", keep)
    ids = [str(number) for number in range(3000)]
    changes.resized_crop(torch.zeros((3000, 100, 100, 1), dtype=torch.uint8), ids, 0)
    side, top, left = drawn["side"], drawn["top"], drawn["left"]
    assert (side.min(), side.max()) == (89, 100)
    assert (side / 100) ** 2 == pytest.approx(np.clip((side / 100) ** 2, 0.79, 1.0))
    assert min(top.min(), left.min()) == 0
    assert (top + side).max() == (left + side).max() == 100
    share = kstest((side / 100) ** 2, "uniform", args=(0.8, 0.2))
    assert share.statistic < 0.06  # sides are whole pixels


def test_the_composite_is_the_single_changes_one_after_the_other() -> None:
    pixels = pictures()
    wanted = pixels
    for name in ("crop", "flip", "rotation", "brightness", "contrast"):
        wanted = AUGMENTATIONS[name](wanted, IDS, 9)
    assert torch.equal(AUGMENTATIONS["composite"](pixels, IDS, 9), wanted)


def test_the_fixed_views_are_the_nine_that_are_named() -> None:
    pixels = pictures()
    found = {name: view(pixels) for name, view in VIEWS.items()}
    assert len(found) == 9
    for angle in (-10, -5, 5, 10):
        assert torch.equal(found[f"rotation {angle:+d}"], changes.rotate(pixels, angle))
    assert torch.equal(found["brightness 0.9"], changes.brighten(pixels, 0.9))
    assert torch.equal(found["contrast 1.1"], changes.change_contrast(pixels, 1.1))
    assert torch.equal(found["centre crop 90 %"], changes.crop(pixels, 22, 1, 1))
