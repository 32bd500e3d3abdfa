"""How scores and outcomes differ between the models' regimes."""

from __future__ import annotations

import polars as pl

from stamp.report import grouping
from stamp.report.analysis import Data
from stamp.report.grouping import MODELS, TABLE

__all__ = ["MODELS", "TABLE", "models", "sentence", "table"]

COLUMN = "regime"


def models(data: Data) -> pl.DataFrame:
    """Every model's regime, score and outcomes."""
    return grouping.models(data, COLUMN)


def table(data: Data) -> pl.DataFrame:
    """The regimes' scores and outcomes, tested against each other."""
    return grouping.table(data, COLUMN)


def sentence(table: pl.DataFrame) -> str:
    """What sets the regimes apart, for the score and for the mean outcome."""
    return grouping.sentence(table, COLUMN)
