"""What tables and pages show is plain text: a browser and a spreadsheet run nothing of it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stamp.core import artifacts
from stamp.core.errors import UserError
from stamp.core.shown_text import check, is_formula, why_refused

UNSAFE = [
    "<script>alert(1)</script>",
    "x <img src=x onerror=alert(1)>",
    "</td>",
    "<!-- -->",
    "=cmd|' /C calc'!A0",
    "+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)",
    " =1+1",
    "\uff1d1+1",
    "two\nlines",
    "tab\there",
    "\x1b[31mred",
]
PLAIN = ["ViT-B/16", "Nodule/Mass", "< 40 years", ">=60", "a<5", "-0.5", "+1", "-", "50 %", "A & B"]


@pytest.mark.parametrize("text", UNSAFE)
def test_what_something_would_run_is_refused_and_named(text: str) -> None:
    with pytest.raises(UserError) as caught:
        check(["plain", text], "here")
    assert str(caught.value).startswith("here: ")
    assert "\n" not in str(caught.value) and "\x1b" not in str(caught.value)


@pytest.mark.parametrize("text", PLAIN)
def test_names_that_people_give_are_let_through(text: str) -> None:
    assert why_refused(text) is None


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=6)))
def test_a_csv_holds_no_formula_whatever_the_texts_are(texts: list[str]) -> None:
    """Cells as another reader finds them: no formula, and nothing else changed."""
    table = pl.DataFrame({"text": texts, "number": list(range(len(texts)))})
    table = table.cast({"text": pl.String})
    written = io.StringIO(artifacts.without_formulas(table).write_csv(), newline="")
    found = [row["text"] for row in csv.DictReader(written)]
    assert not any(is_formula(cell) for cell in found)
    assert found == [f"'{text}" if is_formula(text) else text for text in texts]


def test_a_written_table_is_quoted_and_its_numbers_stay(tmp_path: Path) -> None:
    table = pl.DataFrame({"name": ["=1+1", "-3", None], "value": [-1.5, 2.0, 0.0]})
    artifacts.write_table(tmp_path / "t.csv", table, {})
    assert (tmp_path / "t.csv").read_text() == "name,value\n'=1+1,-1.5\n-3,2.0\n,0.0\n"
