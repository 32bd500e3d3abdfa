"""How printed numbers are read, and how a verdict follows from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stamp.paper.claims import (
    DIFFERS,
    IMPOSSIBLE,
    NOT_CHECKABLE,
    REPRODUCED,
    Text,
    measured,
    several,
    stated,
    table,
    unchecked,
)
from stamp.paper.printed_numbers import corners, number, numbers


@pytest.mark.parametrize(
    ("text", "relation", "value", "half"),
    [
        ("0.855", "", 0.855, 0.0005),
        (".855", "", 0.855, 0.0005),
        ("-.242", "", -0.242, 0.0005),
        ("+0.89", "", 0.89, 0.005),
        ("13,302", "", 13302, 0.5),
        ("~3,379", "~", 3379, 0.5),
        ("<10^-10", "<", 1e-10, 5e-11),
        ("1.4x10^-13", "", 1.4e-13, 5e-15),
        (">=0.844", ">=", 0.844, 0.0005),
        ("<=0.027", "<=", 0.027, 0.0005),
    ],
)
def test_a_number_is_read_with_its_relation_and_the_place_of_its_last_digit(
    text, relation, value, half
):
    found = number(text)
    assert found.relation == relation
    assert (found.value, found.half) == pytest.approx((value, half), rel=1e-12)


@pytest.mark.parametrize("text", ["", "five", "10-15%", "[0.1, 0.2]", "0.5 0.6", "---"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(ValueError, match="no printed number"):
        number(text)


def test_intervals_and_lists_are_read_part_by_part():
    assert [each.value for each in numbers("[+0.110, +0.186]")] == [0.110, 0.186]
    assert [each.value for each in numbers("21, 20, 20")] == [21, 20, 20]


@given(st.floats(-5, 5), st.integers(1, 4))
def test_a_number_agrees_with_its_own_rounding_and_not_with_the_next(value, decimals):
    printed = number(f"{value:.{decimals}f}")
    assert printed.agrees(value)
    step = 10.0**-decimals
    assert not printed.agrees(printed.value + step)
    assert not printed.agrees(printed.value - step)


def test_ranges_agree_where_they_share_a_number_and_not_where_they_only_touch():
    printed = number("0.110")
    assert printed.agrees(0.1093, 0.1096)
    assert not printed.agrees(0.1093, 0.1095)
    assert printed.agrees(0.0, 1.0)


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("<0.001", 0.0009, True),
        ("<0.001", 0.0011, False),
        (">0.65", 0.66, True),
        (">0.65", 0.003, False),
        (">=0.844", 0.8436, True),
        (">=0.844", 0.8434, False),
        ("<=0.027", 0.0274, True),
        ("<=0.027", 0.0276, False),
    ],
)
def test_bounds_are_taken_at_their_word(text, value, expected):
    assert number(text).agrees(value) is expected


def test_corners_bound_a_difference_by_both_roundings():
    low, high = corners(lambda a, b: a - b, number("0.9528"), number("0.7764"))
    assert (low, high) == pytest.approx((0.1763, 0.1765))


def test_verdicts_follow_from_the_numbers():
    text = Text("a mean", "Table 1", "0.50")
    assert measured(text, 0.503).verdict == REPRODUCED
    assert measured(text, 0.51).verdict == DIFFERS
    assert measured(text, 0.51, tolerance=0.01).verdict == REPRODUCED
    assert measured(text, 0.503, possible=False).verdict == IMPOSSIBLE
    assert unchecked(text, "not printed").verdict == NOT_CHECKABLE
    assert stated(text, "holds", True).verdict == REPRODUCED
    assert stated(text, "does not", False).verdict == DIFFERS
    both = Text("an interval", "Table 1", "[0.10, 0.20]")
    assert several(both, [0.101, 0.2]).verdict == REPRODUCED
    assert several(both, [0.101, 0.21]).verdict == DIFFERS
    assert several(both, [0.101, 0.21]).recomputed == "[0.101, 0.210]"


def test_an_interval_with_a_part_too_few_is_a_mistake():
    with pytest.raises(ValueError, match="zip"):
        several(Text("an interval", "Table 1", "[0.10, 0.20]"), [0.1])


def test_the_table_has_the_columns_that_readers_were_promised():
    found = table([("scores", measured(Text("a mean", "Table 1", "0.50"), 0.503))])
    assert found.columns[:5] == ["claim", "where", "printed", "recomputed", "verdict"]
    assert found.row(0)[:5] == ("a mean", "Table 1", "0.50", "0.503", REPRODUCED)
