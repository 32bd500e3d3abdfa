"""The power table, by simulation from a Gaussian copula."""

from __future__ import annotations

from math import sqrt

from stamp.paper.claims import Claim, Text, measured, stated
from stamp.paper.printed_tables import Paper, values
from stamp.stats.power import Power, spearman_power

DRAWS = 20_000
PAPER_DRAWS = 10_000
RHO = (0.5, 0.7, 0.8, 0.9)


def claims(paper: Paper) -> list[Claim]:
    """Table 12 cell by cell, and what the text concludes from it."""
    sizes = [int(n) for n in paper.table("statistical")["n"]]
    found = {n: spearman_power(n, RHO, DRAWS) for n in sizes}
    return [*cells(paper, found), *conclusions(paper, found)]


def cells(paper: Paper, found: dict[int, Power]) -> list[Claim]:
    """Every cell; two simulations may differ by three standard errors."""
    rows = []
    for row in paper.table("statistical").iter_rows(named=True):
        n = int(row["n"])
        for place, rho in enumerate(RHO):
            text = Text(
                f"Power at n = {n} and rho {rho}", paper.where("statistical"), row[f"rho_{rho}"]
            )
            power = float(found[n].power[place])
            error = 3 * sqrt(power * (1 - power) * (1 / DRAWS + 1 / PAPER_DRAWS))
            rows.append(measured(text, power, tolerance=error, series="Power of Table 12"))
    return rows


def conclusions(paper: Paper, found: dict[int, Power]) -> list[Claim]:
    """What caption and text say of the studies' own correlations."""
    natural = float(values(paper.table("natural")["rho"]).min())
    medical = values(paper.table("main_results")["rho"])
    three, macro = float(medical[:3].min()), float(medical[3])
    nothing = float(spearman_power(27, 0.0, DRAWS).power)
    weak = float(spearman_power(44, macro, DRAWS).power)
    strong = float(found[44].power[RHO.index(0.7)])
    rows = [
        measured(paper.text(f"power_{n}"), float(found[n].power[RHO.index(0.7)])) for n in (27, 44)
    ]
    half = float(found[27].power[RHO.index(0.5)])
    return [
        *rows,
        measured(paper.text("power_half"), half),
        measured(paper.text("power_natural"), float(spearman_power(27, natural, DRAWS).power)),
        measured(paper.text("power_medical"), float(spearman_power(44, three, DRAWS).power)),
        stated(
            paper.text("power_null"),
            f"rejects {nothing:.3f} at n = 27",
            nothing > 0.5,
            "without a correlation the share of rejections is the size of the test, not its power",
        ),
        stated(
            paper.text("power_all"),
            f"{weak:.2f} for a true rho of {macro}, that of RSNA",
            weak >= strong,
            f"{strong:.4f} is the power for a true rho of 0.7",
        ),
    ]
