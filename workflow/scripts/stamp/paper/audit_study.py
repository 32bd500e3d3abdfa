"""A finished study's values beside the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

import polars as pl

from stamp.core.errors import UserError
from stamp.paper import predictor_table
from stamp.paper.audit_inputs import FILES, MEDICAL, STUDIES, with_predictors
from stamp.paper.printed_numbers import number
from stamp.paper.printed_tables import Paper

PLAIN, MATCHED = "STAMP", "class-matched STAMP"
# the study's target and score of each row of Table 1
ROWS = {
    ("VinDr-CXR", PLAIN): "VinDr-CXR",
    ("CheXpert", PLAIN): "CheXpert",
    ("MIMIC-CXR", PLAIN): "MIMIC-CXR",
    ("RSNA", PLAIN): "RSNA (macro)",
    ("RSNA", MATCHED): "RSNA (CM, Pneu.)",
}


@dataclass(frozen=True, slots=True)
class Beside:
    """One number of the paper and of a study; ``models`` is the study's choice of models."""

    study: str
    quantity: str
    of: str
    models: str
    printed: str
    found: float | None
    difference: float | None


def beside(paper: Paper, folders: Iterable[Path]) -> pl.DataFrame:
    """rho, partial rho, n, STAMP and predictors of finished studies beside what is printed."""
    rows = [row for folder in folders for row in _study(paper, folder)]
    types = [pl.String] * 5 + [pl.Float64] * 2
    schema = dict(zip(Beside.__dataclass_fields__, types, strict=True))
    return pl.DataFrame([astuple(row) for row in rows], schema=schema, orient="row")


def _study(paper: Paper, folder: Path) -> Iterator[Beside]:
    if folder.name not in STUDIES:
        raise UserError(f"{folder}: the paper has no study '{folder.name}': {', '.join(STUDIES)}")
    main = _read(folder / FILES[0], ("target", "score", "models", "n", "rho", "partial"))
    medical = folder.name in MEDICAL
    yield from _correlations(paper, folder.name, main, medical)
    if medical:
        yield from _scores(paper, folder)
    if with_predictors(folder.parent, [folder.name]):
        for quantity, of, models, printed, found in predictor_table.beside(paper, folder):
            yield _row(folder.name, quantity, of, models, printed, found)


def _correlations(paper: Paper, study: str, main: pl.DataFrame, medical: bool) -> Iterator[Beside]:
    """rho, partial rho and n of each target that the paper has too."""
    table = "main_results" if medical else "natural"
    known = set(paper.table(table)[paper.table(table).columns[0]])
    partial = {"VinDr-CXR": paper.text("partial_rho").printed} if medical else {}
    for row in main.iter_rows(named=True):
        place = row["target"], row["score"]
        title = ROWS.get(place, "") if medical else (place[0] if place[1] == PLAIN else "")
        if title not in known:
            continue
        printed = {
            "rho": paper.cell(table, title, "rho"),
            "partial rho": partial.get(title)
            if medical
            else paper.cell(table, title, "partial_rho"),
            "n": paper.cell(table, title, "n") if medical else paper.text("zoo_natural").printed,
        }
        found = {"rho": row["rho"], "partial rho": row["partial"], "n": row["n"]}
        for quantity, text in printed.items():
            if text is not None:
                yield _row(study, quantity, title, row["models"], text, found[quantity])


def _scores(paper: Paper, folder: Path) -> Iterator[Beside]:
    """STAMP of each model that Table 8 has too, by its label."""
    board = _read(folder / FILES[1], ("label", "stamp"))
    stamp = dict(board.select("label", "stamp").iter_rows())
    for row in paper.table("stamp_main").iter_rows(named=True):
        name = row["architecture"]
        if name in stamp:
            yield _row(folder.name, "STAMP", name, "", row["stamp"], stamp[name])


def _row(
    study: str, quantity: str, of: str, models: str, printed: str, found: float | None
) -> Beside:
    value = None if found is None else float(found)
    difference = None if value is None else value - number(printed).value
    return Beside(study, quantity, of, models, printed, value, difference)


def _read(file: Path, needed: Iterable[str]) -> pl.DataFrame:
    table = pl.read_csv(file, infer_schema_length=None)
    if absent := [name for name in needed if name not in table.columns]:
        raise UserError(f"{file}: no column '{absent[0]}'; run the study again")
    return table
