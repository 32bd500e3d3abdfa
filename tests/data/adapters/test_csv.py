"""A user's own table becomes the index, and each mistake in it is one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from naming import check_named

from stamp.config.contents import fingerprints as fingerprint
from stamp.core.errors import UserError
from stamp.data.adapters import csv
from stamp.data.pairs import consecutive
from stamp.data.splits import drawn
from stamp.data.views import check_index, keep

ROWS = """file,patient,date,hospital,Edema,Mass,age
a/1.png,p1,2024-03-01,north,0,1,61
a/2.png,p1,2023-12-24,north,1,,61
a/3.png,p2,2024-01-01,south,0,0,33.5
a/4.png,p1,2024-03-01,north,0,1,61
"""


def write(folder: Path, text: str = ROWS, name: str = "table.csv") -> Path:
    (folder / name).write_text(text)
    return folder


def index(folder: Path, seed: int = 0, **options: Any) -> pl.DataFrame:
    return check_index(csv.index(options, folder, seed), "mine")


def mistake(folder: Path, **options: Any) -> str:
    with pytest.raises(UserError) as caught:
        csv.index(options, folder, 0)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_dates_become_places_within_a_group_and_equal_dates_are_one_visit(tmp_path: Path) -> None:
    found = index(write(tmp_path), domain="hospital")
    assert found["image"].to_list() == ["a/1.png", "a/2.png", "a/3.png", "a/4.png"]
    assert found["path"].to_list() == [str(tmp_path / name) for name in found["image"]]
    assert found["group"].to_list() == ["p1", "p1", "p2", "p1"]
    assert found["order"].to_list() == [1, 0, 0, 1]
    assert found["domain"].to_list() == ["north", "north", "south", "north"]
    assert consecutive(found)["a"].to_list() == ["a/2.png", "a/1.png"]


def test_columns_of_zero_and_one_are_classes_and_others_are_kept(tmp_path: Path) -> None:
    found = index(write(tmp_path))
    assert found["Edema"].to_list() == [0, 1, 0, 0]
    assert found["Mass"].to_list() == [1, None, 0, 1]
    assert found["Mass"].dtype == pl.Int8
    assert found["age"].to_list() == [61, 61, 33.5, 61]
    assert found["hospital"].to_list()[2] == "south"
    assert "label" not in found.columns


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["10", "9", "2.5"], [2, 1, 0]),
        (["2024-03-31", "2024-03-31T10:00", "2024-01-01"], [1, 2, 0]),
        (["2024-01-01T10:00+02:00", "2024-01-01T09:00+00:00", ""], [0, 1, None]),
        (["20240331", "20231224", "20240101"], [2, 0, 1]),
    ],
)
def test_numbers_and_iso_dates_are_ordered_as_what_they_are(
    tmp_path: Path, texts: list[str], expected: list[int | None]
) -> None:
    rows = "".join(f"{n}.png,p,{text},1\n" for n, text in enumerate(texts))
    assert index(write(tmp_path, "file,patient,date,A\n" + rows))["order"].to_list() == expected


@pytest.mark.parametrize("bad", ["31.03.2024", "03/31/2024", "yesterday", "7"])
def test_a_date_that_can_not_be_read_is_named_with_its_row(tmp_path: Path, bad: str) -> None:
    write(tmp_path, f"file,patient,date\n1.png,p,2024-01-01\n2.png,p,{bad}\n")
    line = mistake(tmp_path)
    assert "'date' of 1 rows is neither a number nor an ISO date like 2024-03-31" in line
    assert line.endswith(f"first row 3: '{bad}'")


@pytest.mark.parametrize(
    ("name", "mark"), [("t.csv", ";"), ("t.tsv", "\t"), ("t.txt", "|"), ("t.csv", ",")]
)
def test_the_delimiter_is_the_one_that_the_header_has(tmp_path: Path, name: str, mark: str) -> None:
    plain = index(write(tmp_path))
    other = index(write(tmp_path, "\ufeff" + ROWS.replace(",", mark), name), table=name)
    assert other.equals(plain)


def test_a_parquet_table_with_real_types_gives_the_same_index(tmp_path: Path) -> None:
    plain = index(write(tmp_path))
    typed = pl.read_csv(tmp_path / "table.csv", try_parse_dates=True).with_columns(
        pl.col("Edema").cast(pl.Boolean)
    )
    assert typed["date"].dtype == pl.Date
    typed.write_parquet(tmp_path / "t.parquet")
    assert index(tmp_path, table="t.parquet").equals(plain)


def test_class_names_are_numbered_as_the_options_say_or_in_sorted_order(tmp_path: Path) -> None:
    write(tmp_path, "file,label\n1.png,dog\n2.png,cat\n3.png,\n4.png,dog\n")
    found = index(tmp_path)
    assert found["label"].to_list() == [1, 0, None, 1]
    assert found["class"].to_list() == ["dog", "cat", None, "dog"]
    assert found["group"].to_list() == ["dog", "cat", "3.png", "dog"]
    turned = index(tmp_path, classes=["dog", "cat", "cow"])
    assert turned["label"].to_list() == [0, 1, None, 0]
    assert mistake(tmp_path, classes=["dig", "cat"]).endswith("did you mean 'dig'?")


def test_class_numbers_stay_and_get_their_names(tmp_path: Path) -> None:
    write(tmp_path, "file,label\n1.png,1\n2.png,0\n")
    assert index(tmp_path)["label"].to_list() == [1, 0]
    assert index(tmp_path)["class"].to_list() == [None, None]
    assert index(tmp_path, classes=["cat", "dog"])["class"].to_list() == ["dog", "cat"]
    assert index(tmp_path, classes=["1", "0"])["label"].to_list() == [0, 1]  # names come first
    line = mistake(tmp_path, classes=["cat"])
    check_named(line, "class number 1", "row 2", "1 classes")


def test_a_study_with_its_classes_in_another_order_is_refused(tmp_path: Path) -> None:
    found = index(write(tmp_path, "file,label\n1.png,dog\n2.png,cat\n"))
    assert keep(found, "multiclass", ["cat", "dog"], "here").height == 2
    with pytest.raises(UserError, match=r"'1.png' is of class 'dog', number 1 .* is 'cat' in the"):
        keep(found, "multiclass", ["dog", "cat"], "here")


def test_labels_may_be_renamed_or_named(tmp_path: Path) -> None:
    write(tmp_path)
    found = index(tmp_path, labels={"Oedema": "Edema"})
    assert found["Oedema"].to_list() == [0, 1, 0, 0]
    assert "Edema" not in found.columns
    assert found["Mass"].to_list() == [1, None, 0, 1]  # a further column like any other
    line = mistake(tmp_path, labels=["Edema", "age"])
    check_named(line, "'age'", "'61'", "4 rows", "row 2", "expected 0, 1")


def test_a_missing_column_is_suggested(tmp_path: Path) -> None:
    write(tmp_path)
    line = mistake(tmp_path, group="patients")
    what = (f"{tmp_path}/table.csv", "'patients'", "option 'group'", "did you mean 'patient'?")
    check_named(line, *what)
    assert mistake(tmp_path, labels=["Edma"]).endswith("did you mean 'Edema'?")
    assert mistake(tmp_path, grup="patient").endswith("did you mean 'group'?")
    write(tmp_path, "picture,x\n1.png,1\n", "other.csv")
    check_named(mistake(tmp_path, table="other.csv"), "other.csv", "--option 'image=NAME'")


def test_columns_are_found_by_their_usual_names_however_they_are_written(tmp_path: Path) -> None:
    header = "Filename,Patient ID,Study Date,hospital,Edema,Mass,age"
    write(tmp_path, ROWS.replace(ROWS.partition("\n")[0], header))
    plain = tmp_path / "plain"
    plain.mkdir()
    assert index(tmp_path)["group"].to_list() == ["p1", "p1", "p2", "p1"]
    assert index(tmp_path)["order"].to_list() == index(write(plain))["order"].to_list()
    roles = csv.roles({}, tmp_path)
    assert (roles["image"], roles["group"]) == ("Filename", "Patient ID")
    write(tmp_path, ROWS.replace("hospital", "Patient"))  # `patient` is written as it should be
    assert csv.roles({}, tmp_path)["group"] == "patient"


def spoilt(cells: list[str]) -> str:
    """A table of two classes in which these are the cells of the second."""
    rows = [f"{number}.png,p,{number % 2},{cell}" for number, cell in enumerate(cells)]
    return "\n".join(["file,patient,Edema,Mass", *rows])


@pytest.mark.parametrize("cell", ["NA", "n/a", "NaN", "null", "-1", "-1.0", "O", "yes"])
def test_a_class_does_not_get_lost_by_one_cell(tmp_path: Path, cell: str) -> None:
    """One NA dropped the class without a word: STAMP was then of the other classes."""
    write(tmp_path, spoilt(["0", "1"] * 6 + [cell, "", "0"]))
    line = mistake(tmp_path)
    assert f"column 'Mass' is 0 or 1 but for '{cell}' in 1 rows, first row 14" in line
    assert "'labels'" in line
    assert "Mass" in index(tmp_path, labels=["Edema"]).columns  # by name: no label


@pytest.mark.parametrize(
    "cells",
    [
        ["0", "1", "2", "3"] * 4,  # a count
        ["0", "1", "north", "south"] * 4,
        ["0.2", "0.9", "1", "0"] * 4,
        ["NA"] * 16,
    ],
)
def test_a_column_that_is_no_label_is_kept_as_it_is(tmp_path: Path, cells: list[str]) -> None:
    found = index(write(tmp_path, spoilt(cells)))
    values = found["Mass"].to_list()
    assert values == [type(value)(cell) for value, cell in zip(values, cells, strict=True)]
    assert found["Edema"].dtype == pl.Int8 and found["Mass"].dtype != pl.Int8


def test_an_unknown_label_is_no_class_of_its_own(tmp_path: Path) -> None:
    text = "file,label\n" + "".join(
        f"{k}.png,{one}\n" for k, one in enumerate(["cat", "dog", "NA"])
    )
    line = mistake(write(tmp_path, text))
    assert "label 'NA' in row 4" in line and "'classes'" in line
    found = index(tmp_path, classes=["NA", "cat", "dog"])
    assert found["label"].to_list() == [1, 2, 0]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("file,A\n1.png,0\n1.png,1\n", ("image '1.png'", "2 and 3")),
        ("file,A\n,0\n1.png,1\n", ("1 of 2 rows", "no image", "column 'file'", "row 2")),
        ("file,patient\n1.png,p\n2.png,\n", ("1 of 2 rows", "no group", "column 'patient'")),
        ("file,A,A\n1.png,0,1\n", ("column 'A'", "twice")),
        ("file,A\n", ("no row",)),
        ("", ("can't be read",)),
    ],
)
def test_a_broken_table_is_one_line(tmp_path: Path, text: str, parts: tuple[str, ...]) -> None:
    check_named(mistake(write(tmp_path, text)), "table.csv", *parts)


def test_empty_rows_are_passed_over_and_rows_keep_their_numbers(tmp_path: Path) -> None:
    write(tmp_path, "file,A\n\n1.png,0\n,\n2.png,1\n\n\n")
    assert index(tmp_path)["image"].to_list() == ["1.png", "2.png"]
    write(tmp_path, "file,patient\n1.png,p\n,\n2.png,\n")
    assert mistake(tmp_path).endswith("first row 4")


def test_a_table_that_is_not_there_says_where_to_put_it(tmp_path: Path) -> None:
    check_named(mistake(tmp_path), f"{tmp_path}/table.csv", "no such table")


def test_splits_are_drawn_by_group_and_a_longer_table_moves_nobody(tmp_path: Path) -> None:
    rows = [f"{n}.png,p{n % 400}" for n in range(2000)]
    shares = {"train": 0.5, "calibration": 0.2, "test": 0.3}
    found = index(write(tmp_path, "\n".join(["file,patient", *rows])), seed=4, splits=shares)
    by_group = found.group_by("group").agg(pl.col("split").n_unique())
    assert by_group["split"].max() == 1
    counts = dict(found.group_by("split").len().iter_rows())
    for name, share in shares.items():  # 400 groups: five standard errors of a share
        assert abs(counts[name] / 2000 - share) < 5 * (share * (1 - share) / 400) ** 0.5
    longer = index(
        write(tmp_path, "\n".join(["file,patient", "new.png,new", *rows])), seed=4, splits=shares
    )
    assert longer["split"].to_list()[1:] == found["split"].to_list()
    assert index(tmp_path, seed=5, splits=shares)["split"].to_list() != longer["split"].to_list()


def test_classes_as_groups_are_split_by_image_unless_a_unit_is_named(tmp_path: Path) -> None:
    rows = [f"{n}.png,{'ab'[n % 2]},p{n % 50}" for n in range(200)]
    write(tmp_path, "\n".join(["file,label,person", *rows]))
    found = index(tmp_path)
    assert found.group_by("group").agg(pl.col("split").n_unique())["split"].to_list() == [2, 2]
    whole = index(tmp_path, unit="person")
    assert whole.group_by("person").agg(pl.col("split").n_unique())["split"].max() == 1


@pytest.mark.parametrize(
    ("shares", "line"),
    [
        ({"train": 0.5, "test": 0.4}, "sum to 0.9, not to 1"),
        ({"train": 1.5, "test": -0.5}, "the share of 'train' is 1.5"),
        (["train"], "expected shares"),
    ],
)
def test_shares_that_are_none_are_refused(tmp_path: Path, shares: Any, line: str) -> None:
    assert line in mistake(write(tmp_path), splits=shares)


def test_a_split_column_is_taken_as_it_is_and_excludes_shares(tmp_path: Path) -> None:
    write(tmp_path, "file,split,part\n1.png,test,x\n2.png,train,y\n")
    assert index(tmp_path)["split"].to_list() == ["test", "train"]
    assert index(tmp_path, split="part")["split"].to_list() == ["x", "y"]
    assert set(index(tmp_path, splits={"z": 1})["split"]) == {"z"}
    assert mistake(tmp_path, split="part", splits={"z": 1}).endswith("exclude each other")


def test_the_last_split_takes_what_rounding_leaves() -> None:
    units = pl.Series([f"u{n}" for n in range(5000)])
    found = drawn(units, {"a": 0.1, "b": 0.2, "c": 0.7}, 1)
    assert found.null_count() == 0
    assert set(found) == {"a", "b", "c"}


def test_an_edited_table_or_image_has_another_digest_and_a_touched_table_has_not(
    tmp_path: Path,
) -> None:
    import os

    write(tmp_path)
    (tmp_path / "a").mkdir()
    for number in range(1, 5):
        (tmp_path / "a" / f"{number}.png").write_bytes(b"x")

    def digests() -> tuple[str | None, str | None]:
        fingerprint._index.cache_clear()
        fingerprint._images.cache_clear()
        table = fingerprint.of_index("csv", {}, str(tmp_path))
        return table, fingerprint.of_images("csv", {}, str(tmp_path), tmp_path / "record.json")

    first = digests()
    os.utime(tmp_path / "table.csv", (1, 1))
    assert digests() == first
    (tmp_path / "a" / "2.png").write_bytes(b"y" * 2)
    assert digests()[0] == first[0] and digests()[1] != first[1]
    write(tmp_path, ROWS.replace("61", "62"))
    assert digests()[0] != first[0]
    (tmp_path / "table.csv").unlink()
    assert digests()[0] != first[0] and digests()[1] == "unreadable"
    assert fingerprint.of_index("phantom", {}, "nowhere") is None


def test_the_standard_librarys_csv_is_still_itself() -> None:
    import csv as standard

    assert hasattr(standard, "DictReader") and not hasattr(csv, "DictReader")
