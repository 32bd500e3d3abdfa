"""Scores by pretraining objective and by regime: means, spreads, ranges, rank tests, effects."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from stamp.paper.claims import Claim, Text, measured, several, unchecked
from stamp.paper.printed_tables import Paper, values
from stamp.stats.effect_sizes import (
    KruskalWallis,
    cliffs_delta,
    kruskal_wallis,
    mann_whitney,
    mean_difference,
)
from stamp.stats.ranks import Array

OBJECTIVES = {
    "CE-Supervised": "CE-Supervised fine-tuned",
    "SSL": "SSL probes",
    "VL-Contrastive": "VL-Contrastive probes",
    "TXV": "TorchXRayVision models",
}
REGIMES = {"vit": "NIH-ViT", "cnn": "NIH-CNN", "meta": "NIH-Meta"}
PROBES = "Foundation probe"
TXV = "TorchXRayVision"
AUTOENCODER = "TXV-ResNet-ae"
# The one model that makes the printed mean and spread of two regimes come out.
TWICE, HOME, GUEST = "MLP-Mixer-B/16", "NIH-Meta", "NIH-ViT"
MONTE_CARLO = 0.001  # limits of two bootstraps of 10,000 resamples differ by about half of this


def claims(paper: Paper) -> list[Claim]:
    """Every claim on groups of models that the printed scores can check."""
    groups = objectives(paper)
    return [
        *table_rows(paper, groups),
        *ranges(paper, groups),
        *tests(paper, groups),
        *by_regime(paper),
    ]


def objectives(paper: Paper) -> dict[str, Array]:
    """The printed scores of each objective of Table 4."""
    table = paper.table("stamp_main")
    stamp, group = values(table["stamp"]), table["group"].to_numpy()
    return {name: stamp[group == title] for name, title in OBJECTIVES.items()}


def regimes(paper: Paper) -> dict[str, Array]:
    """The printed scores of each regime, by our reading of who belongs to it."""
    table = paper.table("stamp_main").join(paper.table("regimes"), on="architecture")
    stamp, regime = values(table["stamp"]), table["regime"].to_numpy()
    return {name: stamp[regime == name] for name in dict.fromkeys(regime.tolist())}


def table_rows(paper: Paper, groups: dict[str, Array]) -> list[Claim]:
    """n, mean, spread and range of each objective as Table 4 prints them.

    The spreads of the other rows are those with divisor n, so that is what is compared.
    """
    found = []
    for row in paper.table("objective").iter_rows(named=True):
        name, scores = row["objective"], groups[row["objective"]]
        note = instead(paper, row) if name == "TXV" else ""

        def text(what: str, column: str, name: str = name, row: dict[str, str] = row) -> Text:
            return Text(f"{what} of {name}", paper.where("objective"), row[column])

        found += [
            measured(text("Models", "n"), float(scores.size)),
            measured(text("Mean STAMP", "mean"), float(scores.mean()), note),
            measured(
                text("Standard deviation", "sd"),
                float(scores.std()),
                note or f"with divisor n; with n - 1 {scores.std(ddof=1):.4f}",
            ),
            several(text("Range", "range"), [float(scores.min()), float(scores.max())], note),
        ]
    return found


def instead(paper: Paper, row: dict[str, str]) -> str:
    """What the TXV row is with the row's own largest value in place of the autoencoder's score."""
    table = paper.table("stamp_main")
    printed = float(row["range"].strip("[]").split(", ")[1])
    chosen = (table["group"] == OBJECTIVES["TXV"]).to_numpy()
    scores = values(table["stamp"])
    scores[(table["architecture"] == AUTOENCODER).to_numpy()] = printed
    found = scores[chosen]
    return (
        f"with {printed} for {AUTOENCODER} in place of the score of Table 8: "
        f"mean {found.mean():.4f}, standard deviation {found.std():.4f}"
    )


def ranges(paper: Paper, groups: dict[str, Array]) -> list[Claim]:
    """Ranges and means of objectives that the text repeats."""
    probes = np.concatenate([groups["SSL"], groups["VL-Contrastive"]])
    spans = {
        "ce_range": groups["CE-Supervised"],
        "probe_range": probes,
        "ssl_range": groups["SSL"],
        "vl_range": groups["VL-Contrastive"],
        "txv_range": groups["TXV"],
    }
    return [
        *(
            several(paper.text(key), [float(scores.min()), float(scores.max())])
            for key, scores in spans.items()
        ),
        measured(paper.text("txv_mean"), float(groups["TXV"].mean())),
        measured(paper.text("objective_n"), float(sum(each.size for each in groups.values()))),
    ]


def tests(paper: Paper, groups: dict[str, Array]) -> list[Claim]:
    """Rank tests and effects between objectives."""
    ce, ssl = groups["CE-Supervised"], groups["SSL"]
    kruskal = kruskal_wallis(list(groups.values()))
    whitney = mann_whitney(ce, ssl)
    apart = mean_difference(ce, ssl)
    found = [
        measured(paper.text("kruskal_h"), kruskal.h),
        measured(paper.text("kruskal_p"), kruskal.p),
        measured(
            paper.text("mwu_p"),
            whitney.p_greater,
            f"{whitney.method}, one-sided; two-sided {whitney.p_two_sided:.1e}",
        ),
        several(
            paper.text("difference"),
            [apart.low, apart.high],
            f"difference {apart.value:.4f}; percentile bootstrap, groups resampled apart",
            MONTE_CARLO,
        ),
    ]
    for key, other in (("ssl", "SSL"), ("vl", "VL-Contrastive"), ("txv", "TXV")):
        delta = cliffs_delta(ce, groups[other], resamples=1)
        gap = ce.min() - groups[other].max()
        note = f"the least CE-supervised score is {gap:.4f} above the largest of {other}"
        found.append(measured(paper.text(f"delta_{key}"), delta.value, note))
    return found


def kruskal_of_regimes(groups: dict[str, Array]) -> KruskalWallis:
    """The test of the five regimes; RAD-DINO is in none of them."""
    return kruskal_wallis([groups[name] for name in (*REGIMES.values(), PROBES, TXV)])


def counted_twice(paper: Paper, groups: dict[str, Array]) -> dict[str, str]:
    """Of two regimes and their test, what one model that is counted in both of them changes."""
    table = paper.table("stamp_main")
    model = values(table.filter(table["architecture"] == TWICE)["stamp"])
    guest = np.concatenate([groups[GUEST], model])
    home = groups[HOME][groups[HOME] != model[0]]
    h = kruskal_of_regimes({**groups, GUEST: guest}).h
    return {
        GUEST: f"with {TWICE} counted here too, n = {guest.size}, {_moments(guest)}; {HOME} needs "
        "it as well: it seems counted twice",
        HOME: f"without {TWICE}, n = {home.size}, {_moments(home)}",
        "test": f"with {TWICE} counted in {GUEST} and in {HOME} {h:.2f}",
    }


def _moments(scores: Array) -> str:
    return f"mean {scores.mean():.4f}, spread {scores.std():.4f} to {scores.std(ddof=1):.4f}"


def by_regime(paper: Paper) -> list[Claim]:
    """The regimes of Section B.5: their members are our reading, under which two of three fit."""
    groups = regimes(paper)
    twice = counted_twice(paper, groups)
    found = []
    for key, name in REGIMES.items():
        scores = groups[name]
        why = [twice[name]] if name in twice else []
        about = f"{scores.size} models, by our reading of who belongs to it"
        spread = (float(scores.std()), float(scores.std(ddof=1)))
        found += [
            measured(paper.text(f"{key}_mean"), float(scores.mean()), "; ".join([about, *why])),
            measured(
                paper.text(f"{key}_sd"), spread, "; ".join(["with divisor n and n - 1", *why])
            ),
        ]
    nih = [groups[name] for name in REGIMES.values()]
    kruskal = kruskal_of_regimes(groups)
    least = min(cliffs_delta(each, groups[PROBES], resamples=1).value for each in nih)
    pairs = {
        f"{one} and {other}": mann_whitney(groups[one], groups[other]).p_two_sided
        for one, other in combinations(REGIMES.values(), 2)
    }
    said = "; ".join(f"{names}: {p:.4f}" for names, p in pairs.items())
    return [
        *found,
        measured(
            paper.text("regime_h"),
            kruskal.h,
            f"five regimes, RAD-DINO in none; {twice['test']}",
        ),
        measured(paper.text("regime_p"), kruskal.p),
        measured(paper.text("regime_delta"), least, "the least of the three"),
        measured(paper.text("regime_mwu"), min(pairs.values()), f"two-sided, exact; {said}"),
        unchecked(paper.text("regime_auroc"), "the AUROC of single models is not printed"),
    ]
