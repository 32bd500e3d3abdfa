"""Sums of metrics over the models of a study."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import zscore

from stamp.config.registries.metrics import METRICS
from stamp.metrics.sums import FEW, with_sums
from stamp.metrics.value import COLUMNS

PARTS = next(one.sum_of for one in METRICS if one.name == "topogeo")


def table(values: dict[str, list[float | None]]) -> pl.DataFrame:
    rows = [
        {"model": f"m{at}", "metric": name, "value": value, "n": 9}
        | ({"reason": "no head"} if value is None else {})
        for name, each in values.items()
        for at, value in enumerate(each)
    ]
    return pl.DataFrame(rows, schema={"model": pl.String, **COLUMNS})


def sums(found: pl.DataFrame) -> list[float | None]:
    return found.filter(metric="topogeo").sort("model")["value"].to_list()


def test_a_sum_is_the_mean_z_score_of_its_parts_each_in_its_direction() -> None:
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=6).tolist() for name in PARTS}
    signs = {"laplacian_logdet": -1, "ollivier_ricci": 1, "persistence_h0": -1}
    expected = sum(signs[name] * zscore(values[name]) for name in PARTS) / 3
    found = with_sums(table(values | {"entropy": [0.0] * 6}))
    assert sums(found) == pytest.approx(expected)
    assert found.filter(pl.col("metric") != "topogeo").height == 24


def test_a_model_without_a_part_has_no_sum_and_does_not_count_in_those_of_others() -> None:
    values: dict[str, list[float | None]] = {name: [1.0, 2.0, 4.0, 9.0] for name in PARTS}
    values["ollivier_ricci"][3] = None
    found = with_sums(table(values))
    three = {name: each[:3] for name, each in values.items()}
    assert sums(found)[:3] == pytest.approx(sums(with_sums(table(three))))
    last = found.filter(metric="topogeo", model="m3").row(0, named=True)
    assert last["value"] is None and last["reason"] == "no head"


def test_there_is_no_sum_where_a_part_is_the_same_for_all_or_was_not_asked_for() -> None:
    values: dict[str, list[float | None]] = {name: [1.0, 2.0] for name in PARTS}
    same = with_sums(table(values | {"persistence_h0": [3.0, 3.0]}))
    assert sums(same) == [None, None]
    assert set(same.filter(metric="topogeo")["reason"]) == {FEW}
    assert sums(with_sums(table({name: values[name] for name in PARTS[:2]}))) == []
    assert with_sums(table({})).is_empty()
