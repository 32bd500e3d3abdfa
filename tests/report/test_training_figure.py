"""The training figure shows every epoch of every model where its record says, and nothing else."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from figures_check import check_texts
from matplotlib.figure import Figure

from stamp.config.plan import read_plan
from stamp.core.artifacts import write_json
from stamp.report.figures import training
from training_figure import main

TEXTS = {"title": "A study", "notice": "Made up.", "task": "multilabel"}
CURVES = {
    "metric": ("metric", "metric"),
    "train": ("loss", "train_loss"),
    "val": ("loss", "val_loss"),
}


def record(seed: int, stage1: int = 2, stage2: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    curve = [
        {
            "epoch": number,
            "stage": 1 if number <= stage1 else 2,
            "train_loss": rng.uniform(0.1, 0.3),
            "val_loss": rng.uniform(0.1, 0.3),
            "metric": rng.uniform(0.5, 0.9),
            "learning_rate": 1e-4,
            "backbone_learning_rate": 1e-5,
        }
        for number in range(1, stage1 + stage2 + 1)
    ]
    best = 1 + int(np.argmax([epoch["metric"] for epoch in curve]))
    return {"model": f"m{seed}", "best": best, "curve": curve}


def records(count: int, label: str = "Model {}") -> dict[str, dict[str, Any]]:
    return {label.format(i): record(i) for i in range(count)}


def drawn(figure: Figure, kind: str, label: str, panel: str) -> tuple[list[float], list[float]]:
    axes = next(axes for axes in figure.axes if axes.get_label() == f"{panel}:{label}")
    line = next(line for line in axes.lines if line.get_gid() == f"{kind}:{label}")
    return list(line.get_xdata()), list(line.get_ydata())


def test_every_curve_is_at_its_records_numbers_and_the_best_epoch_is_marked() -> None:
    given = records(4)
    figure, _ = training.draw(given, TEXTS)
    for label, each in given.items():
        for kind, (panel, column) in CURVES.items():
            expected = [epoch[column] for epoch in each["curve"]]
            assert drawn(figure, kind, label, panel) == ([1, 2, 3, 4, 5, 6, 7], expected)
        best = each["curve"][each["best"] - 1]
        assert drawn(figure, "best", label, "metric") == ([best["epoch"]], [best["metric"]])
        words = f"{best['metric']:.3f} in epoch {best['epoch']}"
        assert words in [text.get_text() for text in figure.axes[0].texts]


def test_the_first_stage_is_shaded_up_to_its_last_epoch_and_only_where_there_is_one() -> None:
    given = {"two": record(0, 2, 3), "none": record(1, 0, 4)}
    figure, _ = training.draw(given, TEXTS)
    ends = {
        axes.get_label(): [patch.get_x() + patch.get_width() for patch in axes.patches]
        for axes in figure.axes
        if axes.get_label() != "sheet"
    }
    assert ends == {"metric:two": [2.5], "loss:two": [2.5], "metric:none": [], "loss:none": []}


def test_all_models_have_the_same_axes_that_hold_every_epoch() -> None:
    given = {**records(5), "long": record(9, 3, 9)}
    figure, table = training.draw(given, TEXTS)
    for panel, columns in (("metric", ["metric"]), ("loss", ["train_loss", "val_loss"])):
        axes = [each for each in figure.axes if each.get_label().startswith(f"{panel}:")]
        assert len({(each.get_xlim(), each.get_ylim()) for each in axes}) == 1
        low, high = axes[0].get_ylim()
        values = table.select(columns).to_numpy()
        assert low < values.min() < values.max() < high
        assert axes[0].get_xlim() == (0.5, 12.5)


def test_the_table_has_a_row_an_epoch_and_model_with_one_best_each() -> None:
    given = records(3)
    _, table = training.draw(given, TEXTS)
    assert table.columns == list(training.SCHEMA)
    assert len(table) == 21
    chosen = dict(table.filter("best").select("label", "epoch").iter_rows())
    assert chosen == {label: each["best"] for label, each in given.items()}


@pytest.mark.parametrize("count", [1, 3, 13, 44])
def test_no_panels_overlap_or_leave_the_page_however_many_models_there_are(count: int) -> None:
    figure, _ = training.draw(records(count, "A model with a rather long name, no. {}"), TEXTS)
    figure.draw_without_rendering()
    boxes = [axes.get_position() for axes in figure.axes if axes.get_label() != "sheet"]
    assert len(boxes) == 2 * count
    for i, one in enumerate(boxes):
        assert 0 < one.x0 < one.x1 < 1
        assert 0 < one.y0 < one.y1 < 1
        assert not any(one.overlaps(other) for other in boxes[i + 1 :])
    page = figure.bbox
    for axes in figure.axes:
        for text in (*axes.texts, axes.xaxis.label, axes.yaxis.label):
            if text.get_text() and text.get_visible():
                extent = text.get_window_extent()
                assert page.x0 <= extent.x0 <= extent.x1 <= page.x1, text.get_text()
                assert page.y0 <= extent.y0 <= extent.y1 <= page.y1, text.get_text()


def test_the_names_of_the_medical_zoo_stand_whole_and_apart() -> None:
    models = read_plan(["medical"]).studies["medical"].models.values()
    names = [model.label for model in models if model.trainer == "finetune"]
    figure, _ = training.draw({name: record(at) for at, name in enumerate(names)}, TEXTS)
    assert set(names) <= {text.get_text() for text in figure.axes[0].texts}
    check_texts(figure)


def test_a_multiclass_study_speaks_of_accuracy() -> None:
    figure, _ = training.draw(records(2), {**TEXTS, "task": "multiclass"})
    words = " ".join(text.get_text() for text in figure.axes[0].texts)
    assert "accuracy" in words
    assert "AUROC" not in words


def test_the_script_writes_figure_and_table_the_same_each_time_and_tells_twins_apart(
    tmp_path: Path,
) -> None:
    files = []
    for seed in (0, 1):
        files.append(tmp_path / f"{seed}.json")
        write_json(files[-1], record(seed))
    written = []
    for again in ("a", "b"):
        output = {kind: tmp_path / f"{again}.{kind}" for kind in ("png", "pdf", "csv")}
        main(
            SimpleNamespace(
                input=SimpleNamespace(records=files),
                output=SimpleNamespace(**output),
                params=SimpleNamespace(labels={"m0": "Twin", "m1": "Twin"}, texts=TEXTS),
            )
        )
        written.append([path.read_bytes() for path in output.values()])
    assert written[0] == written[1]
    labels = pl.read_csv(tmp_path / "a.csv")["label"].unique().sort().to_list()
    assert labels == ["Twin (m0)", "Twin (m1)"]
