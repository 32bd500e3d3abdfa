"""The source view: pool first, then calibration images that are not in it."""

from __future__ import annotations

import polars as pl
import pytest

from stamp.core.errors import UserError
from stamp.data import source_view

ROWS = pl.DataFrame(
    {
        "image": [f"i{k}" for k in range(6)],
        "split": ["train", "test", "test", "train", "test", "cal"],
    }
)


def test_the_source_view_has_pool_then_calibration_and_refuses_an_overlap() -> None:
    calibration = ROWS.filter(pl.col("split") == "cal")
    view = source_view.with_roles(ROWS, ["i4", "i1"], calibration, "here")
    assert view.select("image", "role").rows() == [
        ("i4", "pool"),
        ("i1", "pool"),
        ("i5", "calibration"),
    ]
    with pytest.raises(UserError, match="image 'i5' is in the calibration split and in the pool"):
        source_view.with_roles(ROWS, ["i5", "i1"], calibration, "here")


def test_too_few_calibration_images_are_an_error_not_a_smaller_sample() -> None:
    with pytest.raises(UserError, match="6 calibration images are there, 7 were asked for"):
        source_view.calibration_rows(ROWS, 7, 0, "here")
    chosen = source_view.calibration_rows(ROWS, 3, 0, "here")
    shuffled = source_view.calibration_rows(ROWS.reverse(), 3, 0, "here")
    assert chosen["image"].to_list() == shuffled["image"].to_list()
