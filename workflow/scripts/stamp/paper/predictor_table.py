"""The paper's Table 2, predictors beside STAMP, in its own layout: printed, and of studies.

The paper's rows are over 31, 40 or 44 models, by what was cached. A study's predictors stand here
twice: each over all the models that have it, as in the paper, and all over one common set, which is
what can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stamp.paper.audit_inputs import BASELINES
from stamp.paper.page import markdown
from stamp.paper.printed_tables import OURS, REFERENCE, Paper

TABLE = "baseline_comparison"
TARGETS = ("vindr", "chexpert", "rsna", "mimic")  # columns of the table, and the studies' targets
AVERAGE = "average"
HEAD = ("Method", "Dom.", "VinDr", "Chex.", "RSNA", "MIMIC", "Avg.", "n")
# the study's predictor of each of the paper's methods
PREDICTORS = {
    REFERENCE: "source_metric",
    "Entropy": "entropy",
    "Mean Confidence": "confidence",
    "ECE": "ece",
    "MC Dropout": "mc_dropout",
    "TTA Multi": "tta_multi",
    "Emb. Instability": "embedding_instability",
    "FD": "fd",
    "FAS": "feature_alignment",
    "Aug-STAMP-rot.": "aug_rotation",
    "Synth. STAMP": "aug_composite",
    "ATC": "atc_mc",
    "AoTL": "aline_d",
    OURS: "stamp",
}
SETS = {
    "mixed": "each predictor over all the models that have it, as in the paper",
    "declared": "all predictors over one common set of models",
}
NO_MIXED = "Not there: the study needs `mixed: true` in its `statistics`."
ABOUT = """
Raw Spearman correlations, as the paper prints them: no sign is turned. The average is over all four
targets, as the paper's is, RSNA included, whose images are NIH's. Where n differs between targets,
the least and the largest stand there. FD is read as feature discriminability, ATC as ATC-MC, AoTL
as ALine-D, the synthetic pairs as all augmentations together: the paper defines none of them.
""".strip()


@dataclass(frozen=True, slots=True)
class MethodRow:
    """A row of the table: rho on each target, None where there is none, and of how many models."""

    rho: Mapping[str, float | None]
    n: tuple[int, ...]

    @property
    def average(self) -> float | None:
        """The mean over all targets; None where one is missing."""
        known = [value for value in self.rho.values() if value is not None]
        return sum(known) / len(known) if len(known) == len(TARGETS) else None

    @property
    def models(self) -> str:
        """n, or the least and the largest."""
        return "-".join(str(n) for n in sorted({min(self.n), max(self.n)})) if self.n else "-"


def rows(folder: Path, which: str) -> dict[str, MethodRow]:
    """The paper's methods in a finished study, over one of ``SETS``; empty where there is none."""
    table = pl.read_csv(folder / BASELINES, infer_schema_length=None)
    chosen = table.filter(pl.col("models") == which)
    if which != "mixed":
        chosen = chosen.filter(pl.col("common").fill_null(False))
    found = {}
    for method, predictor in PREDICTORS.items():
        own = chosen.filter((pl.col("predictor") == predictor) & pl.col("rho").is_not_null())
        rho = dict(own.select("outcome", "rho").iter_rows())
        n = own.filter(pl.col("outcome").is_in(TARGETS))["n"].drop_nulls().to_list()
        if n:
            found[method] = MethodRow({key: rho.get(key) for key in TARGETS}, tuple(n))
    return found


def beside(paper: Paper, folder: Path) -> Iterator[tuple[str, str, str, str, float | None]]:
    """Each printed cell and the study's: quantity, target, models, printed text, number."""
    printed = {row["method"]: row for row in paper.table(TABLE).iter_rows(named=True)}
    for which in SETS:
        for method, row in rows(folder, which).items():
            cells = {**row.rho, AVERAGE: row.average}
            for key, value in cells.items():
                yield f"rho of {method}", key, which, printed[method][key], value


def page(paper: Paper, folders: Iterable[Path]) -> str:
    """The printed table, then the same of each finished study over both sets, as Markdown."""
    table = paper.table(TABLE)
    domain = dict(table.select("method", "domain").iter_rows())
    cells = [[cell or "" for cell in row] for row in table.rows()]
    parts = ["# Predictors beside STAMP, as Table 2", ABOUT, "## Printed", markdown(HEAD, cells)]
    for folder in folders:
        for which, words in SETS.items():
            found = rows(folder, which)
            parts.append(f"## {folder.name}: {words}")
            parts.append(_table(found, domain) if found else NO_MIXED)
    return "\n\n".join(parts) + "\n"


def _table(found: Mapping[str, MethodRow], domain: Mapping[str, str]) -> str:
    lines = []
    for method, row in found.items():
        numbers = [*row.rho.values(), row.average]
        cells = ["-" if value is None else f"{value:+.3f}" for value in numbers]
        lines.append([method, domain[method], *cells, row.models])
    return markdown(HEAD, lines)
