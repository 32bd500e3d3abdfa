"""How scores and outcomes differ between the models' objectives."""

from __future__ import annotations

import polars as pl

from stamp.report import model_groups
from stamp.report.analysis import AnalysisData
from stamp.report.model_groups import MODELS, TABLE

__all__ = ["MODELS", "TABLE", "models", "sentence", "table"]

COLUMN = "objective"


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's objective, score and outcomes."""
    return model_groups.models(data, COLUMN)


def table(data: AnalysisData) -> pl.DataFrame:
    """The objectives' scores and outcomes, tested against each other."""
    return model_groups.table(data, COLUMN)


def sentence(table: pl.DataFrame) -> str:
    """What sets the objectives apart, for the score and for the mean outcome."""
    return model_groups.sentence(table, COLUMN)
