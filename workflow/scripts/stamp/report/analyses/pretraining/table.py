"""How scores and outcomes differ between models of different pretraining data."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from stamp.config.study import NOT_SAID
from stamp.report import analysis, comparability, model_groups
from stamp.report.analysis import AnalysisData
from stamp.report.model_groups import MODELS, TABLE

__all__ = ["MODELS", "TABLE", "models", "sentence", "table"]

COLUMN = "pretraining"


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's pretraining, score and outcomes."""
    return model_groups.models(_said(data), COLUMN)


def table(data: AnalysisData) -> pl.DataFrame:
    """The scores and outcomes of each kind of pretraining, tested against each other."""
    return model_groups.table(_said(data), COLUMN)


def sentence(table: pl.DataFrame) -> str:
    """What sets the strata apart, and that models of different ones do not compare."""
    said = model_groups.sentence(table, COLUMN)
    return said if analysis.why(table) else f"{said} {comparability.WENT_WRONG}"


def _said(data: AnalysisData) -> AnalysisData:
    """The data with a stratum of their own for models of which nobody said it."""
    every = {key: {COLUMN: NOT_SAID, **said} for key, said in data.models.items()}
    return replace(data, models=every)
