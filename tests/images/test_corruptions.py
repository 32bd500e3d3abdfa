"""Corruptions of gray pictures: closed forms, independent references, what must never happen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage, stats

from stamp.images.corruptions import CORRUPTIONS, SEVERITIES, SEVERITY, warp

PHOTOGRAPH = np.add.outer(np.arange(60), 2 * np.arange(70)).astype(np.uint8)


def generators(count: int, start: int = 0) -> list[np.random.Generator]:
    return [np.random.default_rng([7, start + row]) for row in range(count)]


def corrupt(
    kind: str, batch: np.ndarray, severity: int, rngs: list[np.random.Generator]
) -> np.ndarray:
    extra = {"photographs": [PHOTOGRAPH]} if kind == "background" else {}
    return CORRUPTIONS[kind](batch, severity, rngs, **extra)


def strokes(count: int) -> np.ndarray:
    """Blurry bright bars on black, each with its own slope: something like digits."""
    rows, columns = np.mgrid[:28, :28] - 13.5
    slope = np.linspace(-1, 1, count)[:, None, None]
    bar = np.exp(-((columns - slope * rows) ** 2) / 4) * (np.abs(rows) < 10)
    return np.rint(255 * bar).astype(np.uint8)


def test_every_kind_has_a_function_and_one_parameter_a_severity():
    assert set(CORRUPTIONS) == set(SEVERITY)
    assert {len(values) for values in SEVERITY.values()} == {len(SEVERITIES)}


@pytest.mark.parametrize("kind", CORRUPTIONS)
@settings(max_examples=15, deadline=None)
@given(
    count=st.integers(1, 4),
    height=st.integers(16, 32),
    width=st.integers(16, 32),
    severity=st.sampled_from(SEVERITIES),
    seed=st.integers(0, 2**32 - 1),
)
def test_pictures_keep_type_and_shape_and_the_input_is_left_alone(
    kind, count, height, width, severity, seed
):
    batch = np.random.default_rng(seed).integers(0, 256, (count, height, width), dtype=np.uint8)
    before = batch.copy()
    result = corrupt(kind, batch, severity, generators(count))
    assert result.dtype == np.uint8
    assert result.shape == batch.shape
    assert not np.shares_memory(result, batch)
    np.testing.assert_array_equal(batch, before)


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_a_picture_does_not_depend_on_its_neighbours(kind):
    batch = strokes(6)
    together = corrupt(kind, batch, 3, generators(6))
    alone = [corrupt(kind, batch[row : row + 1], 3, generators(1, row))[0] for row in range(6)]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("kind", ["gaussian_noise", "occlusion", "affine", "background"])
def test_another_generator_gives_another_picture(kind):
    batch = np.repeat(strokes(3)[1:2], 2, axis=0)
    first, second = corrupt(kind, batch, 5, generators(2))
    assert (first != second).any()


@pytest.mark.parametrize("kind", CORRUPTIONS)
@pytest.mark.parametrize("severity", [0, 6, -1])
def test_a_severity_outside_one_to_five_raises(kind, severity):
    with pytest.raises(ValueError, match="severity"):
        corrupt(kind, strokes(1), severity, generators(1))


@pytest.mark.parametrize("severity", SEVERITIES)
def test_noise_on_mid_gray_has_the_standard_deviation_of_a_clipped_normal(severity):
    sd = 255 * SEVERITY["gaussian_noise"][severity - 1]
    gray = np.full((40, 64, 64), 128, np.uint8)
    noisy = corrupt("gaussian_noise", gray, severity, generators(40)).astype(float)
    inner = stats.truncnorm(-128 / sd, 127 / sd, loc=128, scale=sd)
    low, high = stats.norm(128, sd).cdf(0), stats.norm(128, sd).sf(255)
    mean = high * 255 + (1 - low - high) * inner.mean()
    square = high * 255**2 + (1 - low - high) * (inner.var() + inner.mean() ** 2)
    assert noisy.mean() == pytest.approx(mean, abs=0.5)
    assert noisy.std() == pytest.approx(np.sqrt(square - mean**2), rel=0.01)


def test_noise_is_not_the_same_on_neighbouring_pixels():
    gray = np.full((20, 64, 64), 128, np.uint8)
    noisy = corrupt("gaussian_noise", gray, 1, generators(20)).astype(float) - 128
    correlation = np.corrcoef(noisy[:, :, 1:].ravel(), noisy[:, :, :-1].ravel())[0, 1]
    assert abs(correlation) < 0.02


@pytest.mark.parametrize("severity", SEVERITIES)
def test_blur_keeps_the_total_and_spreads_a_point_by_its_sigma(severity):
    batch = strokes(5)
    blurred = corrupt("gaussian_blur", batch, severity, generators(5))
    assert blurred.mean() == pytest.approx(batch.mean(), rel=0.02)

    columns = np.arange(41) - 20
    line = np.zeros((1, 41, 41), np.uint8)
    line[:, :, 20] = 255
    profile = corrupt("gaussian_blur", line, severity, generators(1))[0, 20].astype(float)
    sigma = SEVERITY["gaussian_blur"][severity - 1]
    expected = stats.norm(0, sigma).pdf(columns)
    np.testing.assert_allclose(profile / 255, expected / expected.sum(), atol=0.003)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_contrast_pulls_every_pixel_towards_its_pictures_own_mean(severity):
    factor = SEVERITY["contrast"][severity - 1]
    batch = np.zeros((2, 4, 4), np.uint8)
    batch[0, :, :2] = 200
    batch[1, 0] = 80
    result = corrupt("contrast", batch, severity, generators(2))
    assert set(result[0].ravel()) == {round(100 - 100 * factor), round(100 + 100 * factor)}
    assert set(result[1].ravel()) == {round(20 - 20 * factor), round(20 + 60 * factor)}


@pytest.mark.parametrize("severity", SEVERITIES)
def test_occlusion_covers_one_square_of_one_gray_and_nothing_else(severity):
    side = SEVERITY["occlusion"][severity - 1]
    pattern = np.indices((28, 28)).sum(axis=0) % 2
    batch = np.repeat((255 * pattern).astype(np.uint8)[None], 50, axis=0)
    result = corrupt("occlusion", batch, severity, generators(50))
    for before, after in zip(batch, result, strict=True):
        rows, columns = np.nonzero(before != after)
        square = after[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        assert square.shape == (side, side)
        assert len(np.unique(square)) == 1
        assert 7 <= (rows.min() + rows.max() + 1) / 2 <= 21
        assert 7 <= (columns.min() + columns.max() + 1) / 2 <= 21


def test_warp_agrees_with_scipy_on_each_picture():
    batch = np.random.default_rng(0).integers(0, 256, (5, 20, 24), dtype=np.uint8)
    rng = np.random.default_rng(1)
    matrices = np.eye(2) + 0.3 * rng.standard_normal((5, 2, 2))
    shifts = rng.standard_normal((5, 2))
    centre = np.array([9.5, 11.5])
    for image, matrix, shift, result in zip(
        batch, matrices, shifts, warp(batch, matrices, shifts), strict=True
    ):
        reference = ndimage.affine_transform(
            image.astype(float),
            matrix,
            offset=centre - matrix @ (centre + shift),
            order=1,
            mode="grid-constant",
        )
        assert np.abs(reference - result).max() <= 0.5 + 1e-6


def test_warp_by_nothing_a_quarter_turn_and_a_whole_pixel_is_exact():
    batch = np.random.default_rng(0).integers(0, 256, (1, 12, 12), dtype=np.uint8)
    still, identity = np.zeros((1, 2)), np.eye(2)[None]
    turn = np.array([[[0.0, 1.0], [-1.0, 0.0]]])
    np.testing.assert_array_equal(warp(batch, identity, still), batch)
    np.testing.assert_array_equal(warp(batch, turn, still)[0], np.rot90(batch[0]))
    moved = warp(batch, identity, np.array([[2.0, -1.0]]))[0]
    np.testing.assert_array_equal(moved[2:, :-1], batch[0, :-2, 1:])
    assert not moved[:2].any()
    assert not moved[:, -1].any()


@pytest.mark.parametrize("severity", SEVERITIES)
def test_affine_moves_and_rescales_a_disc_within_its_limits_and_never_by_nothing(severity):
    _, _, enlargement, shift = SEVERITY["affine"][severity - 1]
    rows, columns = np.mgrid[:41, :41] - 20.0
    disc = np.rint(255 * np.exp(-(rows**2 + columns**2) / 18)).astype(np.uint8)
    batch = np.repeat(disc[None], 60, axis=0)
    result = corrupt("affine", batch, severity, generators(60)).astype(float)
    mass = result.sum(axis=(1, 2))
    for axis in (rows, columns):
        moved = np.abs((result * axis).sum(axis=(1, 2)) / mass)
        assert moved.max() <= shift + 0.1
        assert moved.min() >= shift / 2 - 0.1
    size = np.sqrt(mass / batch[0].sum())
    assert np.abs(np.log(size)).max() <= np.log(1 + enlargement) + 0.03
    assert (size > 1).any() and (size < 1).any()


@pytest.mark.parametrize("severity", SEVERITIES)
def test_affine_turns_a_bar_within_its_largest_rotation_and_shear(severity):
    rotation, shear, _, _ = SEVERITY["affine"][severity - 1]
    rows, columns = np.mgrid[:61, :61] - 30.0
    bar = np.rint(255 * np.exp(-(rows**2) / 200 - columns**2 / 4)).astype(np.uint8)
    batch = np.repeat(bar[None], 80, axis=0)
    result = corrupt("affine", batch, severity, generators(80)).astype(float)
    mass = result.sum(axis=(1, 2))
    y = rows - ((result * rows).sum(axis=(1, 2)) / mass)[:, None, None]
    x = columns - ((result * columns).sum(axis=(1, 2)) / mass)[:, None, None]
    second = [(result * p * q).sum(axis=(1, 2)) / mass for p, q in ((y, y), (x, x), (x, y))]
    turned = np.rad2deg(0.5 * np.arctan2(2 * second[2], second[0] - second[1]))
    largest = rotation + np.rad2deg(np.arctan(shear))
    assert np.abs(turned).max() <= largest + 0.5
    assert np.abs(turned).max() >= 0.7 * largest
    assert (turned > 0).any() and (turned < 0).any()


@pytest.mark.parametrize("severity", SEVERITIES)
def test_background_shows_behind_black_and_not_through_white(severity):
    weight = SEVERITY["background"][severity - 1]
    batch = np.zeros((3, 28, 28), np.uint8)
    batch[1], batch[2] = 255, 51
    flat = np.full((40, 40), 200, np.uint8)
    black, white, gray = CORRUPTIONS["background"](
        batch, severity, generators(3), photographs=[flat]
    )
    assert set(black.ravel()) == {round(weight * 200)}
    assert set(white.ravel()) == {255}
    assert set(gray.ravel()) == {round(51 + 0.8 * weight * 200)}


def test_background_is_a_contiguous_patch_and_uses_every_photograph():
    photographs = [PHOTOGRAPH // 2, np.full((30, 28), 250, np.uint8)]
    black = np.zeros((40, 28, 28), np.uint8)
    result = CORRUPTIONS["background"](black, 5, generators(40), photographs=photographs)
    plain = (result == result[:, :1, :1]).all(axis=(1, 2))
    assert 8 <= plain.sum() <= 32
    scaled = np.rint(SEVERITY["background"][4] * photographs[0])
    windows = np.lib.stride_tricks.sliding_window_view(scaled, (28, 28)).reshape(-1, 28, 28)
    for picture in result[~plain]:
        assert (windows == picture).all(axis=(1, 2)).any()
