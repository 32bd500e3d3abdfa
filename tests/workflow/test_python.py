"""The functions for use from Python give the numbers that the workflow wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from project import DIGITS, PHANTOM, Project

import stamp
from stamp.core.artifacts import read_arrays, read_json, read_table
from stamp.data.views import label_columns
from stamp.inference.outputs import Outputs, read_outputs

COMPARED = ("stamp", "low", "high", "within", "total", "sampled_stamp", "se_bootstrap")


def on_index(pool: Outputs, index: pl.DataFrame) -> np.ndarray:
    """A model's logits on all images of an index; NaN where the workflow needed none."""
    place = {image: row for row, image in enumerate(index["image"])}
    found = np.full((len(index), pool.logits.shape[1]), np.nan)
    found[[place[image] for image in pool.rows["image"]]] = pool.logits
    return found


@pytest.mark.parametrize(
    ("name", "study", "rows"),
    [
        ("small_digits", DIGITS, {"split": "test"}),
        ("small_phantom", PHANTOM, {"split": "test", "domain": "home"}),
    ],
)
def test_scores_temperatures_and_ranks_are_those_of_the_workflow(
    finished: Project, name: str, study: dict[str, Any], rows: dict[str, str]
) -> None:
    dataset, task, classes = study["source"]["dataset"], study["task"], study["classes"]
    index = read_table(finished.result(f"datasets/{dataset}/index.parquet"))
    index = index.filter(pl.col(key) == value for key, value in rows.items())
    labels = index.select(pl.col(label_columns(task, classes)).cast(pl.Float64)).to_numpy()
    images = stamp.Images(
        groups=index["group"].to_list(),
        visits=index["order"].to_numpy() if index["order"].is_not_null().all() else None,
        labels=labels[:, 0] if task == "multiclass" else labels,
        ids=index["image"].to_list(),
    )
    view, scored = finished.result(f"{name}/views/source.parquet"), {}
    for file in sorted(finished.result(f"{name}/logits/source").glob("*.safetensors")):
        model = file.stem
        outputs = read_outputs(view, file, model)
        held_out = outputs.only("calibration")
        truth = held_out.rows.select(label_columns(task, classes)).to_numpy().astype(float)
        temperature = stamp.fit_temperature(held_out.logits, truth.squeeze(), task)
        record = read_json(finished.result(f"{name}/calibration/{model}.json"))
        assert temperature.value == pytest.approx(record["value"], rel=1e-9)
        fitted = temperature.value if study["calibration"].get("scale") else 1.0
        how = stamp.Settings(
            task=task,
            temperature=fitted,
            max_pairs=study["pairs"]["max_pairs"],
            n_pairs=study["pairs"].get("n_pairs"),
            resamples=study["statistics"]["resamples"],
            seed=3,
        )
        scored[model] = stamp.score(on_index(outputs.only("pool"), index), images, how)
        row = read_table(finished.result(f"{name}/scores/{model}.parquet")).row(0, named=True)
        assert scored[model].kind == row["kind"]
        for part in COMPARED:
            same = pytest.approx(row[part], rel=1e-9)  # sums in another order on other threads
            assert getattr(scored[model].score, part) == same, (model, part)
        draws = read_arrays(finished.result(f"{name}/scores/{model}.draws.safetensors"))["stamp"]
        np.testing.assert_allclose(scored[model].score.draws, draws, rtol=1e-9)
    ranks = pl.read_csv(finished.result(f"{name}/statistics/ranks.csv"))
    ranking = stamp.rank(scored)
    for place, model in enumerate(ranking.models):
        row = ranks.filter(pl.col("model") == model).row(0, named=True)
        found = (ranking.rank[place], ranking.low[place], ranking.high[place])
        assert found == (row["rank"], row["low"], row["high"])
