"""Whether any data have the printed correlations of variables that share models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product
from math import sqrt

import numpy as np

from stamp.paper.claims import Claim, Range, Text, measured, stated
from stamp.paper.printed_numbers import Printed, corners, number, numbers
from stamp.paper.printed_tables import OURS, REFERENCE, TARGETS, Paper, values
from stamp.stats.correlations.dependent_correlations import (
    difference_interval,
    shared_range,
    williams,
)
from stamp.stats.ranks import Array, mid_ranks, spearman


def claims(paper: Paper) -> list[Claim]:
    """Correlations that share models: are there any data that have all of them?"""
    table = paper.table("temporal_delta")
    found = float(spearman(values(table["temporal"]), values(table["synthetic"])))
    one = number(paper.text("ce_only_rho").printed)
    other = number(paper.cell("baseline_comparison", "Synth. STAMP", "vindr"))
    least = corners(lambda a, b: shared_range(a, b)[0], one, other)[0]
    synthetic = Text(
        "rho with VinDr AUROC of temporal and of synthetic STAMP, beside the columns of Table 9",
        "7, Table 2, Table 9",
        f"{one.text}, {other.text}",
    )
    return [
        stated(
            synthetic,
            f"rho of the two columns is {found:.3f}",
            found >= least,
            f"the two need at least {least:.3f} of each other, if the second column is synthetic "
            "STAMP as its header says",
            found >= least,
        ),
        *(objectnet(paper, key) for key in ("objectnet_partial", "objectnet_partial_text")),
        baseline(paper),
        components(paper),
        medical_triples(paper),
        failures(paper),
        *nuisance(paper),
    ]


def partial_of(r1: float, r2: float, r12: float) -> float:
    """Kendall's partial correlation of x and y given z: r1 = r(x,y), r2 = r(z,y), r12 = r(x,z)."""
    return (r1 - r2 * r12) / sqrt((1 - r2**2) * (1 - r12**2))


def implied_shared(r1: float, r2: float, partial: float) -> list[float]:
    """Every r(x, z) that r(x, y), r(z, y) and the partial of x and y given z leave, ascending.

    The roots of a quadratic equation that have the partial's sign: none, one or two.
    """
    rest = partial**2 * (1 - r2**2)
    roots = np.roots([r2**2 + rest, -2 * r1 * r2, r1**2 - rest])
    real = sorted(float(root.real) for root in roots if abs(root.imag) < 1e-7)
    return [root for root in real if abs(root) < 1 - 1e-9 and (r1 - r2 * root) * partial > 0]


def least_shared(r1: float, partial: float) -> float:
    """The least r(x, z) at which a partial correlation below r(x, y) can come about.

    Over all r(z, y) the partial of x and y given z is at least sqrt((r1^2 - s^2) / (1 - s^2)),
    with s = r(x, z); so s^2 >= (r1^2 - partial^2) / (1 - partial^2). A partial above r1 needs none.
    """
    return sqrt(max(r1**2 - partial**2, 0.0) / (1 - partial**2))


def dollar_street(paper: Paper) -> list[Range]:
    """The rho of STAMP-TS and ImageNet accuracy that Dollar Street's three numbers leave."""
    row = {name: paper.cell("natural", "Dollar Street", name) for name in ("rho", "partial_rho")}
    texts = row["rho"], paper.text("id_dollar_street").printed, row["partial_rho"]
    parts = [number(text) for text in texts]
    found = implied_shared(*(part.value for part in parts))
    return [corners(_root(place), *parts) for place in range(len(found))]


def objectnet(paper: Paper, key: str) -> Claim:
    """A partial correlation on ObjectNet beside that of Table 3 and what Dollar Street leaves."""
    text, table = paper.text(key), paper.cell("natural", "ObjectNet", "partial_rho")
    rho = number(paper.cell("natural", "ObjectNet", "rho"))
    needed, left = corners(least_shared, rho, number(text.printed)), dollar_street(paper)
    fits = [span for span in left if span[1] >= needed[0]]
    said = " or ".join(f"{low:.3f} to {high:.3f}" for low, high in left)
    return measured(
        text,
        number(table).value,
        f"Table 3. It needs a rho of STAMP-TS and ImageNet accuracy of at least {needed[0]:.3f}; "
        f"Dollar Street's numbers leave {said}",
        possible=bool(fits),
    )


def baseline(paper: Paper) -> Claim:
    """STAMP-TS beside ImageNet accuracy on Dollar Street."""
    ours = number(paper.cell("natural", "Dollar Street", "rho")).value
    other = paper.value("id_dollar_street")
    notes = []
    for low, high in dollar_street(paper):
        shared = (low + high) / 2
        found = difference_interval(ours, other, shared, 27, ranks=True)
        p = williams(ours, other, shared, 27).p
        notes.append(
            f"with rho {shared:.3f} between the two [{found.low:.3f}, {found.high:.3f}], "
            f"Williams p {p:.3f}"
        )
    text = Text(
        "STAMP-TS outperforms ImageNet accuracy on Dollar Street",
        "C.2",
        f"{ours:.3f} against {other:.3f}",
    )
    about = f"95 % interval of the difference by Zou: {'; '.join(notes)}"
    return stated(text, f"difference {ours - other:.3f}", ours > other, about)


def _root(place: int) -> Callable[..., float]:
    """The root of that place; NaN where rounding leaves fewer."""

    def function(r1: float, r2: float, partial: float) -> float:
        found = implied_shared(r1, r2, partial)
        return found[place] if place < len(found) else float("nan")

    return function


def components(paper: Paper) -> Claim:
    """-SV, AV and STAMP with VinDr AUROC, beside the three columns of Table 8.

    An AUROC with these correlations exists where r' R^-1 r <= 1, R being the rank correlations of
    SV, AV and STAMP. Which 40 models are meant is not printed: all subsets of those with SV and AV.
    """
    table = paper.table("stamp_main").drop_nulls("sv")
    columns = np.stack([values(table[name]) for name in ("sv", "av", "stamp")])
    printed = {
        row["variant"]: number(row["rho"]) for row in paper.table("ablation").iter_rows(named=True)
    }
    minus = printed["-SV only"]
    ends = [(-minus.high, -minus.low)] + [
        (each.low, each.high) for each in (printed["AV only"], printed["STAMP = 1-SV/AV"])
    ]
    n, text = (
        40,
        Text(
            "rho with VinDr AUROC of -SV, AV and STAMP, of 40 models",
            paper.where("ablation"),
            ", ".join(each.text for name, each in printed.items() if name != "SV/AV (raw ratio)"),
        ),
    )
    explained = least_explained(columns, n, ends)
    return stated(
        text,
        f"least share of an AUROC's ranks that the three would explain: {explained:.3f}",
        explained <= 1,
        f"over all choices of {n} of the {columns.shape[1]} models with SV and AV and all "
        "roundings; above 1 no AUROC has the three correlations",
        explained <= 1,
    )


def least_explained(columns: Array, n: int, ends: Sequence[tuple[float, float]]) -> float:
    """The least r' R^-1 r over all subsets of n models and all correlations r within their ends.

    A convex form is least inside the box as often as at its corners: each correlation is at its
    low end, at its high end or free, and of those 3^k the feasible ones are compared.
    """
    kept = np.array(list(combinations(range(columns.shape[1]), n)))
    ranks = mid_ranks(columns[:, kept])
    ranks -= ranks.mean(axis=-1, keepdims=True)
    ranks /= np.linalg.norm(ranks, axis=-1, keepdims=True)
    inverse = np.linalg.inv(np.einsum("asn,bsn->sab", ranks, ranks))
    low, high = np.array(ends).T
    least = np.inf
    for place in map(np.array, product((0, 1, 2), repeat=len(ends))):
        r, free = np.tile(np.where(place == 0, low, high), (len(inverse), 1)), place == 2
        if free.any():
            pull = inverse[:, free][:, :, ~free] @ r[:, ~free, None]
            r[:, free] = -np.linalg.solve(inverse[:, free][:, :, free], pull)[:, :, 0]
        inside = ((r >= low) & (r <= high)).all(axis=1)
        explained = np.einsum("sa,sab,sb->s", r, inverse, r)[inside]
        least = min(least, explained.min(initial=np.inf))
    return float(least)


def shared_medical(paper: Paper) -> Range:
    """rho of STAMP and NIH AUROC that the printed partial correlation on VinDr-CXR implies."""
    parts = (
        paper.cell("main_results", "VinDr-CXR", "rho"),
        paper.cell("baseline_comparison", REFERENCE, "vindr"),
        paper.text("partial_rho").printed,
    )
    return corners(_root(0), *(number(part) for part in parts))


def medical_triples(paper: Paper) -> Claim:
    """Whether that rho also fits CheXpert and MIMIC-CXR."""
    low, high = shared_medical(paper)
    bounds = [
        corners_of_range(
            number(paper.cell("baseline_comparison", OURS, name)),
            number(paper.cell("baseline_comparison", REFERENCE, name)),
        )
        for name in TARGETS
    ]
    fits = all(least <= high and low <= most for least, most in bounds)
    text = Text(
        "rho of STAMP and of NIH AUROC on three targets, and the partial rho on VinDr-CXR",
        "B.6, Table 2",
        paper.text("partial_rho").printed,
    )
    said = ", ".join(f"{least:.2f} to {most:.2f}" for least, most in bounds)
    return stated(
        text,
        f"rho(STAMP, NIH AUROC) is {low:.3f} to {high:.3f}",
        fits,
        f"implied by the partial; the three targets allow {said}",
        fits,
    )


def corners_of_range(one: Printed, other: Printed) -> Range:
    """What two printed correlations with a third variable allow between themselves."""
    return (
        corners(lambda a, b: shared_range(a, b)[0], one, other)[0],
        corners(lambda a, b: shared_range(a, b)[1], one, other)[1],
    )


def failures(paper: Paper) -> Claim:
    """Whether three rank disagreements fit the printed rho and the ranks of Table 8.

    rho = 1 - 6 S / (n^3 - n) gives S, the sum of squared rank differences of all models.
    """
    text = paper.text("failure_ranks")
    n = text.n or 0
    apart = [int(each.value) for each in numbers(text.printed)]
    rho = number(paper.cell("main_results", "VinDr-CXR", "rho"))
    total = (1 - rho.low) * (n**3 - n) / 6
    table = paper.table("stamp_main")
    ranks = dict(zip(table["architecture"], mid_ranks(values(table["stamp"])), strict=True))
    models = ("ResNet50-SE", "DeiT-Base/16", "MViTv2-T")
    placed = all(
        ranks[name] - far >= 1 or ranks[name] + far <= n
        for name, far in zip(models, apart, strict=True)
    )
    squares = sum(far**2 for far in apart)
    fits = placed and squares <= total
    return stated(
        text,
        f"they make up {squares} of a sum of {total:.0f} squared rank differences",
        fits,
        "the sum follows from rho 0.855 of 44 models; the AUROC of single models is not printed",
        fits,
    )


def nuisance(paper: Paper) -> list[Claim]:
    """The nuisance ratio is one minus Aug-STAMP, so that its rho is minus that of Aug-STAMP."""
    synthetic = number(paper.cell("baseline_comparison", "Synth. STAMP", "vindr")).value
    table = paper.table("temporal_delta")
    own = float(spearman(values(table["temporal"]), values(table["synthetic"])))
    note = (
        "by the identity ratio = 1 - Aug-STAMP, of the 31 models with Synthetic STAMP; the text "
        "has 35 and names no augmentation"
    )
    return [
        measured(paper.text("nuisance_vindr"), -synthetic, note),
        measured(paper.text("nuisance_stamp"), -own, f"{note}, from Table 9"),
    ]
