"""What the pages on adding an analysis, a metric and a data set say is enough, and is run."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import polars as pl
from page_edits import follow
from project import ROOT, Project

DOCS = ROOT / "docs"


def test_a_folder_and_a_line_in_the_registry_are_planned_and_run(project: Project) -> None:
    assert len(follow(DOCS / "add-an-analysis.md", project.folder)) == 5
    assert project.plan() == Counter()
    project.edit("studies/small_phantom.yaml", lambda study: study.update(analyses=["made_up"]))
    added = ["analysis small_phantom made_up", "analysis_figure small_phantom made_up"]
    added += ["page small_phantom", "index_page"]
    assert project.plan() == Counter(added)
    project.finish()
    results = project.folder / "results/small_phantom"
    assert (results / "analyses/made_up.txt").read_text() == "4 models.\n"
    assert (results / "figures/made_up.png").stat().st_size > 1000
    assert project.plan() == Counter()


def test_a_metric_of_the_page_is_listed_and_computed(project: Project) -> None:
    assert len(follow(DOCS / "add-a-metric.md", project.folder)) == 3
    told = project.stamp("metrics")
    assert told.code == 0, told.text
    assert "sure" in told.text.split()
    code = (
        "import numpy as np; from stamp.metrics.metrics import source_values;"
        "from stamp.metrics.inputs import ScaledOutputs;"
        "p = np.array([[.95, .05], [.6, .4], [.02, .98], [.5, .5]]);"
        "labels = np.array([0, 0, 1, 1]);"
        "outputs = ScaledOutputs.of(np.log(p), labels, 'multiclass', 1.0);"
        "print(source_values(outputs)['sure'].value)"
    )
    library = str(project.folder / "workflow" / "scripts")
    printed = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": library}, text=True,
                             capture_output=True)  # fmt: skip
    assert printed.stdout == "0.5\n", printed.stderr


def test_a_data_set_of_the_page_is_made(project: Project) -> None:
    assert len(follow(DOCS / "add-a-data-set.md", project.folder)) == 2
    project.finish("results/datasets/tiles/index.parquet")
    index = pl.read_parquet(project.result("datasets/tiles/index.parquet"))
    assert (len(index), index["label"].n_unique(), index["split"].n_unique()) == (40, 2, 2)
    assert all((project.folder / path).is_file() for path in index["path"])
