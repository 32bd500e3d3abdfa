"""Dollar Street's tables become an index with sets of classes and strata of income."""

from __future__ import annotations

import ast
import csv
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from official import dollar_street as official
from PIL import Image

from stamp.core.errors import UserError
from stamp.data.adapters import dollar_street
from stamp.data.archives import unpack
from stamp.data.download import absent
from stamp.data.views import check_index
from stamp.images.reading import open_image

IMAGES, SEED, SIZE = 84, 5, 24
HEADER = (*official.COLUMNS, *official.LABELS)
TEST = "images_v2_imagenet_test.csv"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("dollar_street")
    official.make(root, IMAGES, SEED, SIZE)
    return root


def index(root: Path, **options: Any) -> pl.DataFrame:
    return check_index(dollar_street.index(options, root, 0), "dollar_street")


def refused(root: Path, **options: Any) -> str:
    with pytest.raises(UserError) as error:
        index(root, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def rows(root: Path, name: str = TEST) -> dict[str, dict[str, str]]:
    with open(root / "dataset_dollarstreet" / name, newline="", encoding="utf-8") as opened:
        return {row["id"]: row for row in csv.DictReader(opened)}


def table(root: Path, *, name: str = TEST, **columns: list[Any]) -> Path:
    """A table whose rows differ in the given columns only."""
    count = len(next(iter(columns.values())))
    fixed = {
        "id": [f"{k:024x}" for k in range(count)],
        "country.name": ["Haiti"] * count,
        "country.id": ["ht"] * count,
        "region.id": ["am"] * count,
        "type": ["image"] * count,
        "imageRelPath": [f"assets/{k}.jpg" for k in range(count)],
        "topics": ["['stove/hob']"] * count,
        "place": ["home"] * count,
        "income": [100 + k for k in range(count)],
        "imagenet_synonyms": ["['stove']"] * count,
        "imagenet_sysnet_id": ["[827]"] * count,
    }
    both = fixed | columns
    lines = [list(row) for row in zip(*(both[key] for key in HEADER), strict=True)]
    official.write(root / "dataset_dollarstreet" / name, HEADER, lines)
    return root


@pytest.mark.parametrize("part", ["test", "train"])
def test_accepted_is_the_tables_list_and_label_its_first(part: str, made: Path) -> None:
    found = index(made, table=part)
    written = rows(made, f"images_v2_imagenet_{part}.csv")
    expected = {name: ast.literal_eval(row["imagenet_sysnet_id"]) for name, row in written.items()}
    assert dict(found.select("image", "accepted").iter_rows()) == expected
    assert {len(numbers) for numbers in expected.values()} == {1, 2, 3, 4}
    assert found["label"].to_list() == [numbers[0] for numbers in found["accepted"].to_list()]
    assert found["accepted"].dtype == pl.List(pl.Int16)
    assert found["label"].dtype == pl.Int16
    assert found["split"].unique().to_list() == [part]


def test_the_columns_are_those_of_an_index(made: Path) -> None:
    found, written = index(made), rows(made)
    assert found["image"].to_list() == sorted(written)
    assert absent(found["path"].to_list()) == []
    assert found["order"].null_count() == len(found)
    assert found["income"].dtype == pl.Float64
    for row in found.iter_rows(named=True):
        line = written[row["image"]]
        assert row["path"] == str(made / "dataset_dollarstreet" / line["imageRelPath"])
        assert row["group"] == ", ".join(ast.literal_eval(line["topics"]))
        assert row["income"] == float(line["income"])
        assert row["country"] == line["country.name"]
        assert row["region"] == line["region.id"]
        assert row["place"] == line["place"]
    assert {"children's bed", "everyday shoes, shoes"} <= set(found["group"])


def test_all_is_the_table_of_all_images_with_the_lists_of_the_others(made: Path) -> None:
    parts = pl.concat([index(made, table=part) for part in ("train", "test")]).sort("image")
    found = index(made, table="all")
    assert found.drop("domain").equals(parts.drop("domain"))
    every = index(made, table="all", only_labeled=False)
    assert len(every) == IMAGES
    other = every.filter(pl.col("accepted").is_null())
    assert set(other["group"]) == {"family snapshots"}
    assert len(other) == IMAGES // len(official.TOPICS)
    for name in ("label", "split"):
        assert other[name].null_count() == len(other)
    assert every.filter(pl.col("accepted").is_not_null()).equals(found)


def test_an_image_in_both_parts_is_refused(made: Path, tmp_path: Path) -> None:
    home = tmp_path / "dataset_dollarstreet"
    home.mkdir()
    for name in dollar_street.TABLES.values():
        shutil.copy(made / "dataset_dollarstreet" / name, home / name)
    shutil.copy(home / TEST, home / "images_v2_imagenet_train.csv")
    assert "stands twice in the tables of parts" in refused(tmp_path, table="all")


def test_quartiles_split_the_images_into_four_by_income(tmp_path: Path) -> None:
    """With 8 k + 1 distinct incomes the quartiles are incomes themselves: ties go down."""
    income = np.random.default_rng(1).permutation(17) * 10.0
    found = index(table(tmp_path, income=list(income)))
    strata = dict(found.select("income", "domain").iter_rows())
    expected = {10.0 * k: f"income-{1 + (k > 4) + (k > 8) + (k > 12)}" for k in range(17)}
    assert strata == expected


def test_the_median_splits_the_images_in_two(tmp_path: Path) -> None:
    found = index(table(tmp_path, income=[1, 2, 3, 4, 5]), strata="median")
    assert found["domain"].to_list() == ["income-1"] * 3 + ["income-2"] * 2


def test_given_bounds_are_the_bounds(tmp_path: Path) -> None:
    """The published strata of the test table: up to 200, 684, 1,997 dollars, and above."""
    income = [26, 200, 200.001, 684, 685, 1997, 1997.5, 19671]
    found = index(table(tmp_path, income=income), strata=[200, 684, 1997])
    assert found["domain"].to_list() == [f"income-{k}" for k in (1, 1, 2, 2, 3, 3, 4, 4)]


@given(
    income=st.lists(st.integers(1, 40).map(float), min_size=1, max_size=60),
    strata=st.sampled_from(["quartiles", "median"]),
)
def test_strata_are_counts_of_the_bounds_below_and_bounds_are_quantiles(
    income: list[float], strata: str
) -> None:
    values = np.array(income)
    at = dollar_street.bounds(values, strata, Path("table"))
    names = dollar_street._stratum(values, at).to_list()
    assert names == [f"income-{1 + sum(value > bound for bound in at)}" for value in income]
    for place, bound in enumerate(at, start=1):
        rank = place * (len(values) - 1) / (len(at) + 1)
        assert np.sum(values <= bound) >= math.floor(rank) + 1
        assert np.sum(values < bound) <= math.ceil(rank)


def test_an_image_without_an_income_has_no_domain_and_moves_no_bound(tmp_path: Path) -> None:
    found = index(table(tmp_path, income=[1, 2, "", 3, 4, "nan"]))
    assert found["domain"].to_list() == ["income-1", "income-2", None, "income-3", "income-4", None]
    assert found["income"].to_list() == [1, 2, None, 3, 4, None]


def test_images_left_out_do_not_move_the_bounds(tmp_path: Path) -> None:
    numbers = ["[1]", "[]", "[1]", "", "[1]"]
    root = table(tmp_path, income=[1, 2, 3, 40, 50], imagenet_sysnet_id=numbers)
    found = index(root, strata="median")
    assert found.select("income", "domain").rows() == [
        (1.0, "income-1"),
        (3.0, "income-1"),
        (50.0, "income-2"),
    ]
    assert len(index(root, only_labeled=False)) == 5


def test_without_any_income_the_strata_are_refused(tmp_path: Path) -> None:
    root = table(tmp_path, income=["", "nan"])
    assert "no image has an income; set 'domain: region'" in refused(root)
    assert index(root, domain="region")["domain"].to_list() == ["region-am"] * 2


def test_regions_can_be_the_domains(made: Path) -> None:
    found = index(made, domain="region")
    expected = {name: f"region-{row['region.id']}" for name, row in rows(made).items()}
    assert dict(found.select("image", "domain").iter_rows()) == expected
    assert len(set(expected.values())) == 4


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("[620, 681]", [620, 681]),
        ("[681,620]", [681, 620]),
        (" [ 7 ] ", [7]),
        ("[999, 0,]", [999, 0]),
        ("[5, 3, 5]", [5, 3]),
        ("[]", None),
        ("[ ]", None),
        ("", None),
    ],
)
def test_list_literals_are_read(text: str, numbers: list[int] | None, tmp_path: Path) -> None:
    root = table(tmp_path, imagenet_sysnet_id=[text, "[1]"])
    assert index(root, only_labeled=False)["accepted"].to_list() == [numbers, [1]]


@given(st.lists(st.lists(st.integers(0, 999), max_size=6), min_size=1, max_size=20))
def test_lists_are_read_as_python_reads_them(lists: list[list[int]]) -> None:
    texts = pl.Series([repr(numbers) for numbers in lists])
    names = pl.Series([str(place) for place in range(len(lists))])
    found = dollar_street.numbers(texts, names, Path("table")).to_list()
    assert found == [list(dict.fromkeys(ast.literal_eval(text))) or None for text in texts]


@pytest.mark.parametrize(
    "text",
    ["[1000]", "[-1]", "[1.5]", "620", "['620']", "[1 2]", "[1,,2]", "__import__('os')", "[9" * 30],
)
def test_what_is_no_list_of_class_numbers_is_refused(text: str, tmp_path: Path) -> None:
    root = table(tmp_path, imagenet_sysnet_id=["[1]", text])
    said = refused(root)
    assert f"{TEST}: imagenet_sysnet_id of image '{1:024x}' is '{text}'" in said
    assert "expected a list of class numbers from 0 to 999" in said


def test_a_number_that_is_too_long_is_refused(tmp_path: Path) -> None:
    assert "from 0 to 999" in refused(table(tmp_path, imagenet_sysnet_id=[f"[{10**30}]"]))


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("['stove/hob']", "stove/hob"),
        ("['shoes', 'everyday shoes']", "shoes, everyday shoes"),
        ("[\"children's bed\", 'bed']", "children's bed, bed"),
        ("stove", "stove"),
        ("", None),
    ],
)
def test_the_group_is_the_text_of_the_topics(text: str, group: str | None, tmp_path: Path) -> None:
    assert index(table(tmp_path, topics=[text]))["group"].to_list() == [group]


def test_mistakes_in_a_table_are_named(tmp_path: Path) -> None:
    cases = {
        "income": (["1", "much"], "the income of image '000000000000000000000001' is 'much'"),
        "region.id": (["af", "xx"], "is 'xx'; expected one of: af, am, as, eu"),
        "imageRelPath": (["a.jpg", ""], "a row has no imageRelPath"),
        "id": (["a", "a"], "image 'a' stands twice"),
    }
    for place, (column, (values, said)) in enumerate(cases.items()):
        assert said in refused(table(tmp_path / str(place), **{column: values}))
    assert "is 'inf'" in refused(table(tmp_path / "inf", income=["inf"]))


def test_a_missing_column_or_table_is_named(made: Path, tmp_path: Path) -> None:
    home = tmp_path / "dataset_dollarstreet"
    home.mkdir()
    assert f"{home / TEST}: no such file; Dollar Street is on Kaggle" in refused(tmp_path)
    text = (made / "dataset_dollarstreet" / TEST).read_text()
    (home / TEST).write_text(text.replace("imagenet_sysnet_id", "imagenet_synset_id"))
    said = refused(tmp_path)
    assert "no column 'imagenet_sysnet_id': did you mean 'imagenet_synset_id'?" in said


def test_the_folder_may_be_the_unpacked_one_itself(made: Path) -> None:
    assert index(made / "dataset_dollarstreet").equals(index(made))


def test_options_are_checked(made: Path) -> None:
    assert "unknown option 'tables'" in refused(made, tables="all")
    assert "option 'table': unknown value 'val'" in refused(made, table="val")
    assert "option 'domain': unknown value 'country'" in refused(made, domain="country")
    assert "expected true or false" in refused(made, only_labeled=1)
    assert "option 'strata': unknown value 'quintiles'" in refused(made, strata="quintiles")
    for strata in ([], [2, 1], [1, 1], ["1"], [True], [1, float("nan")], [float("inf")]):
        assert "or a list of rising incomes" in refused(made, strata=strata)


def test_pictures_with_four_channels_and_in_gray_open_in_colour(made: Path) -> None:
    kinds = set()
    for path in index(made, table="all")["path"]:
        with Image.open(path) as opened:
            kinds.add((opened.format, opened.mode))
        picture = open_image(path, 3)
        assert (picture.mode, min(picture.size)) == ("RGB", SIZE)
    assert kinds == {("JPEG", "RGB"), ("JPEG", "L"), ("PNG", "RGBA")}


def test_kaggles_archive_unpacks_to_the_same_index(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "served")
    (archive,) = official.archives(tmp_path / "served")
    assert archive.name == "the-dollar-street-dataset.zip"
    unpack(archive, tmp_path / "out")
    after = index(tmp_path / "out")
    assert after.drop("path").equals(index(made).drop("path"))
    assert absent(after["path"].to_list()) == []
