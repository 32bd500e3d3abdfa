"""Whether the printed numbers agree with each other: columns, averages, counts, texts."""

from __future__ import annotations

from functools import partial as bind

import numpy as np
import polars as pl

from stamp.paper.claims import Claim, Text, measured, several, stated, unchecked
from stamp.paper.printed_numbers import corners, number, numbers
from stamp.paper.printed_tables import OURS, REFERENCE, TARGETS, Paper, values
from stamp.paper.themes import correlation_triples, score_tests

TITLES = dict(zip(TARGETS, ("VinDr-CXR", "CheXpert", "MIMIC-CXR"), strict=True))
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
        *correlation_triples.claims(paper),
        *score_tests.claims(paper),
        *twice(paper),
    ]


def differences(paper: Paper) -> list[Claim]:
    """Table 9: its difference column, and what caption and text say of it."""
    table = paper.table("temporal_delta")
    where, names = paper.where("temporal_delta"), table["architecture"].to_list()
    temporal, other = values(table["temporal"]), values(table["synthetic"])
    delta = other - temporal
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
        *_delta_column(table, where),
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


def _delta_column(table: pl.DataFrame, where: str) -> list[Claim]:
    found = []
    for row in table.iter_rows(named=True):
        bounds = corners(lambda t, s: s - t, number(row["temporal"]), number(row["synthetic"]))
        text = Text(f"Delta of {row['architecture']}", where, row["delta"])
        note = "second column minus first"
        found.append(measured(text, bounds, note, series="Delta of Table 9"))
    return found


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
