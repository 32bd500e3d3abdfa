"""How numbers are written: with three decimals in sentences, with two in figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

RHO, MINUS, DASH = "\u03c1", "\u2212", "\u2013"


def number(value: float | None) -> str:
    """A correlation for a sentence, with a real minus sign."""
    return "undefined" if value is None else f"{value:.3f}".replace("-", MINUS)


def p_text(value: float | None) -> str:
    """A p for a sentence."""
    if value is None:
        return "p undefined"
    return f"p = {value:.4f}" if value >= 0.00005 else "p < 0.0001"


def short_number(value: float | None) -> str:
    """A correlation for a figure, with a real minus sign, but never minus zero."""
    return "undefined" if value is None else f"{round(value, 2) + 0.0:.2f}".replace("-", MINUS)


def short_p(value: float | None) -> str:
    """A p for a figure: ``p = 0.012``, or ``p < 0.001``."""
    if value is None:
        return "p undefined"
    return f"p = {value:.3f}" if value >= 0.001 else "p < 0.001"


def level_text(texts: Mapping[str, Any]) -> str:
    """The level of the study's intervals."""
    return f"{100 * texts['level']:g} %"


def models_text(counts: pl.Series) -> str:
    """How many models some numbers are over: one count, or the least and the largest."""
    found = counts.drop_nulls().unique().sort().to_list()
    if not found:
        return "no models"
    return f"{found[0]} models" if len(found) == 1 else f"{found[0]} to {found[-1]} models"


def inside(title: str) -> str:
    """An outcome's title within a sentence: the mean begins small, a name stays as it is."""
    return title.replace("Mean of", "mean of", 1) if title.startswith("Mean of") else title
