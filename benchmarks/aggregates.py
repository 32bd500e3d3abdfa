"""Everything that sees all models of a study, for up to 1,000 of them: CPU seconds and peak memory.

One process per number of models; the peak is set back before each aggregate. What a table or a
figure takes is its whole job but for the start of Python: reading, computing, drawing, writing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from benchmarks import made_up, made_up_files, made_up_profiles
from benchmarks.child import python
from benchmarks.memory import resident
from benchmarks.row import Row
from stamp.config.registries.analyses import ANALYSES
from stamp.core.artifacts import write_table
from stamp.report import collect, correlate, leaderboard, main_table
from stamp.report.analysis import AnalysisData
from stamp.report.page import render, study_page
from stamp.report.plot import figure_data, style

MODELS, TARGETS, DRAWS = (44, 200, 500, 1_000), 4, 10_000
LIMITS = "< 60 s, < 2,000 MB"
STUDY = "made-up"
FIGURES = ("targets", "ranks", "forest", "outranks")
CHILD = """
import json, sys
from benchmarks import aggregates
print(json.dumps(aggregates.measure(int(sys.argv[1]), sys.argv[2:])))
"""


@dataclass
class Zoo:
    """A made-up study of many models, and a folder that its files are written to."""

    models: int
    folder: Path

    @cached_property
    def data(self) -> AnalysisData:
        found = made_up.study(self.models, TARGETS, DRAWS, DRAWS)
        more = {"eta2": 0.5, "sampled_eta2": 0.5, "kind": "class"}
        more |= dict.fromkeys(("n_semantic", "n_random", "n_units"), 500)
        return replace(found, scores=found.scores.with_columns(**_constants(more)))

    @cached_property
    def keys(self) -> list[str]:
        return self.data.scores["model"].to_list()

    @cached_property
    def draws(self) -> np.ndarray:
        """Bootstrap draws of every model's score."""
        rng = np.random.default_rng(2)
        raw = self.data.scores["raw"].to_numpy()
        return raw[:, None] + 0.01 * rng.normal(size=(self.models, DRAWS))

    @cached_property
    def correlations(self) -> pl.DataFrame:
        """As the study's table, of few draws: figures and pages show their number only."""
        few = {**self.data.settings, "permutations": 100, "resamples": 100}
        return correlate.correlations(self.data.scores, self.data.outcomes, few, 0)

    @cached_property
    def ranks(self) -> pl.DataFrame:
        return correlate.ranks(self.keys, self.draws[:, :200], 0.95)

    @cached_property
    def outranks(self) -> pl.DataFrame:
        return correlate.outranking(self.keys, self.draws[:, :200])

    @cached_property
    def pairs(self) -> dict[str, dict[str, Any]]:
        """The records of the pairs behind each model's score."""
        return {key: made_up_files.pair_record(key) for key in self.keys}

    @cached_property
    def drawn(self) -> figure_data.FigureData:
        own = self.data
        return figure_data.FigureData(
            own.scores,
            own.outcomes,
            self.correlations,
            self.ranks,
            self.outranks,
            own.models,
            own.texts,
        )


def _constants(values: dict[str, Any]) -> dict[str, pl.Expr]:
    return {name: pl.lit(value) for name, value in values.items()}


def peak_from_here() -> None:
    """Set the process's peak of resident memory back to what it has now."""
    Path("/proc/self/clear_refs").write_text("5")


def measure(models: int, names: list[str]) -> dict[str, list[float]]:
    """CPU seconds and peak MB of every aggregate, or of those that are named."""
    found = {}
    with TemporaryDirectory() as name:
        for what, run in aggregates(Zoo(models, Path(name))):
            if not names or what in names:
                prepared = run()
                peak_from_here()
                began = process_time()
                prepared()
                found[what] = [process_time() - began, resident("VmHWM")]
                print(models, what, *found[what], file=sys.stderr, flush=True)
    return found


Step = Callable[[], Callable[[], Any]]


def aggregates(zoo: Zoo) -> Iterator[tuple[str, Step]]:
    """Every aggregate by its name; a step makes its inputs and returns the work itself."""
    yield "collect", lambda: collected(zoo)
    yield "correlate: correlations", lambda: correlated(zoo)
    yield (
        "correlate: ranks",
        lambda: of_draws(zoo, lambda: correlate.ranks(zoo.keys, zoo.draws, 0.95)),
    )
    yield (
        "correlate: outranks",
        lambda: of_draws(zoo, lambda: correlate.outranking(zoo.keys, zoo.draws)),
    )
    yield "main_table", lambda: tabled(zoo)
    yield "leaderboard", lambda: ranked(zoo)
    for figure in FIGURES:
        yield f"figure {figure}", lambda figure=figure: drawn(zoo, figure)
    yield "pair_distances", lambda: distances(zoo)
    for name in ANALYSES:
        yield f"analysis {name}", lambda name=name: analysed(zoo, name)
        if find_spec(f"stamp.report.analyses.{name}.figure"):
            yield f"analysis_figure {name}", lambda name=name: analysis_drawn(zoo, name)
    yield "page", lambda: paged(zoo)
    yield "index_page", lambda: indexed(zoo)


def of_draws(zoo: Zoo, work: Callable[[], pl.DataFrame]) -> Callable[[], Any]:
    zoo.draws.sum()
    return lambda: write_table(zoo.folder / "of-draws.csv", work(), {})


def correlated(zoo: Zoo) -> Callable[[], Any]:
    data = zoo.data
    return lambda: correlate.correlations(data.scores, data.outcomes, data.settings, data.seed)


def tabled(zoo: Zoo) -> Callable[[], Any]:
    found, texts = zoo.correlations, zoo.data.texts
    return lambda: main_table.markdown(main_table.main_table(found, texts), texts)


def ranked(zoo: Zoo) -> Callable[[], Any]:
    data, ranks = zoo.data, zoo.ranks

    def work() -> None:
        table = leaderboard.leaderboard(data.scores, data.outcomes, ranks, data.models)
        write_table(zoo.folder / "leaderboard.csv", table, {})

    return work


def save(zoo: Zoo, figure: Any, table: pl.DataFrame | None = None) -> None:
    if table is not None:
        write_table(zoo.folder / "figure.csv", table, {})
    style.save(figure, zoo.folder / "figure.png", zoo.folder / "figure.pdf")


def drawn(zoo: Zoo, name: str) -> Callable[[], Any]:
    data = zoo.drawn
    return lambda: save(zoo, *import_module(f"stamp.report.figures.{name}").draw(data))


def distances(zoo: Zoo) -> Callable[[], Any]:
    from stamp.report.figures import pair_distances

    labels = {key: model["label"] for key, model in zoo.data.models.items()}
    records, texts = zoo.pairs, zoo.data.texts
    return lambda: save(zoo, *pair_distances.draw(records, labels, texts))


def analysis_data(zoo: Zoo, name: str) -> AnalysisData:
    data, analysis = zoo.data, ANALYSES[name]
    if not analysis.profile:
        return data
    return replace(data, profiles=made_up_profiles.profiles(analysis.profile, data.scores))


def analysed(zoo: Zoo, name: str) -> Callable[[], Any]:
    module, data = import_module(f"stamp.report.analyses.{name}.table"), analysis_data(zoo, name)

    def work() -> None:
        table = module.table(data)
        write_table(zoo.folder / f"{name}.csv", table, {})
        write_table(zoo.folder / f"{name}_models.csv", module.models(data), {})
        module.sentence(table)

    return work


def analysis_drawn(zoo: Zoo, name: str) -> Callable[[], Any]:
    """Of the tables that :func:`analysed` left."""
    schemas = import_module(f"stamp.report.analyses.{name}.table")
    figure = import_module(f"stamp.report.analyses.{name}.figure")

    def work() -> None:
        tables = [
            pl.read_csv(zoo.folder / f"{name}{end}.csv", schema=schema)
            for end, schema in (("", schemas.TABLE), ("_models", schemas.MODELS))
        ]
        save(zoo, figure.draw(*tables, zoo.data.texts))

    return work


def collected(zoo: Zoo) -> Callable[[], Any]:
    """From one file of scores, one calibration and five evaluations per model."""
    targets, rng = list(zoo.data.texts["targets"]), np.random.default_rng(3)
    for key in zoo.keys:
        made_up_files.write_model(zoo.folder, key, targets, rng)
    views = [f"evaluations/{view}" for view in ("source", *targets)]
    files = {
        "scores": [zoo.folder / "scores" / f"{key}.parquet" for key in zoo.keys],
        "calibrations": [zoo.folder / "calibration" / f"{key}.json" for key in zoo.keys],
        "evaluations": [zoo.folder / part / f"{key}.parquet" for part in views for key in zoo.keys],
        "matched": [],
    }
    params = {
        "models": zoo.keys,
        "outcomes": zoo.data.texts["outcomes"],
        "exclude": "none",
        "contaminated": {},
        "for_reference": {},
        "trained_on": dict.fromkeys(zoo.keys),
        "level": 0.95,
        "relabelled": [],
        "class_mix": {},
    }

    def work() -> None:
        found = collect.collect(
            SimpleNamespace(**files), SimpleNamespace(**params), made_up_files.STUDY
        )
        write_table(zoo.folder / "evaluations.csv", found.evaluations, {})
        write_table(zoo.folder / "scores.parquet", found.scores, {})
        write_table(zoo.folder / "outcomes.parquet", found.outcomes, {})

    return work


def study(zoo: Zoo) -> study_page.StudyPage:
    """The page of the study, without thumbnails."""
    data = zoo.data
    tables = study_page.StudyTables(
        leaderboard=leaderboard.leaderboard(data.scores, data.outcomes, zoo.ranks, data.models),
        scores=data.scores,
        outcomes=data.outcomes,
        correlations=zoo.correlations,
        outranks=zoo.outranks,
        pairs=zoo.pairs,
        metadata={key: record["made_with"] for key, record in zoo.pairs.items()},
    )
    return study_page.study_page(tables, study_page.StudyFacts(STUDY, data.texts))


def paged(zoo: Zoo) -> Callable[[], Any]:
    zoo.correlations, zoo.outranks, zoo.ranks, zoo.pairs  # noqa: B018
    return lambda: (zoo.folder / "page.html").write_text(render.study_html(study(zoo)))


def indexed(zoo: Zoo) -> Callable[[], Any]:
    summary = render.summary(study(zoo), "page.html")
    return lambda: render.index_html([summary])


def main() -> list[Row]:
    """The CPU seconds of each aggregate of the largest study; the smaller ones in its note."""
    found = {models: json.loads(python(CHILD, str(models))) for models in MODELS}
    rows = []
    for what in found[MODELS[-1]]:
        each = [(models, *found[models][what]) for models in MODELS]
        note = ", ".join(f"{models:,}: {cpu:.2g} s {peak:,.0f} MB" for models, cpu, peak in each)
        rows.append(Row(f"{what}, {MODELS[-1]:,} models", each[-1][1], "CPU s", LIMITS, note))
    return rows
