"""The shipped tables: each parses, has the rows its index says, and agrees with its captions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

from stamp.core.errors import UserError
from stamp.paper.printed_numbers import number, numbers
from stamp.paper.printed_tables import FOLDER, read, values

ROOT = Path(__file__).resolve().parents[2]
PAPER = read()
INDEX = PAPER.table("index")
WORDS = {
    "dataset", "method", "domain", "benchmark", "shift", "objective", "variant", "target", "metric",
    "in_table_2", "corruption", "group", "architecture", "condition", "family", "regime", "key",
    "where", "claim", "printed", "source_images", "source_labels", "target_images",
    "target_labels", "why", "label_free", "target_free", "architecture_agnostic", "closed_form",
    "linear_passes",
}  # fmt: skip


def test_every_file_is_in_the_index_and_every_entry_has_its_file():
    files = {file.stem for file in FOLDER.glob("*.csv")} - {"index"}
    assert files == set(INDEX["file"])


@pytest.mark.parametrize("name", INDEX["file"])
def test_every_table_has_its_rows_and_its_numbers_can_be_read(name):
    table = PAPER.table(name)
    rows = INDEX.filter(pl.col("file") == name)["rows"][0]
    assert rows is None or table.height == int(rows)
    for column in set(table.columns) - WORDS:
        for text in table[column].drop_nulls():
            assert numbers(text), (name, column, text)


def test_the_twelve_tables_of_the_paper_are_there_in_order():
    printed = [name for name in INDEX["table"] if name.startswith("Table ")]
    assert printed == [f"Table {number}" for number in range(1, 13)]


def test_keys_of_the_text_are_distinct_and_each_says_where_it_stands():
    text = PAPER.table("text")
    assert text["key"].is_unique().all()
    assert text.select("key", "where", "claim", "printed").null_count().sum_horizontal()[0] == 0


def test_the_scores_are_of_the_groups_and_sizes_that_their_headings_say():
    sizes = dict(PAPER.table("stamp_main")["group"].value_counts().iter_rows())
    assert sizes == {
        "CE-Supervised fine-tuned": 31,
        "SSL probes": 5,
        "VL-Contrastive probes": 3,
        "TorchXRayVision models": 4,
        "Radiology foundation model": 1,
    }


def test_columns_agree_with_what_their_captions_say_of_them():
    corruption = values(PAPER.table("corruption")["rho"])
    assert (round(corruption.mean(), 3), corruption.min(), corruption.max()) == (
        0.876,
        0.756,
        0.929,
    )
    delta = values(PAPER.table("temporal_delta")["delta"])
    assert (delta.min(), delta.max()) == (0.110, 0.186)
    averages = PAPER.table("baseline_comparison")
    four = np.stack([values(averages[name]) for name in ("vindr", "chexpert", "rsna", "mimic")])
    assert np.abs(four.mean(axis=0) - values(averages["average"])).max() < 0.001
    scores = values(PAPER.table("stamp_main")["stamp"])
    assert (scores[:31].min(), scores[:31].max()) == (0.7540, 0.8054)


def test_every_printed_interval_holds_its_score():
    for row in PAPER.table("stamp_main").drop_nulls("interval").iter_rows(named=True):
        low, high = numbers(row["interval"])
        assert low.value < number(row["stamp"]).value < high.value, row


def test_regimes_and_names_are_those_of_the_zoo():
    zoo = yaml.safe_load((ROOT / "config" / "zoo" / "medical.yaml").read_text())
    theirs = {entry["label"]: entry["regime"] for entry in zoo.values()}
    assert dict(PAPER.table("regimes").iter_rows()) == theirs
    assert PAPER.table("stamp_main")["architecture"].to_list() == list(theirs)


def test_unknown_tables_keys_and_rows_are_named():
    with pytest.raises(UserError, match="no table 'stamp_mian': did you mean 'stamp_main'"):
        PAPER.table("stamp_mian")
    with pytest.raises(UserError, match=r"text\.csv has no key 'nothing'"):
        PAPER.text("nothing")
    with pytest.raises(UserError, match=r"natural\.csv: 0 rows 'CIFAR'"):
        PAPER.cell("natural", "CIFAR", "rho")


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(UserError, match=r"index\.csv: no such file"):
        read(tmp_path)
