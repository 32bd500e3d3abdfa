"""An analysis run by its scripts, from files to files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import polars as pl
from figures_check import texts_of

import analysis
import analysis_figure
from stamp.core.artifacts import write_table
from stamp.report.analysis import AnalysisData

KINDS = ("evaluations", "n_pairs", "metrics", "calibrations", "costs", "profiles")


def check_from_files(
    name: str, data: AnalysisData, folder: Path, files: Mapping[str, Sequence[Path]]
) -> None:
    """The scripts give the tables, the sentence and the figure that the library gives.

    The figure is not saved: one test of saving is enough for all figures.
    """
    for part in ("scores", "outcomes"):
        write_table(folder / f"{part}.parquet", getattr(data, part), {"study": "s"})
    job = SimpleNamespace(
        params=SimpleNamespace(**{key: getattr(data, key) for key in analysis.ABOUT}),
        wildcards=SimpleNamespace(study="s", analysis=name),
        input=SimpleNamespace(
            scores=folder / "scores.parquet",
            outcomes=folder / "outcomes.parquet",
            **{kind: files.get(kind, ()) for kind in KINDS},
        ),
        output=SimpleNamespace(
            csv=folder / "a.csv", models=folder / "a_models.csv", text=folder / "a.txt"
        ),
    )
    analysis.main(job)
    module = import_module(f"stamp.report.analyses.{name}.table")
    table, models = module.table(data), module.models(data)
    assert pl.read_csv(job.output.csv, schema=module.TABLE).equals(table)
    assert pl.read_csv(job.output.models, schema=module.MODELS).equals(models)
    assert job.output.text.read_text() == module.sentence(table) + "\n"
    if find_spec(f"stamp.report.analyses.{name}.figure"):
        job.input = SimpleNamespace(csv=job.output.csv, models=job.output.models)
        job.output = SimpleNamespace(png=folder / "a.png", pdf=folder / "a.pdf")
        with patch.object(analysis_figure, "save") as save:
            analysis_figure.main(job)
        drawn, *where = save.call_args.args
        assert where == [job.output.png, job.output.pdf]
        figure = import_module(f"stamp.report.analyses.{name}.figure")
        assert texts_of(drawn) == texts_of(figure.draw(table, models, data.texts))
