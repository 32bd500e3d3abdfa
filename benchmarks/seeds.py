"""The embedded default under three seeds, and the page that reports what came out.

``python -m benchmarks.seeds`` runs the workflow once a seed, each into its own folder of results
(a finished seed has nothing left to do), then writes ``docs/embedded-results.md``. All that the
page says of a study is computed from the tables that the runs left behind.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
import yaml

from benchmarks import ROOT
from stamp.config.plan import Plan, load
from stamp.config.study import Study
from stamp.config.view_names import SOURCE
from stamp.core.artifacts import atomic_write, read_table
from stamp.report import flags
from stamp.report.correlate import OF_SOURCE, SOURCE_MATCHED, SOURCE_METRIC
from stamp.report.outcomes import MEAN, outcome_names

SEEDS = (0, 1, 2)
PAGE = ROOT / "docs" / "embedded-results.md"
COMMAND = "PYTHONPATH=workflow/scripts python -m benchmarks.seeds"
FILTERS = {"all": "All models", "declared": "Without the excluded models"}
SMALL_P = 0.05
PARTIALS = {"partial_source": "", "partial_source_corrected": " and corrected for its error"}
PACKAGES = ("torch", "timm", "numpy", "scikit-learn", "mlxtend")
METRICS = {"auroc": "source AUROC", "top1": "source accuracy"}
NAMES = {
    "stamp": "STAMP",
    "sampled_stamp": "sampled STAMP",
    "stamp_scaled": "STAMP, scaled by temperature",
    "stamp_unscaled": "STAMP, not scaled by temperature",
    "stamp_matched": "STAMP, classes of the target",
}
NONE = "-"


@dataclass(frozen=True, slots=True)
class Finished:
    """The tables of one study under one seed."""

    seed: int
    board: pl.DataFrame
    tidy: pl.DataFrame
    correlations: pl.DataFrame

    def found(self, which: str, outcome: str, predictor: str) -> dict[str, Any] | None:
        """The row of a filter, outcome and predictor, if there is one."""
        rows = self.correlations.filter(
            pl.col("filter") == which,
            pl.col("outcome") == outcome,
            pl.col("predictor") == predictor,
        )
        return rows.row(0, named=True) if len(rows) else None

    def value(self, which: str, outcome: str, predictor: str, column: str = "rho") -> float | None:
        """One number of that row."""
        row = self.found(which, outcome, predictor)
        return None if row is None else row[column]

    @property
    def outcomes(self) -> list[str]:
        """The outcomes of the targets, their mean last."""
        return outcome_names(self.tidy)

    @property
    def predictors(self) -> list[str]:
        """STAMP in its forms, then the source metric, plain and class-matched."""
        names = self.correlations["predictor"].unique(maintain_order=True).to_list()
        return sorted(names, key=lambda name: name in OF_SOURCE)

    @property
    def source(self) -> str:
        """The source metric in words."""
        return METRICS[self.tidy["metric"][0]]

    @property
    def control(self) -> str:
        """What partial correlations are given, in words: class-matched where that is another."""
        return self.name(SOURCE_MATCHED if SOURCE_MATCHED in self.predictors else SOURCE_METRIC)

    def kept(self, which: str) -> int:
        """How many models a filter keeps."""
        row = self.found(which, MEAN, SOURCE_METRIC)
        return 0 if row is None else row["n"]

    def name(self, predictor: str) -> str:
        """A predictor in words."""
        if predictor in OF_SOURCE:
            return self.source if predictor == SOURCE_METRIC else f"class-matched {self.source}"
        return NAMES.get(predictor, f"STAMP, {predictor.removeprefix('stamp_')} pairs")


def read_finished(seed: int, folder: Path) -> Finished:
    """The tables that a finished run left in a study's folder."""
    tables = folder / "statistics"
    texts = ["filter", "outcome", "predictor"]
    return Finished(
        seed=seed,
        board=read_table(tables / "scores.parquet", study=folder.name),
        tidy=read_table(tables / "outcomes.parquet", study=folder.name),
        correlations=pl.read_csv(
            tables / "correlations.csv",
            schema_overrides=dict.fromkeys(texts, pl.String),
            infer_schema_length=None,
        ),
    )


def read_plan() -> Plan:
    """The embedded configuration."""
    document = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    folders = {name: f"{ROOT}/config/{name}" for name in ("studies", "zoo")}
    folders["datasets"] = f"{ROOT}/config/datasets.yaml"
    return load({**document, "folders": folders})


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table, the first ``left`` columns aligned left, the others right."""
    rule = ["---" if column < left else "---:" for column in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def number(value: float | None) -> str:
    """Two decimals, or a dash where there is no value."""
    return NONE if value is None else f"{value:.2f}"


def listed(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def times(count: int) -> str:
    """``once``, or how many times."""
    return "once" if count == 1 else f"{count} times"


def summary(runs: Sequence[Finished]) -> str:
    """Rho with the mean over outcomes: each seed with its interval, and the mean over seeds."""
    rows = []
    for which in FILTERS:
        for predictor in runs[0].predictors:
            found = [run.found(which, MEAN, predictor) for run in runs]
            cells = [NONE if row is None else interval(row) for row in found]
            values = [row["rho"] for row in found if row is not None and row["rho"] is not None]
            mean = number(fmean(values)) if len(values) == len(runs) else NONE
            if any(cell != NONE for cell in cells):
                rows.append([which, runs[0].name(predictor), *cells, mean])
    head = ["models", "predictor", *(f"seed {run.seed}" for run in runs), "mean"]
    return markdown(head, rows, left=2)


def interval(row: Mapping[str, Any]) -> str:
    """A correlation with its bootstrap interval and its number of models."""
    if row["rho"] is None:
        return NONE
    low, high = number(row["bootstrap_low"]), number(row["bootstrap_high"])
    return f"{row['rho']:.2f} [{low}, {high}], n={row['n']}"


def detail(run: Finished, which: str) -> str:
    """Rho of every predictor with every outcome, and STAMP's partials given the source metric."""
    whole_n = run.kept(which)

    def cell(outcome: str, predictor: str, column: str) -> str:
        row = run.found(which, outcome, predictor)
        if row is None or row[column] is None:
            return NONE
        fewer = f" (n={row['n']})" if row["n"] != whole_n else ""
        return f"{row[column]:.2f}{fewer}"

    plain = [
        [run.name(predictor), *(cell(outcome, predictor, "rho") for outcome in run.outcomes)]
        for predictor in run.predictors
    ]
    partial = [
        [
            f"{run.name(predictor)}, given the {run.control}{how}",
            *(cell(outcome, predictor, column) for outcome in run.outcomes),
        ]
        for column, how in PARTIALS.items()
        for predictor in run.predictors
        if predictor not in OF_SOURCE
    ]
    head = [f"seed {run.seed}, {which}, n={whole_n}", *run.outcomes]
    return markdown(head, [*plain, *partial])


def flag_table(runs: Sequence[Finished]) -> str:
    """The health flags of every model under every seed."""
    words = [
        {row["model"]: flags.words(row) for row in run.board.iter_rows(named=True)} for run in runs
    ]
    head = ["model", *(f"seed {run.seed}" for run in runs)]
    rows = [[model, *(each[model] or NONE for each in words)] for model in words[0]]
    return markdown(head, rows, left=len(head))


def compared(run: Finished, which: str, outcome: str) -> int | None:
    """1, 0 or -1 as STAMP's rho is above, at or below the source metric's; None without either."""
    ours, theirs = (run.value(which, outcome, name) for name in ("stamp", SOURCE_METRIC))
    if ours is None or theirs is None:
        return None
    return 0 if abs(ours - theirs) < 1e-9 else 1 if ours > theirs else -1


def on_the_mean(runs: Sequence[Finished], which: str) -> str:
    """One sentence: STAMP beside the source metric on the mean over outcomes, seed by seed."""
    said = {1: "above", 0: "equal", -1: "below", None: "not defined"}
    parts = [
        f"{number(run.value(which, MEAN, 'stamp'))} against "
        f"{number(run.value(which, MEAN, SOURCE_METRIC))} for seed {run.seed} "
        f"({said[compared(run, which, MEAN)]})"
        for run in runs
    ]
    return (
        f"With the mean over outcomes, STAMP's rho against that of the {runs[0].source} is "
        f"{listed(parts)}."
    )


def on_each(runs: Sequence[Finished], which: str) -> str:
    """How often STAMP's rho is above and below over single outcomes and seeds, and where below."""
    signs: dict[int | None, list[tuple[str, int]]] = {1: [], 0: [], -1: [], None: []}
    for run in runs:
        for outcome in run.outcomes:
            if outcome != MEAN:
                signs[compared(run, which, outcome)].append((outcome, run.seed))
    total = sum(map(len, signs.values()))
    text = (
        f"Over {total} pairs of a single outcome and a seed, STAMP's rho is above that of the "
        f"{runs[0].source} {times(len(signs[1]))}, equal {times(len(signs[0]))}, below "
        f"{times(len(signs[-1]))}"
    )
    text += f", and not defined {times(len(signs[None]))}." if signs[None] else "."
    for sign, word in ((1, "above"), (-1, "below")):
        if signs[sign]:
            text += f" It is {word} for {listed(places(signs[sign]))}."
    return text


def places(found: Iterable[tuple[str, int]]) -> list[str]:
    """Outcomes with the seeds they were found under."""
    seeds: dict[str, list[str]] = {}
    for outcome, seed in found:
        seeds.setdefault(outcome, []).append(str(seed))
    return [
        f"{outcome} (seed{'s' if len(which) > 1 else ''} {', '.join(which)})"
        for outcome, which in seeds.items()
    ]


def beyond_the_source(runs: Sequence[Finished], which: str) -> str:
    """What STAMP adds to the source metric on the mean over outcomes, with p-values.

    Plain, which favours the score, and corrected for the measurement error of the source metric.
    """
    said = []
    for column, how in PARTIALS.items():
        parts, small = [], 0
        for run in runs:
            rho = run.value(which, MEAN, "stamp", column)
            p = run.value(which, MEAN, "stamp", f"{column}_p")
            small += p is not None and p < SMALL_P
            text = f"{number(rho)} (p {NONE if p is None else f'{p:.3f}'})"
            parts.append(f"{text} for seed {run.seed}")
        said.append(
            f"Given the {runs[0].control}{how}, STAMP's partial rho with the mean over outcomes is "
            f"{listed(parts)}; p is below {SMALL_P} for {small} of {len(runs)} seeds."
        )
    return " ".join(said)


def facts(study: Study, runs: Sequence[Finished]) -> str:
    """The models, pairs and outcomes, and how far the metrics range."""
    first = runs[0]
    outcomes = [name for name in first.outcomes if name != MEAN]
    lines = [
        f"{len(first.board)} models, {study.pairs.semantic} pairs. Rule that excludes models: "
        f"{study.calibration.exclude}. Outcomes: {listed(outcomes)}."
    ]
    for run in runs:
        pairs = int(run.board["n_semantic"].to_numpy().max())
        source, mean = (span(run.tidy, name) for name in (SOURCE, MEAN))
        text = f"{pairs:,} pairs; {run.source} {source}, mean over outcomes {mean}"
        gaps = [name for name in run.outcomes if gap(run.tidy, name)]
        left_out = f"; not in the mean, as a model has no value: {listed(gaps)}" if gaps else ""
        lines.append(f"- seed {run.seed}: {text}{left_out}.")
    return "\n".join([lines[0], "", *lines[1:]])


def span(tidy: pl.DataFrame, outcome: str) -> str:
    """The least and the largest value of an outcome over models."""
    values = tidy.filter(pl.col("outcome") == outcome)["value"].drop_nulls().to_list()
    return f"{min(values):.2f} to {max(values):.2f}" if values else NONE


def gap(tidy: pl.DataFrame, outcome: str) -> bool:
    """Whether a model has no value of an outcome."""
    return tidy.filter(pl.col("outcome") == outcome)["value"].null_count() > 0


def section(study: Study, runs: Sequence[Finished]) -> list[str]:
    """All that the page says of one study."""
    source, level = runs[0].source, f"{study.statistics.level:.0%}"
    sentences = (on_the_mean, on_each, beyond_the_source)
    said = [
        f"- {words} (`{which}`). {' '.join(sentence(runs, which) for sentence in sentences)}"
        for which, words in FILTERS.items()
    ]
    return [
        f"## {study.title}",
        *([f"**{study.notice}**"] if study.notice else []),
        facts(study, runs),
        "### Rho with the mean over outcomes",
        f"In brackets the {level} interval of a bootstrap over models.",
        summary(runs),
        f"### STAMP and the {source}",
        "\n".join(said),
        "### Every outcome and seed",
        f"Spearman's rho over models; n stands where it is not that of the {source}."
        + (PLAIN_ONE if runs[0].control != source else ""),
        *(detail(run, which) for run in runs for which in FILTERS),
        "### Flags",
        flag_table(runs),
    ]


PLAIN_ONE = " Where the class-matched source metric has a dash, it is the plain one."
INTRODUCTION = """
Whether a score that needs no target data ranks models as the targets do, next to the source metric,
which needs labels at the source and no target data either. The source metric is over all classes.
The class-matched one is over the classes of a target, accuracies weighted to their shares there, so
it uses the target's labels; partial correlations are given that one. `all` keeps every model,
degenerate ones at the raw value of the formula (the headline score only: the other scores have no
value there, so that their n is smaller). `declared` leaves out degenerate models and those that the
study's rule excludes.

Numbers of earlier versions differ for these reasons. The headline is the exact estimator, over all
random pairs; it was the sampled one, which stands beside it. The source metric is over all classes
again; for a time it was over the classes of each outcome, which is now the class-matched one. On
the digits that one is also weighted to the mix of classes of each target, which moved the partials
there. Corrected partials take the error of the source metric by patient, with what models that are
measured on the same images share of it. The networks have the same recipes and were trained again:
their metrics differ in the second decimal, as between processors, and so do the ranks. The places
of STAMP among other predictors, which README has, moved because nuclear norm, MaNo, MDE, energy and
dispersion are of the target's images and further predictors were added.
""".strip()


def page(results: Mapping[int, Path]) -> str:
    """The page for the results of each seed, as Markdown."""
    seeds = listed([str(seed) for seed in results])
    packages = listed([f"{name} {version(name)}" for name in PACKAGES])
    parts = [
        f"Generated by `make seeds`, that is `{COMMAND}`; what is written by hand here gets lost.",
        f"# The embedded default with seeds {seeds}",
        INTRODUCTION,
        f"Written with {packages}.",
    ]
    for name, study in read_plan().studies.items():
        runs = [read_finished(seed, folder / name) for seed, folder in results.items()]
        parts += section(study, runs)
    return "\n\n".join(parts) + "\n"


def run_seed(seed: int) -> Path:
    """The folder with the finished results of a seed; Snakemake makes what is not there yet."""
    results = f"results/seed-{seed}"
    command = [sys.executable, "-m", "snakemake", "--cores", "8", "--resources", "gpu=1"]
    done = subprocess.run(
        [*command, "--config", f"seed={seed}", f"results={results}"],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
    )
    if done.returncode:
        sys.exit(f"seed {seed} did not finish: {PAGE.relative_to(ROOT)} was not written")
    return ROOT / results


def main() -> None:
    """Run every seed, then write the page."""
    text = page({seed: run_seed(seed) for seed in SEEDS})
    with atomic_write(PAGE) as part:
        part.write_text(text)
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
