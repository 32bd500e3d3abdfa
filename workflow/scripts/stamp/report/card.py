"""A model's card as plain values: its score, what is behind it, and what a reader must doubt.

``audit-model`` prints it, for one model or for one of a study.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from stamp import __version__
from stamp.config.view_names import SOURCE
from stamp.report import flags
from stamp.report.scoreboard import OTHER, OTHER_PARTS

NUMBERS = (
    "stamp", "low", "high", "raw", "eta2", "within", "total", "se_bootstrap", "se_units",
    "temperature", "groups", "images", "n_semantic", "n_random", "n_units", "parameters",
)  # fmt: skip
BESIDE = tuple(f"{name}_{part}" for name in OTHER for part in OTHER_PARTS)
OF_RUN = ("model", "view", "ids", "images", "parameters", "device")  # of logits: no version
CHANGES = {
    "temporal": "two visits of a patient",
    "labeled": "two visits of a patient with equal labels",
    "changed": "two visits of a patient with other labels",
    "class": "two images of a class",
}
GROUPS = {"class": "classes"}  # what groups are, by kind of pairs; otherwise patients or the like


@dataclass(frozen=True, slots=True)
class Scoring:
    """How a model was scored; the same for all models of a study."""

    data: str  # the study, or the table or folder
    task: str
    classes: Sequence[str]
    semantic: str
    split: Sequence[str]
    seed: int
    level: float
    scaled: bool
    eligible: int | None = None  # semantic pairs that could have been drawn, if counted


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the numbers come from: versions, weights, and the command that repeats them."""

    versions: Mapping[str, str] = field(default_factory=dict)
    weights: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None
    command: str = ""


def origin(metadata: Mapping[str, str], command: str) -> Origin:
    """From the metadata of a model's outputs, which name versions and the weights."""
    known = {key: text for key, text in metadata.items() if text != "None"}
    weights = {
        key.removeprefix("weights_"): text
        for key, text in sorted(known.items())  # a file's header has no order
        if key.startswith("weights_")
    }
    others = (key for key in known if key not in OF_RUN and not key.startswith("weights_"))
    versions = {"stamp": __version__, **{key: known[key] for key in sorted(others)}}
    return Origin(versions, weights, known.get("device"), command)


def repeat(study: str, model: str, results: str) -> str:
    """The command that makes a zoo model's score and source metric, where they are not there."""
    parts = ("scores", f"evaluations/{SOURCE}")
    return making(study, [f"{results}/{study}/{part}/{model}.parquet" for part in parts])


def making(study: str, files: Sequence[str] = ()) -> str:
    """The command that makes files of a study, by default all of them, and of no other study."""
    return " ".join(
        ["snakemake", *files, "--cores 8 --resources gpu=1 --config", f"'studies=[{study}]'"]
    )


def card(
    row: Mapping[str, Any],
    scoring: Scoring,
    made: Origin,
    targets: Mapping[str, float] | None = None,
    among: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """All that a card says of a model.

    ``row`` is its row of the scoreboard, ``targets`` its outcomes where there are any, ``among``
    its place among other models.
    """
    metric = {
        "metric": row["metric"],
        "value": row["source_metric"],
        "se": row["source_se"],
        "low": row["source_low"],
        "high": row["source_high"],
        "no_skill": row["source_no_skill"],
        "n": row["source_n"],
        "reason": row["source_reason"],
    }
    raised = [
        {**asdict(one.flag), "words": one.words, "reason": one.reason} for one in flags.raised(row)
    ]
    return {
        "model": row["model"],
        **asdict(scoring),
        **{name: row[name] for name in NUMBERS},
        **{name: row[name] for name in BESIDE if name in row},
        "estimator": row.get("estimator"),
        "degenerate": row["degenerate"],
        "excluded": row["excluded"],
        "trained_on": row["trained_on"],
        "flags": flags.words(row),
        "raised": raised,
        "source_metric": metric,
        "targets": dict(targets or {}),
        "among": among,
        "meaning": meaning(row, scoring),
        "not_tested": not_tested(row, scoring, bool(targets)),
        **asdict(made),
    }


def meaning(row: Mapping[str, Any], scoring: Scoring) -> str:
    """What the number says and what it does not."""
    if row["stamp"] is None:
        return (
            "Its outputs hardly vary over the images, so that the formula's value means nothing "
            "and the model has no score. A constant model would get the best value of all."
        )
    groups = GROUPS.get(scoring.semantic, "groups, such as patients")
    return (
        f"About {max(row['eta2'], 0):.0%} of the variance of its outputs lies between {groups}, "
        f"the rest between images of one of them. This is how consistent the model is, not how "
        "right: read it beside the source metric, and compare it only with scores on the same "
        "pairs."
    )


def not_tested(row: Mapping[str, Any], scoring: Scoring, targets: bool) -> list[str]:
    """What no number of the card speaks of."""
    changes = CHANGES.get(scoring.semantic, "the images of a pair")
    found = [
        "Images from anywhere but the targets above."
        if targets
        else "Images from elsewhere: another hospital, country or camera may give other results.",
        f"Changes that do not occur between {changes}, such as another device.",
        "Single groups of patients or images: a mean can hide one in which the model fails.",
    ]
    if row["source_metric"] is None:
        found.append("Whether its answers are right: there is no source metric.")
    elif row["source_reason"]:
        found.append(f"Some classes: the source metric is over {row['source_reason']}.")
    if row["missing"]:
        found.append(f"Classes that it has no output for: {row['missing']}.")
    if row["trained_on"] is None:
        found.append("Whether it has seen these images or patients in training: nobody said.")
    return found
