"""Scores and outcomes by what the models were pretrained on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from stamp.report.analyses.pretraining.table import COLUMN
from stamp.report.plot import violins


def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The figure of the analysis ``pretraining`` from its two tables."""
    return violins.draw(table, models, texts, COLUMN)
