"""The printed tests of STAMP against NIH AUROC, which share models and targets."""

from __future__ import annotations

from math import isnan

from stamp.paper.claims import Claim, Range, measured, stated
from stamp.paper.printed_numbers import corners, numbers
from stamp.paper.printed_tables import TARGETS, Paper
from stamp.paper.themes.correlation_triples import shared_medical
from stamp.stats.correlations.dependent_correlations import (
    difference_interval,
    steiger,
    tost,
    williams,
)

MARGIN = 0.1  # difference of two correlations below which we would call them equivalent


def claims(paper: Paper) -> list[Claim]:
    """Tests of STAMP against NIH AUROC on probit scale.

    The correlation of the two scores is not printed; the one that the partial correlation implies
    for their ranks stands in for it.
    """
    shared = shared_medical(paper)
    tests = {name: steiger_range(paper, name, shared) for name in TARGETS}
    found = []
    for name, bounds in tests.items():
        ours, theirs = (each.value for each in numbers(paper.text(f"probit_{name}").printed))
        middle = sum(shared) / 2
        interval = difference_interval(ours, theirs, middle, 44)
        p = williams(ours, theirs, middle, 44).p
        note = (
            f"with rho {middle:.2f} between the scores, as the partial rho implies; Williams "
            f"p {p:.2f}; difference {interval.difference:.3f} "
            f"[{interval.low:.3f}, {interval.high:.3f}]"
        )
        found.append(measured(paper.text(f"steiger_{name}"), bounds, note))
    least = min(bounds[0] for bounds in tests.values()), min(bounds[1] for bounds in tests.values())
    rsna = steiger_range(paper, "rsna", shared)
    return [
        measured(
            paper.text("steiger_least"),
            least,
            "the least of the three; Section C.1 itself prints 0.489, 0.523 and 0.496",
        ),
        *found,
        stated(
            paper.text("steiger_rsna"),
            f"p {rsna[1]:.0e}",
            isnan(rsna[1]),
            "two correlations with one target are what the test is for",
        ),
        equivalence(paper, shared),
    ]


def steiger_range(paper: Paper, name: str, shared: Range) -> Range:
    """Steiger's p over the roundings of both correlations and of the one between the scores."""
    ours, theirs = numbers(paper.text(f"probit_{name}").printed)
    found = [corners(lambda a, b, s=s: steiger(a, b, s, 44).p, ours, theirs) for s in shared]
    return min(low for low, _ in found), max(high for _, high in found)


def equivalence(paper: Paper, shared: Range) -> Claim:
    """No significant difference is not equivalence: two one-sided tests ask for that."""
    middle = sum(shared) / 2
    found = []
    for name in TARGETS:
        ours, theirs = (each.value for each in numbers(paper.text(f"probit_{name}").printed))
        found.append(tost(ours, theirs, middle, 44, MARGIN))
    said = ", ".join(f"{each.p:.2f}" for each in found)
    return stated(
        paper.text("equivalence"),
        f"two one-sided tests have p {said}",
        all(each.equivalent for each in found),
        f"of a difference of at least {MARGIN}, our choice, on VinDr-CXR, CheXpert and MIMIC-CXR",
    )
