"""Whether the printed numbers agree with each other: columns, averages, correlations, texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial as bind
from itertools import combinations, product
from math import isnan, sqrt

import numpy as np
import polars as pl

from stamp.paper.claims import Claim, Range, Text, measured, several, stated, unchecked
from stamp.paper.printed import Printed, corners, number, numbers
from stamp.paper.tables import Paper, values
from stamp.stats.dependent_correlations import (
    difference_interval,
    shared_range,
    steiger,
    tost,
    williams,
)
from stamp.stats.ranks import Array, mid_ranks, spearman

TARGETS = ("vindr", "chexpert", "mimic")
TITLES = {"vindr": "VinDr-CXR", "chexpert": "CheXpert", "mimic": "MIMIC-CXR"}
MARGIN = 0.1  # difference of two correlations below which we would call them equivalent
OURS = "STAMP (ours)"
REFERENCE = "NIH AUROC (ref.)"
CUSTOM = "CE-Supervised fine-tuned"


def claims(paper: Paper) -> list[Claim]:
    """Every claim that other printed numbers support or contradict."""
    return [
        *differences(paper),
        *averages(paper),
        *bests(paper),
        *spans(paper),
        *corruptions(paper),
        *counts(paper),
        *triples(paper),
        *dependent(paper),
        *twice(paper),
    ]


def differences(paper: Paper) -> list[Claim]:
    """Table 9: its difference column, and what caption and text say of it."""
    table = paper.table("temporal_delta")
    where, names = paper.where("temporal_delta"), table["architecture"].to_list()
    temporal, other = values(table["temporal"]), values(table["synthetic"])
    delta = other - temporal
    found = []
    for row in table.iter_rows(named=True):
        bounds = corners(lambda t, s: s - t, number(row["temporal"]), number(row["synthetic"]))
        text = Text(f"Delta of {row['architecture']}", where, row["delta"])
        note = "second column minus first"
        found.append(measured(text, bounds, note, series="Delta of Table 9"))
    chosen = {
        "delta_vit": ["ViT-Base/16", "DeiT-Base/16"],
        "delta_resnet": [name for name in names if name.startswith("ResNet")],
    }
    scores = paper.table("stamp_main").filter(pl.col("group") == CUSTOM)
    same = int((values(scores["stamp"]) == temporal).sum())
    positive = int((temporal > other).sum())
    falling = int((np.diff(temporal) <= 0).sum())
    copied = Text("Temporal STAMP is that of Table 8", where, f"{len(names)} models")
    span = [float(delta.min()), float(delta.max())]
    return [
        *found,
        stated(copied, f"{same} equal", same == len(names)),
        stated(
            paper.text("delta_sign"),
            f"temporal minus the other column is positive for {positive} of {len(names)}",
            positive == len(names),
            "the header calls the other column synthetic, the caption labeled; the column Delta is "
            "the other column minus temporal",
        ),
        measured(paper.text("delta_mean"), float(delta.mean()), "with the sign of the column"),
        several(paper.text("delta_range"), span, "with the sign of the column"),
        stated(
            paper.text("delta_correlation"),
            "the range of the column Delta of Table 9, which is of scores",
            paper.text("delta_correlation").printed != paper.text("delta_range").printed,
            "a difference of scores is none of correlations; rho of labeled pairs is not printed",
        ),
        *(
            several(paper.text(key), [float(part.min()), float(part.max())])
            for key, members in chosen.items()
            for part in [delta[[names.index(name) for name in members]]]
        ),
        stated(
            paper.text("delta_sorted"),
            f"temporal STAMP falls in {falling} of {len(names) - 1} steps",
            falling in (0, len(names) - 1),
        ),
    ]


def averages(paper: Paper) -> list[Claim]:
    """The average column of Table 2."""
    found = []
    for row in paper.table("baseline_comparison").iter_rows(named=True):
        parts = [number(row[name]) for name in ("vindr", "chexpert", "rsna", "mimic")]
        bounds = corners(lambda *four: sum(four) / 4, *parts)
        text = Text(
            f"Average rho of {row['method']}", paper.where("baseline_comparison"), row["average"]
        )
        found.append(measured(text, bounds, series="Averages of Table 2"))
    return found


def bests(paper: Paper) -> list[Claim]:
    """Who leads Table 2, and on which models."""
    table = paper.table("baseline_comparison")
    by = {row["method"]: row for row in table.iter_rows(named=True)}

    def rho(method: str, column: str) -> float:
        return number(by[method][column]).value

    sources = [name for name, row in by.items() if row["domain"] == "src"]
    targets = [name for name, row in by.items() if row["domain"] == "tgt"]
    labeled = rho(REFERENCE, "average")
    found = [
        measured(
            paper.text("best_average"),
            max(rho(name, "average") for name in sources),
            f"over rows of 31, 40 and 44 models; NIH AUROC, which needs no target data either, has "
            f"{labeled:.3f}",
        )
    ]
    for name in TARGETS:
        best = max(sources, key=bind(lambda method, column: rho(method, column), column=name))
        note = f"{best}, n = {by[best]['n']}"
        found.append(measured(paper.text(f"best_{name}"), rho(best, name), note))
    ahead = max(rho(name, "average") for name in targets)
    edge = max(rho(name, "mimic") for name in targets)
    return [
        *found,
        stated(
            paper.text("target_methods"),
            f"{rho(OURS, 'average'):.3f} against {ahead:.3f}",
            rho(OURS, "average") > ahead,
        ),
        stated(
            paper.text("mimic_edge"),
            f"the better has {edge:.3f}, STAMP {rho(OURS, 'mimic'):.3f}",
            edge > rho(OURS, "mimic"),
        ),
        measured(
            paper.text("like_for_like"),
            paper.value("ce_only_rho"),
            "0.855 is of 44 models; Section 7 prints 0.820 for 31",
        ),
    ]


def spans(paper: Paper) -> list[Claim]:
    """Ranges over rows of Tables 1 and 3 that abstract and text give."""
    medical = {
        row["dataset"]: number(row["rho"]).value
        for row in paper.table("main_results").iter_rows(named=True)
    }
    natural = paper.table("natural")
    three = [medical[name] for name in ("VinDr-CXR", "CheXpert", "MIMIC-CXR")]
    partial = values(natural["partial_rho"])
    copied = [
        (title, paper.cell("baseline_comparison", OURS, name), medical[TITLES[name]])
        for name, title in TITLES.items()
    ]
    return [
        several(paper.text("range_medical"), [min(three), max(three)]),
        measured(
            paper.text("hospitals"),
            min(*three, medical["RSNA (macro)"]),
            f"RSNA; class-matched {medical['RSNA (CM, Pneu.)']:.3f}",
        ),
        measured(paper.text("least_natural"), float(values(natural["rho"]).min())),
        several(paper.text("range_partial"), [float(partial.min()), float(partial.max())]),
        *(
            measured(Text(f"rho of STAMP on {title}", "Table 2", printed), value, "Table 1")
            for title, printed, value in copied
        ),
    ]


def corruptions(paper: Paper) -> list[Claim]:
    """The summary of Table 11."""
    table = paper.table("corruption")
    rho = values(table["rho"])
    by = dict(zip(table["corruption"], rho.tolist(), strict=True))
    noises = [value for name, value in by.items() if name.endswith("noise")]
    return [
        measured(paper.text("corruption_mean"), float(rho.mean())),
        measured(paper.text("corruption_least"), float(rho.min()), min(by, key=lambda k: by[k])),
        measured(paper.text("corruption_most"), float(rho.max()), max(by, key=lambda k: by[k])),
        several(paper.text("corruption_noise"), [min(noises), max(noises)]),
    ]


def counts(paper: Paper) -> list[Claim]:
    """Numbers of models, metrics and benchmarks that other parts of the paper imply."""
    named = paper.table("metrics")
    shown = int((named["in_table_2"] == "yes").sum())
    custom = int((paper.table("stamp_main")["group"] == CUSTOM).sum())
    gaps = paper.table("identifiability").filter(pl.col("condition") == "centroid gap")
    family = sum(int(n) for n, name in zip(gaps["n"], gaps["family"], strict=True) if name != "All")
    benchmarks = len(TARGETS) + 1 + len(paper.table("natural"))
    ablation = {
        row["variant"]: number(row["rho"]) for row in paper.table("ablation").iter_rows(named=True)
    }
    turned = -ablation["SV/AV (raw ratio)"].value
    mirror = Text(
        "rho of STAMP is minus that of SV/AV",
        paper.where("ablation"),
        ablation["STAMP = 1-SV/AV"].text,
    )
    return [
        measured(
            paper.text("metrics_count"),
            float(len(named)),
            f"named in Section 5.3; Table 2 has {shown}",
        ),
        measured(paper.text("custom_count"), float(custom), "models of the two-stage protocol"),
        measured(paper.text("gap_count"), float(family), "CNN and ViT/Modern together"),
        measured(
            paper.text("sv_sign"),
            -ablation["-SV only"].value,
            "Table 7 prints -0.19 for minus SV, so that SV alone has the other sign",
        ),
        measured(mirror, turned),
        measured(paper.text("benchmarks"), float(benchmarks), "four medical and five natural"),
        measured(
            paper.text("all_models"),
            paper.value("models") + float(paper.text("zoo_natural").printed),
        ),
    ]


def triples(paper: Paper) -> list[Claim]:
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


def dependent(paper: Paper) -> list[Claim]:
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


def twice(paper: Paper) -> list[Claim]:
    """What the paper says in two places, once beside the other."""
    found = []
    for name in TARGETS:
        again = paper.text(f"residual_{name}_appendix")
        note = f"Section {again.where} of the same quantity; neither says which line is meant"
        found.append(measured(paper.text(f"residual_{name}"), number(again.printed).value, note))
    rsna = [each.value for each in numbers(paper.text("probit_rsna_appendix").printed)]
    found.append(several(paper.text("probit_rsna"), rsna, "Section C.1 of the same quantity"))
    for one, other in (("trend_text", "trend_figure"), ("noise_inflates", "noise_suppresses")):
        first, second = paper.text(one), paper.text(other)
        agree = first.printed == second.printed
        found.append(
            stated(first, f"{second.printed} ({second.where})", agree, "said in two places")
        )
    return [
        *found,
        unchecked(
            paper.text("temporal_best"), "rho of labeled pairs with the targets is not printed"
        ),
        unchecked(
            paper.text("inside_out"), "two data sets and two sets of models are not comparable"
        ),
        unchecked(
            paper.text("natural_baseline"),
            "printed for Dollar Street alone; needs the accuracy of every model",
        ),
    ]
