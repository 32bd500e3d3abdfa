"""The figure of pair distances shows the histograms of the records, and nothing else."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from figures_check import check_texts
from matplotlib.patches import StepPatch

from pair_distances import main
from stamp.core.artifacts import write_json
from stamp.report.figures import pair_distances
from stamp.scoring.pair_examples import histogram

TEXTS = {"title": "A study", "notice": "Made up.", "task": "multiclass"}


def records(count: int) -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(0)
    return {
        f"m{at}": {"distances": histogram(rng.random(200) ** 2, rng.random(300) + at % 3, 24)}
        for at in range(count)
    }


def labels(count: int, label: str = "Model {}") -> dict[str, str]:
    return {f"m{at}": label.format(at) for at in range(count)}


def test_each_panel_has_the_steps_of_its_models_histograms() -> None:
    given = records(3)
    figure, table = pair_distances.draw(given, labels(3), TEXTS)
    for key, record in given.items():
        axes = next(one for one in figure.axes if one.get_label() == f"pairs:{key}")
        found = record["distances"]
        drawn = [steps.get_data() for steps in axes.patches if isinstance(steps, StepPatch)]
        assert [steps.edges.tolist() for steps in drawn] == [found["edges"]] * 4
        shown = [found["semantic"], found["random"]]  # each as an area and a line
        assert [steps.values.tolist() for steps in drawn[::2]] == shown
        assert [steps.values.tolist() for steps in drawn[1::2]] == shown
        assert axes.get_xlim()[1] == found["edges"][-1]
        rows = table.filter(pl.col("model") == key)
        assert rows["semantic"].to_list() == found["semantic"]
        assert rows["random"].to_list() == found["random"]
        assert [*rows["from"], rows["to"][-1]] == found["edges"]


@pytest.mark.parametrize("count", [1, 12, 44, 75])
def test_any_number_of_models_fits_a_page_and_no_text_is_cut(count: int) -> None:
    figure, table = pair_distances.draw(records(count), labels(count, "A long name {}"), TEXTS)
    check_texts(figure)
    assert figure.get_figheight() < 10
    drawn = [axes for axes in figure.axes if axes.get_label().startswith("pairs:")]
    assert len(drawn) == min(count, pair_distances.MOST)
    assert table["model"].n_unique() == count
    told = any("of 75 models" in text.get_text() for text in figure.axes[0].texts)
    assert told == (count == 75)


def test_the_script_writes_figure_and_table(tmp_path: Path) -> None:
    files = []
    for key, record in records(2).items():
        files.append(tmp_path / f"{key}.json")
        write_json(files[-1], record)
    models = {key: {"label": label} for key, label in labels(2).items()}
    ends = {end: str(tmp_path / f"figure.{end}") for end in ("png", "pdf", "csv")}
    params = SimpleNamespace(models=models, texts=TEXTS)
    main(SimpleNamespace(input=files, output=SimpleNamespace(**ends), params=params))
    assert pl.read_csv(ends["csv"])["label"].unique().sort().to_list() == ["Model 0", "Model 1"]
    assert all(Path(path).stat().st_size > 1000 for path in ends.values())
