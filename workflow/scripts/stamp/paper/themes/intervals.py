"""p-values and intervals that follow from a printed correlation and its n."""

from __future__ import annotations

from math import comb

from stamp.paper.attainable import nearest_spearman, tied_spearman
from stamp.paper.claims import Claim, Text, measured, several, stated, unchecked
from stamp.paper.printed_numbers import corners, number, numbers
from stamp.paper.printed_tables import Paper
from stamp.stats.correlations.correlation import (
    asymptotic_p,
    bonett_wright_interval,
    fisher_interval,
)

NO_MODELS = "needs the score and the AUROC of every model, which are not printed"


def claims(paper: Paper) -> list[Claim]:
    """Every claim on p-values and intervals that printed correlations can check."""
    return [
        *fisher(paper, "natural", "benchmark", "fisher_interval", 27),
        *fisher(paper, "main_results", "dataset", "interval", 44),
        *floors(paper),
        *p_values(paper),
        *partials(paper),
        *attainable(paper),
        *left_out(paper),
    ]


def fisher(paper: Paper, name: str, title: str, column: str, n: int) -> list[Claim]:
    """Fisher's interval of every rho of a table; Bonett and Wright's stands in the note."""
    found = []
    for row in paper.table(name).iter_rows(named=True):
        rho = number(row["rho"])
        text = Text(
            f"Fisher's 95 % interval of rho on {row[title]}", paper.where(name), row[column]
        )
        limits = [
            corners(lambda r, side=side: getattr(fisher_interval(r, n), side), rho)
            for side in ("low", "high")
        ]
        other = bonett_wright_interval(rho.value, n)
        note = f"Bonett and Wright's, for Spearman's rho: [{other.low:.3f}, {other.high:.3f}]"
        if name == "main_results":
            note += "; Section 5.2 names Fisher's z and a bootstrap, not which of them is printed"
        found.append(
            several(text, limits, note, series=f"Fisher's intervals of {paper.where(name)}")
        )
    return found


def floors(paper: Paper) -> list[Claim]:
    """Permutation p-values beside the least that their number of permutations can give.

    p = (1 + #{|rho_b| >= |rho|}) / (B + 1) is at least 1 / (B + 1).
    """
    found = []
    for key, permutations in (
        ("medical_p", "permutations"),
        ("natural_p", "permutations"),
        ("corruption_p", "corruption_permutations"),
        ("family_p", "permutations"),
    ):
        text, floor = paper.text(key), 1 / (paper.value(permutations) + 1)
        reachable = number(text.printed).agrees(floor, 1.0)
        note = f"the least p of {paper.text(permutations).printed} permutations is {floor:.2e}"
        if not reachable:
            note += f"; by the t distribution the least rho has p {_least_p(paper):.1e}"
        found.append(measured(text, (floor, floor), note, possible=reachable))
    rsna = paper.cell("main_results", "RSNA (CM, Pneu.)", "p")
    text = Text("Permutation p of class-matched STAMP on RSNA", paper.where("main_results"), rsna)
    floor = 1 / (paper.value("permutations") + 1)
    return [*found, measured(text, floor, possible=number(rsna).agrees(floor, 1.0))]


def _least_p(paper: Paper) -> float:
    """The asymptotic p of the least of the three medical correlations."""
    rho = number(paper.cell("main_results", "MIMIC-CXR", "rho")).value
    return float(asymptotic_p(rho, 44))


def p_values(paper: Paper) -> list[Claim]:
    """p by the t distribution with n - 2 degrees of freedom, over the rounding of rho."""
    found = [by_t(paper.text("raw_p"), paper.text("raw_rho").printed)]
    for row in paper.table("ablation").iter_rows(named=True):
        text = Text(f"p of {row['variant']}", paper.where("ablation"), row["p"], 40)
        found.append(by_t(text, row["rho"]))
    for row in paper.table("identifiability").iter_rows(named=True):
        name = f"p of {row['condition']}, {row['family']}"
        text = Text(name, paper.where("identifiability"), row["p"], _size(row))
        found.append(by_t(text, row["rho"]))
    rsna = paper.table("main_results").row(3, named=True)
    text = Text("p of STAMP on RSNA", paper.where("main_results"), rsna["p"], 44)
    # a permutation p of 10,000 permutations varies by this much
    error = 3 * (0.04 * 0.96 / paper.value("permutations")) ** 0.5
    found.append(by_t(text, rsna["rho"], error))
    for name in ("stamp", "vindr"):
        rho = paper.text(f"nuisance_{name}").printed
        found.append(by_t(paper.text(f"nuisance_{name}_p"), rho))
    least = min(
        (paper.text(f"residual_{name}").printed for name in ("vindr", "chexpert", "mimic")),
        key=lambda text: number(text).value,
    )
    rsna_text = paper.text("ood_monotone")
    return [
        *found,
        by_t(paper.text("residual_p"), least),
        by_t(paper.text("residual_p_appendix"), paper.text("residual_mimic_appendix").printed),
        relative_gap(paper),
        by_t(rsna_text, rsna["rho"], note="the rho of RSNA is the least of the four"),
    ]


def relative_gap(paper: Paper) -> Claim:
    """The rho of STAMP-TS and the relative income gap, which is called not significant."""
    text, rho = paper.text("income_relative_p"), paper.text("income_relative").printed
    p = corners(lambda r: float(asymptotic_p(r, text.n or 0)), number(rho))
    return stated(
        text,
        f"p {p[0]:.3f} to {p[1]:.3f}",
        p[1] >= 0.05,
        f"t with {(text.n or 0) - 2} degrees of freedom, rho {rho}; no evidence of a gap is not "
        "evidence that there is none",
    )


def _size(row: dict[str, str]) -> int:
    """The models of a row of Table 6: printed, those of the same family, or all 44 where pooled."""
    return int(row["n"] or {"CNN family": 15, "ViT/Modern": 16}.get(row["family"], 44))


def by_t(text: Text, rho: str, tolerance: float = 0.0, note: str = "") -> Claim:
    """A printed p beside the two-sided p of its rho."""
    if text.n is None:
        raise ValueError(f"{text.claim}: of how many models?")
    n = text.n
    bounds = corners(lambda r: float(asymptotic_p(r, n)), number(rho))
    about = f"t with {n - 2} degrees of freedom, rho {rho}, n {n}"
    return measured(text, bounds, "; ".join(filter(None, [about, note])), tolerance)


def partials(paper: Paper) -> list[Claim]:
    """p of the partial correlations: every controlled variable costs a degree of freedom."""
    found = []
    for name, controls in (("partial", 1), ("partial2", 2)):
        text, rho = paper.text(f"{name}_p"), number(paper.text(f"{name}_rho").printed)
        n = text.n or 0
        bounds = corners(lambda r, n=n, k=controls: float(asymptotic_p(r, n, k)), rho)
        plain = float(asymptotic_p(rho.value, n))
        note = f"df = n - 2 - {controls} = {n - 2 - controls}; with n - 2 it would be {plain:.1e}"
        found.append(measured(text, bounds, note))
    return found


def attainable(paper: Paper) -> list[Claim]:
    """Rank correlations of few models: without ties only some values exist."""
    names = paper.text("controlled_names").printed.split("; ")
    count = paper.text("controlled_count")
    listed = len(names)
    found = [
        stated(count, str(listed), {"five": 5}[count.printed] == listed, ", ".join(names)),
        *(
            reachable(paper.text(f"controlled_{name}"), (5, 6))
            for name in ("vindr", "chexpert", "mimic")
        ),
        reachable(paper.text("family_rho"), (10,)),
    ]
    return found


def reachable(text: Text, sizes: tuple[int, ...]) -> Claim:
    """Whether any order of so many untied models has the printed rho."""
    printed = number(text.printed)
    near = {n: nearest_spearman(n, printed.value) for n in sizes}
    exact = {n: [value for value in found if printed.agrees(value)] for n, found in near.items()}
    said = "; ".join(
        f"n = {n}: {' or '.join(f'{value:.4f}' for value in found)}" for n, found in near.items()
    )
    possible = any(exact.values())
    note = ""
    if not possible:
        tied = [n for n in sizes if n <= 6 and any(map(printed.agrees, tied_spearman(n)))]
        note = "nearest values without ties"
        note += f"; two tied models of {tied[0]} would give it" if tied else ""
    return stated(text, said, possible, note, possible)


def left_out(paper: Paper) -> list[Claim]:
    """Leave-one-out ranges, bootstrap intervals, and what they would need."""
    moved = max(
        max(abs(end.value - number(row["rho"]).value) for end in numbers(row["loo_range"]))
        for row in paper.table("natural").iter_rows(named=True)
    )
    bootstrap = Text(
        "Bootstrap intervals of the natural correlations",
        paper.where("natural"),
        paper.cell("natural", "ObjectNet", "bootstrap_interval") + ", ...",
    )
    ordering = paper.text("ordering_count")
    kept, of = (int(part) for part in ordering.printed.split("/"))
    share = paper.text("embedding_share")
    part, whole = (int(each) for each in share.printed.split(" ")[0].split("/"))
    chance = sum(comb(of, k) * (1 / 24) ** k * (23 / 24) ** (of - k) for k in range(kept, of + 1))
    return [
        measured(paper.text("loo_shift"), moved, "from the ranges of Table 3"),
        unchecked(paper.text("loo_medical"), "Table 1 has no leave-one-out ranges"),
        unchecked(bootstrap, "needs the score and the accuracy of every model"),
        stated(
            share, f"{100 * part / whole:.1f}%", f"({round(100 * part / whole)}%)" in share.printed
        ),
        unchecked(
            ordering,
            f"the variances are not printed; by chance one order of 24 is full: {of / 24:.1f} "
            f"models expected, {kept} or more with probability {chance:.0e}",
        ),
        unchecked(paper.text("ce_only_rho"), NO_MODELS),
        *(
            unchecked(paper.text(key), "needs the accuracy of every model by household")
            for key in ("income_high", "income_low", "income_absolute", "income_relative")
        ),
        *(
            unchecked(paper.text(key), "layerwise scores are not printed")
            for key in ("layer_motif", "layer_deep", "layer_mixer")
        ),
        *(
            unchecked(paper.text(key), NO_MODELS)
            for key in ("alarm_f1", "alarm_precision", "alarm_high")
        ),
        unchecked(paper.text("pair_counts"), "scores at other numbers of pairs are not printed"),
        unchecked(paper.text("embedding_delta"), "cosines of single pairs are not printed"),
    ]
