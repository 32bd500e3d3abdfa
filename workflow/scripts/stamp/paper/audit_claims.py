"""All claims by theme, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stamp.paper.claims import Claim
from stamp.paper.printed_tables import Paper
from stamp.paper.themes import consistency, cost, intervals, pools, power, scores, strata, theory

THEMES: dict[str, tuple[str, Callable[[Paper], list[Claim]]]] = {
    "scores": ("Scores of single models", scores.claims),
    "strata": ("Objectives and regimes", strata.claims),
    "intervals": ("p-values and intervals", intervals.claims),
    "consistency": ("Numbers beside each other", consistency.claims),
    "power": ("Power", power.claims),
    "theory": ("Theory", theory.claims),
    "cost": ("Cost and needs", cost.claims),
    "pools": ("Data and pair pools", pools.claims),
}


def audit(paper: Paper, lists: Path | None = None) -> list[tuple[str, Claim]]:
    """Every claim with its theme; ``lists`` is a folder that may hold NIH's split lists."""
    found = []
    for theme, (_, claims) in THEMES.items():
        rows = pools.claims(paper, lists) if theme == "pools" else claims(paper)
        found += [(theme, row) for row in rows]
    return found
