"""Where memory runs out, fewer images at a time give the same outputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stamp.core.errors import UserError
from stamp.inference.batch_size import InPieces

IMAGES = torch.arange(37.0)[:, None]


class Small:
    """A device whose memory holds so many images at a time."""

    def __init__(self, most: int):
        self.most, self.tried = most, []

    def __call__(self, images: torch.Tensor) -> np.ndarray:
        self.tried.append(len(images))
        if len(images) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return 2 * images.numpy()


@pytest.mark.parametrize("most", [1, 3, 8, 37, 99])
def test_every_image_has_its_outputs_whatever_fits(most: int) -> None:
    forward = InPieces(Small(most), 32)
    for _ in range(2):
        np.testing.assert_array_equal(forward(IMAGES), 2 * IMAGES.numpy())


def test_the_size_is_halved_until_it_fits_and_stays_there() -> None:
    device = Small(5)
    forward = InPieces(device, 32)
    forward(IMAGES)
    assert device.tried == [32, 16, 8, *[4] * 9, 1]
    device.tried.clear()
    forward(IMAGES[:6])
    assert device.tried == [4, 2]


def test_one_image_that_does_not_fit_is_one_line() -> None:
    device = Small(0)
    with pytest.raises(UserError, match="does not hold one image"):
        InPieces(device, 8)(IMAGES)
    assert device.tried == [8, 4, 2, 1]


def test_other_errors_are_not_tried_again() -> None:
    def broken(images: torch.Tensor) -> np.ndarray:
        raise RuntimeError("a kernel failed")

    with pytest.raises(RuntimeError, match="a kernel failed"):
        InPieces(broken, 8)(IMAGES)
