"""Views hold the right images in order, and bad labels or splits are refused by name."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from naming import check_named

from stamp.core.errors import UserError
from stamp.data import views


def index(**extra: list) -> pl.DataFrame:
    n = 6
    base = {
        "image": [f"i{k}" for k in range(n)],
        "path": [f"p{k}.png" for k in range(n)],
        "group": ["g"] * n,
        "order": [None] * n,
        "domain": ["a", "a", "a", "b", "b", "b"],
        "split": ["train", "test", "test", "train", "test", "cal"],
    }
    return views.check_index(pl.DataFrame({**base, **extra}), "d")


def test_a_selection_keeps_the_order_of_the_index() -> None:
    rows = views.select(index(), {"domains": ["b", "a"], "split": "test"}, "here")
    assert rows["image"].to_list() == ["i1", "i2", "i4"]


@pytest.mark.parametrize(
    ("wanted", "parts"),
    [
        ({"domains": ["c"]}, ("domain 'c'", "a, b")),
        ({"split": "tests"}, ("split 'tests'", "did you mean 'test'?")),
    ],
)
def test_an_unknown_domain_or_split_is_refused(wanted: dict, parts: tuple[str, ...]) -> None:
    with pytest.raises(UserError) as caught:
        views.select(index(), wanted, "here")
    check_named(str(caught.value), "here", *parts)


def test_an_image_that_stands_twice_is_refused() -> None:
    with pytest.raises(UserError, match="image 'i0' stands twice"):
        index(image=["i0", "i0", "i2", "i3", "i4", "i5"])


def test_class_labels_out_of_range_name_the_image() -> None:
    rows = index(label=[0, 1, 2, 3, None, 1])
    assert np.isnan(views.labels(rows, "multiclass", ["x", "y", "z", "w"], "d")[4])
    with pytest.raises(UserError, match=r"d: image 'i3'.* 3.* 0 to 2"):
        views.labels(rows, "multiclass", ["x", "y", "z"], "d")


def test_multilabel_values_other_than_0_and_1_name_image_and_class() -> None:
    rows = index(x=[0, 1, None, 0, 1, 0], y=[0, 1, 0, 0, -1, 0])
    with pytest.raises(UserError, match=r"image 'i4': y .*-1.* 0 to 1"):
        views.labels(rows, "multilabel", ["x", "y"], "d")


def test_a_missing_label_column_is_suggested() -> None:
    with pytest.raises(UserError, match=r"no label column 'Edema': did you mean 'edema'"):
        views.labels(index(edema=[0] * 6), "multilabel", ["Edema"], "d")
