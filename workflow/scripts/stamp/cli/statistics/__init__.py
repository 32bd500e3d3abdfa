"""All statistics and figures for a table of your own: model, score, source metric and targets.

No image is read and no model is run: the table is a CSV file with the columns model, score and
source_metric; every other column of numbers is a target. Options name the columns of a table that
has them otherwise. The same functions as in a study's run write the same files.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stamp.cli.terminal.arguments import at_least

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from stamp.cli.statistics.chosen_columns import ColumnChoice
    from stamp.cli.statistics.user_table import UserTable
    from stamp.config.registries.analyses import Analysis
    from stamp.report.analysis import AnalysisData

HELP = "statistics and figures for a table of your own (CSV)"
EXAMPLE = "statistics docs/your-own-table.csv --out mine/statistics"
FIGURES = ("targets", "ranks", "forest")
WITHOUT_METRICS = ("baselines", "regret")
FILTERS = ("all", "declared")  # such a table has at most one rule that excludes models
Write = tuple[Path, Callable[[Path], None]]


def arguments(parser: argparse.ArgumentParser) -> None:
    """The table, where results go, and the settings of the statistics."""
    parser.add_argument(
        "table", type=Path, help="CSV with the columns model, score, source_metric, targets"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder that results are written to"
    )
    parser.add_argument("--title", help="what figures call the study (the table's file name)")
    parser.add_argument("--controls", default="", help="columns to control for: depth,epochs")
    parser.add_argument("--score", default="", help="column of the score; the mean of a,b or of a*")
    parser.add_argument("--source", default="", help="column of the source metric")
    parser.add_argument("--targets", default="", help="columns of the targets: a,b; no others")
    parser.add_argument(
        "--matched", default="", help="columns of class-matched source metrics: target=column,..."
    )
    parser.add_argument("--percent", action="store_true", help="numbers are percent")
    parser.add_argument(
        "--skip-incomplete",
        action="store_true",
        help="leave out models without every value, and those with all values of another",
    )
    parser.add_argument("--delta", type=float, help="outcome below which a model fails (median)")
    parser.add_argument("--equivalence", type=float, help="margin of equal correlations (0.1)")
    parser.add_argument("--seed", type=at_least(0), default=0)
    parser.add_argument("--permutations", type=int, default=10_000)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--level", type=float, default=0.95, help="of the intervals (0.95)")


def run(given: argparse.Namespace) -> None:
    """Everything is computed before the first file is written; then the main table is printed."""
    from stamp.cli.statistics.user_table import read, study

    settings = _settings(given)
    own = read(given.table, _listed(given.controls), _choice(given))
    data = study(own, given.title or Path(given.table).stem, settings, given.seed)
    out = Path(given.out)
    options = {"delta": given.delta, "equivalence": given.equivalence}
    main, writes = results(own, data, out, options)
    for path, write in writes:
        write(path)
    print(main)
    if own.ignored:
        print(f"Columns without numbers, left alone: {', '.join(own.ignored)}.\n")
    for place, what in (
        ("leaderboard.csv", "models by score"),
        ("statistics", "main table, correlations with all predictors, ranks"),
        ("analyses", "one table, one by model and one sentence each"),
        ("figures", "PNG and PDF"),
        ("page.html", "all of it to open in a browser"),
    ):
        print(f"{out / place}: {what}")


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _choice(given: argparse.Namespace) -> ColumnChoice:
    """Which columns of the table are what, where they are not called so."""
    from stamp.cli.statistics.chosen_columns import ColumnChoice
    from stamp.core.errors import UserError

    matched = {}
    for one in _listed(given.matched):
        target, sign, column = one.partition("=")
        if not (sign and target and column):
            raise UserError(f"--matched {one}: write target=column")
        matched[target] = column
    found = ColumnChoice(
        score=_listed(given.score),
        source=given.source,
        targets=_listed(given.targets),
        matched=matched,
        percent=given.percent,
        skip=given.skip_incomplete,
    )
    if (found.percent or found.skip) and not found.asked:
        raise UserError("--percent and --skip-incomplete go with --score, --source or --targets")
    return found


def _settings(given: argparse.Namespace) -> dict[str, Any]:
    from stamp.core.errors import UserError

    for name in ("permutations", "resamples"):
        if getattr(given, name) < 1:
            raise UserError(f"--{name} {getattr(given, name)}: at least 1 is needed")
    if not 0 < given.level < 1:
        raise UserError(f"--level {given.level}: must lie between 0 and 1")
    if given.equivalence is not None and not 0 < given.equivalence <= 2:
        raise UserError(f"--equivalence {given.equivalence}: must lie above 0 and be 2 at the most")
    return {name: getattr(given, name) for name in ("permutations", "resamples", "level")}


def results(
    own: UserTable, data: AnalysisData, out: Path, options: Mapping[str, Any]
) -> tuple[str, list[Write]]:
    """The main table as text, and every file with the function that writes it."""
    import polars as pl

    from stamp.cli.statistics.user_table import ranks
    from stamp.report.correlate import correlations
    from stamp.report.main_table import main_table, markdown
    from stamp.report.plot.figure_data import FigureData as Drawn

    steps = _Steps(2 + len(FIGURES) + len(_chosen()))
    steps.next("correlations")
    kept = pl.col("filter").is_in(FILTERS)
    found = correlations(data.scores, data.outcomes, data.settings, data.seed).filter(kept)
    places = ranks(own)
    excluded = data.scores["excluded"].is_not_null().any()
    table = main_table(found if excluded else found.filter(filter="all"), data.texts)
    words = markdown(table, data.texts)
    folder = out / "statistics"
    writes = [
        _table(out / "leaderboard.csv", _leaderboard(data, places)),
        _table(folder / "correlations.csv", found),
        _table(folder / "ranks.csv", places),
        _table(folder / "main.csv", table),
        _text(folder / "main.md", words),
    ]
    steps.next("page")
    writes.append(_page(data, places, found, out))
    drawn = Drawn(
        data.scores, data.outcomes, found, places, pl.DataFrame(), data.models, data.texts
    )
    writes += _figures(drawn, out, steps)
    writes += _analyses(data, out, options, steps)
    steps.close()
    return words, writes


class _Steps:
    """How far the statistics are: a bar that names the present step."""

    def __init__(self, number: int):
        from stamp.core.progress import bar

        self.bar, self.begun = bar(None, "statistics", number, "step"), 0

    def next(self, what: str) -> None:
        """Begin the next step; the one before is done."""
        self.bar.set_description(what, refresh=False)
        self.bar.update(1 if self.begun else 0)
        self.begun += 1

    def close(self) -> None:
        self.bar.close()


def _leaderboard(data: AnalysisData, places: pl.DataFrame) -> pl.DataFrame:
    """The leaderboard without the columns that a user's table leaves empty."""
    from stamp.report.leaderboard import leaderboard

    table = leaderboard(data.scores, data.outcomes, places, data.models)
    return table[[name for name in table.columns if table[name].is_not_null().any()]]


def _page(data: AnalysisData, places: pl.DataFrame, found: pl.DataFrame, out: Path) -> Write:
    """The same page as a study's, without what only models and images give."""
    from stamp import __version__
    from stamp.report.analyses.regret import table as regret
    from stamp.report.leaderboard import leaderboard
    from stamp.report.page.render import study_html
    from stamp.report.page.study_page import StudyFacts, StudyTables, study_page

    board = leaderboard(data.scores, data.outcomes, places, data.models)
    tables = StudyTables(board, data.scores, data.outcomes, found, regret=regret.table(data))
    facts = StudyFacts(out.name, data.texts, seed=data.seed, versions={"stamp": __version__})
    return _text(out / "page.html", study_html(study_page(tables, facts)))


def _figures(drawn: Any, out: Path, steps: _Steps) -> Iterable[Write]:
    from importlib import import_module

    for name in FIGURES:
        steps.next(f"figure {name}")
        figure, table = import_module(f"stamp.report.figures.{name}").draw(drawn)
        yield _table(out / "figures" / f"{name}.csv", table)
        yield _figure(out / "figures" / f"{name}.png", figure)


def _chosen() -> dict[str, Analysis]:
    """The analyses that read nothing but scores and outcomes.

    ``baselines`` and ``regret`` are among them: without metrics they compare the score with the
    source metric, with accuracy on the line and with a random choice.
    """
    from stamp.config.registries.analyses import ANALYSES

    return {key: one for key, one in ANALYSES.items() if not one.inputs or key in WITHOUT_METRICS}


def _analyses(
    data: AnalysisData, out: Path, options: Mapping[str, Any], steps: _Steps
) -> Iterable[Write]:
    """The files of those analyses, and their figures."""
    from dataclasses import replace
    from importlib import import_module
    from importlib.util import find_spec

    for name, analysis in _chosen().items():
        steps.next(name)
        mine = replace(data, options={key: options.get(key) for key in analysis.options})
        module = import_module(f"stamp.report.analyses.{name}.table")
        table, models = module.table(mine), module.models(mine)
        yield _table(out / "analyses" / f"{name}.csv", table)
        yield _table(out / "analyses" / f"{name}_models.csv", models)
        yield _text(out / "analyses" / f"{name}.txt", module.sentence(table) + "\n")
        if find_spec(f"stamp.report.analyses.{name}.figure"):
            figure = import_module(f"stamp.report.analyses.{name}.figure").draw(
                table, models, data.texts
            )
            yield _figure(out / "figures" / f"{name}.png", figure)


def _table(path: Path, table: pl.DataFrame) -> Write:
    from stamp.core.artifacts import write_table

    return path, lambda where: write_table(where, table, {})


def _text(path: Path, words: str) -> Write:
    from stamp.core.artifacts import atomic_write

    def write(where: Path) -> None:
        with atomic_write(where) as part:
            part.write_text(words)

    return path, write


def _figure(path: Path, figure: Figure) -> Write:
    from stamp.report.plot.style import save

    return path, lambda where: save(figure, where, where.with_suffix(".pdf"))
