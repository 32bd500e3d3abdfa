"""Names of models as one regular expression."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from stamp.config.wildcards import any_of

NAMES = st.text("ab.-1", min_size=1, max_size=6)


@settings(deadline=None)
@given(st.sets(NAMES, max_size=12), st.lists(NAMES, max_size=20))
def test_an_expression_matches_its_names_and_no_other(names: set[str], others: list[str]) -> None:
    pattern = re.compile(f"x/(?P<model>{any_of(names) or 'none^'})(?P<end>\\.n|)\\.csv")
    for name in names | set(others):
        found = pattern.fullmatch(f"x/{name}.csv")
        plain = name in names or (name.endswith(".n") and name[:-2] in names)
        assert bool(found) == plain
        assert found is None or found["model"] + found["end"] == name


def test_names_that_begin_alike_share_their_beginning() -> None:
    names = [f"resnet-{number}" for number in range(1000)]
    assert any_of(names).count("resnet") == 1
    assert any_of([]) == ""
