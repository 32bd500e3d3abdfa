"""The public ImageNet testbed's accuracies under our statistics: a section of ``docs/evidence.md``.

Taori et al. 2020, Measuring Robustness to Natural Distribution Shifts in Image Classification. The
file is not part of this repository: a user downloads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.seeds import markdown
from stamp.cli.statistics.chosen_columns import ColumnChoice
from stamp.cli.statistics.user_table import read, study
from stamp.report.analyses.baselines import table as baselines
from stamp.report.analyses.probit import table as probit
from stamp.report.analyses.regret import table as regrets
from stamp.report.analysis import AnalysisData
from stamp.report.comparison import predictors
from stamp.report.outcomes import MEAN, shown_outcomes, source_outcome, values
from stamp.report.wording import DASH, MINUS, RHO, number
from stamp.stats.correlations.correlation import percentile_interval
from stamp.stats.correlations.partial_correlation import partial_spearman

HEADING = "## The ImageNet testbed"
STRESS = "imagenet-c.*.3_in-memory"
MATCHED = {  # the classes of a target, among which the source accuracy is given too
    "imagenetv2-matched-frequency-format-val": "",
    "objectnet-1.0-beta": "val-on-objectnet-classes",
    "imagenet-a": "val-on-imagenet-a-classes",
    "imagenet-r": "val-on-imagenet-r-classes",
    "imagenet-sketch": "",
    "imagenet-vid-robust_pm0": "val-on-vid-robust-classes",
    "ytbb-robust_pm0": "val-on-ytbb-robust-classes",
}
NAMES = {
    "imagenetv2-matched-frequency-format-val": "ImageNet-V2",
    "objectnet-1.0-beta": "ObjectNet",
    "imagenet-a": "ImageNet-A",
    "imagenet-r": "ImageNet-R",
    "imagenet-sketch": "ImageNet-Sketch",
    "imagenet-vid-robust_pm0": "ImageNet-Vid",
    "ytbb-robust_pm0": "YTBB",
    MEAN: "Mean of the seven",
}
SETTINGS = {"permutations": 1000, "resamples": 1000, "level": 0.95}
PICKED = 12
TOP, BESIDE = "objectnet-1.0-beta", "val-on-objectnet-classes"
SHORT = ("stress", "source", "matched")
PREDICTORS = (predictors.STAMP, predictors.SOURCE_METRIC, predictors.SOURCE_MATCHED)


ABOUT = (
    "Top-1 accuracies of real ImageNet models on natural shifts, from `robustness_top1s.csv` in "
    "the public repository `modestyachts/imagenet-testbed` (MIT licence; Taori et al. 2020). "
    "Download that file; it is not part of this repository. Its columns are percent: `val` (source "
    "accuracy), `val-on-<set>-classes` (the same on the classes of a set), "
    "`imagenet-c.<corruption>.<severity>_in-memory`, and one column per shift. Stress accuracy "
    f"here is the mean of `{STRESS}`. One command gives all numbers (`analyses/baselines.csv`, "
    "`analyses/regret.csv`; it calls the score STAMP, which it is not):"
)


def choice(score: str, source: str, targets: Sequence[str]) -> ColumnChoice:
    """The testbed's columns under the names that ``statistics`` reads, as shares."""
    matched = {name: column for name in targets if (column := MATCHED[name]) and column != source}
    return ColumnChoice([score], source, targets, matched, percent=True, skip=True)


def data_of(file: Path, chosen: ColumnChoice) -> AnalysisData:
    """What ``python -m stamp statistics`` analyses for these columns."""
    return study(read(file, (), chosen), "ImageNet testbed", SETTINGS, 0)


def command(chosen: ColumnChoice) -> str:
    """The command that gives the same numbers."""
    matched = ",".join(f"{name}={column}" for name, column in chosen.matched.items())
    parts = [
        "python -m stamp statistics robustness_top1s.csv --out results/testbed",
        f"--score '{','.join(chosen.score)}' --source {chosen.source}",
        "--percent --skip-incomplete",
        f"--targets {','.join(chosen.targets)}",
        *([f"--matched {matched}"] if matched else []),
    ]
    return " \\\n        ".join(parts)


def points(value: float | None, digits: int = 2) -> str:
    """A share in points."""
    return DASH if value is None else f"{100 * value:.{digits}f}".replace("-", MINUS)


def share(value: float | None) -> str:
    """A correlation with two decimals."""
    return DASH if value is None or np.isnan(value) else f"{value:.2f}".replace("-", MINUS)


def partials(data: AnalysisData, outcomes: Sequence[str], rows: np.ndarray) -> list[float]:
    """The partial of the score with each outcome given its source accuracy, over some models."""
    keys = data.scores["model"].to_list()
    score = data.scores["stamp"].to_numpy()
    found = []
    for outcome in outcomes:
        source = values(data.outcomes, source_outcome(data.outcomes, outcome), keys)
        truth = values(data.outcomes, outcome, keys)
        found.append(partial_spearman(score[rows], truth[rows], source[rows], 1).rho)
    return found


def mean_partial(data: AnalysisData, outcomes: Sequence[str]) -> str:
    """The mean over outcomes of the partial, with its interval over resamples of models."""
    n = len(data.scores)
    value = float(np.mean(partials(data, outcomes, np.arange(n))))
    rng = np.random.default_rng(0)
    draws = [
        np.mean(partials(data, outcomes, rng.integers(n, size=n)))
        for _ in range(SETTINGS["resamples"] // 4)  # type: ignore[operator]
    ]
    ends = percentile_interval(np.array(draws))
    return f"{share(value)} [{share(float(ends.low))}, {share(float(ends.high))}]"


def _row(table: pl.DataFrame, **where: Any) -> Mapping[str, Any]:
    found = table.filter([pl.col(name) == wanted for name, wanted in where.items()])
    return found.row(0, named=True) if len(found) else {}


def outcome_cells(of: pl.DataFrame, picks: pl.DataFrame, outcome: str) -> list[str]:
    """The row of one shift."""
    known = {
        name: _row(of, models="declared", outcome=outcome, predictor=name) for name in PREDICTORS
    }
    lost = {
        name: _row(picks, outcome=outcome, predictor=name, k=PICKED)
        for name in (*PREDICTORS, regrets.RANDOM)
    }
    stress = known[predictors.STAMP]
    ends = f" [{share(stress['partial_low'])}, {share(stress['partial_high'])}]"
    return [
        NAMES[outcome],
        *(share(known[name].get("oriented")) for name in PREDICTORS),
        share(stress["partial"]) + ends,
        *(points(one.get("regret")) for one in lost.values()),
        *(share(lost[name].get("point_right")) for name in PREDICTORS),
    ]


def on_the_line(file: Path) -> str:
    """The line of ObjectNet against the source accuracy on its classes."""
    data = data_of(file, choice(BESIDE, BESIDE, [TOP]))
    row = probit.table(data).filter(models="declared").row(0, named=True)
    return (
        f"ObjectNet against `{BESIDE}` on the probit scale: r = {row['r_source']:.3f}, slope "
        f"{row['slope_source']:.3f}, intercept {number(row['intercept_source'])} (n = {row['n']}; "
        "`analyses/probit.csv`)."
    )


def section_of_testbed(file: Path) -> str:
    """The section: how to get the file, the command, the table, and two numbers to check by."""
    chosen = choice(STRESS, "val", list(MATCHED))
    data = data_of(file, chosen)
    outcomes = shown_outcomes(data.outcomes)
    of, picks = baselines.table(data), regrets.table(data)
    head = ["shift", *(f"{RHO} {name}" for name in SHORT), "partial of stress"]
    head += [f"lost by {name}" for name in (*SHORT, "chance")]
    head += [f"better of two, {name}" for name in SHORT]
    single = [name for name in outcomes if name != MEAN]
    lost = [
        np.mean([_row(picks, outcome=one, predictor=name, k=PICKED)["regret"] for one in single])
        for name in PREDICTORS
    ]
    pairs = _row(picks, outcome=MEAN, predictor=predictors.STAMP, k=PICKED)["point_pairs"]
    parts = [
        HEADING,
        ABOUT,
        f"    {command(chosen)}",
        f"{len(data.scores)} distinct models have every value. Partial: given the class-matched "
        f"source accuracy. Lost: points lost by picking the best of {PICKED}. Better of two: how "
        "often the better of two models is picked that lie within one point of source accuracy "
        f"({pairs} pairs on the mean). The error of `val` is not in the file, so nothing is "
        "corrected for it: with 50,000 images it is small.",
        markdown(head, [outcome_cells(of, picks, name) for name in outcomes]),
        f"Mean over the seven shifts: partial {mean_partial(data, single)} (interval over models); "
        f"points lost {points(lost[0])} by stress accuracy, {points(lost[1])} by source accuracy, "
        f"{points(lost[2])} by class-matched source accuracy. {verdict(of, picks)} The file does "
        "not say what models were trained on; the earlier investigation found a partial of "
        f"{MINUS}.21 among 25 models trained on more data.",
        on_the_line(file),
    ]
    return "\n\n".join(parts)


def verdict(of: pl.DataFrame, picks: pl.DataFrame) -> str:
    """By the page's rules, on the mean: does stress accuracy add, and does it pick better?"""
    row = _row(of, models="declared", outcome=MEAN, predictor=predictors.STAMP)
    cost = _row(picks, outcome=MEAN, predictor=predictors.STAMP, k=PICKED)
    adds = row["partial_low"] > 0
    better, worse = cost["minus_matched_high"] < 0, cost["minus_matched_low"] > 0
    pick = "better than" if better else "worse than" if worse else "no better and no worse than"
    ends = [points(cost[f"minus_matched{end}"]) for end in ("", "_low", "_high")]
    return (
        f"On the mean stress accuracy {'adds' if adds else 'is not shown to add'} to source "
        f"accuracy, and picks {pick} class-matched source accuracy (difference of points lost "
        f"{ends[0]} [{ends[1]}, {ends[2]}])."
    )
