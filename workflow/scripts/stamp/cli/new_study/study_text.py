"""The files of a new study as text: one line per guess, with the reason as a comment."""

from __future__ import annotations

from typing import Any

import yaml

from stamp.cli.new_study.data_found import Found
from stamp.cli.new_study.proposal import Proposal, domains, labeled_classes, named_split

FILL_IN = "please fill in"


def inline(value: Any) -> str:
    """A value as YAML on one line."""
    text = yaml.safe_dump(
        value, default_flow_style=True, width=10**6, allow_unicode=True, sort_keys=False
    )
    return text.removesuffix("...\n").strip()


def line(indent: int, key: str, value: Any, comment: str = "") -> str:
    """One line of a file."""
    return f"{' ' * indent}{key}: {inline(value)}" + (
        f"  # {comment}" if comment and comment != key else ""
    )


def dataset_text(found: Found, study: str) -> str:
    """The entry of a data set."""
    assert found.entry is not None
    lines = [
        "",
        f"# Written by `python -m stamp new-study {study}`; config/README.md has every key.",
        f"{inline(found.key)}:",
        line(2, "adapter", found.entry["adapter"]),
        line(2, "title", found.key, "what it is"),
        line(2, "access", "form", "its files are there already"),
        line(2, "licence", "unknown", FILL_IN),
        line(2, "citation", "unknown", FILL_IN),
        line(2, "root", found.entry["root"]),
        "  options:",
    ]
    options = found.entry["options"].items()
    lines += [line(4, key, value, found.reasons.get(key, "")) for key, value in options]
    return "\n".join(lines) + "\n"


def study_text(new: Proposal) -> str:
    """The study's file."""
    splits, pairs = new.splits, new.pairs
    lines = [
        f"# Written by `python -m stamp new-study {new.name}`. Every line is a guess from the data",
        "# that you may edit; config/README.md has every key.",
        line(0, "title", new.title),
        line(0, "task", new.source.task),
        line(0, "classes", new.source.classes, "in the order of the models' outputs"),
        "",
        "source:",
        line(2, "dataset", new.source.key),
    ]
    if len(several := domains(new.source)) > 1:
        lines.append(f"  # domains: {inline(several)}  # keep those that the models know")
    if splits.train:
        lines.append(line(2, "train", splits.train, "what the workflow trains learns from it"))
    if splits.val:
        lines.append(line(2, "val", splits.val, "by which fine-tuning chooses its best epoch"))
    pixels = {"size": new.pixels.size, "channels": new.pixels.channels}
    lines += [
        "",
        line(0, "preprocessing", pixels, new.pixels.why),
        "",
        "pairs:",
        line(2, "split", splits.pairs, "models should not have been trained on it"),
        line(2, "semantic", pairs.kind, pairs.why),
    ]
    if pairs.also:
        lines.append(f"  # also: {inline(pairs.also)}  # further kinds that these images have")
    lines += [
        line(2, "max_pairs", pairs.number, "how many pairs are drawn"),
        "",
        "calibration:",
        line(2, "split", splits.calibration, splits.why_calibration),
        line(2, "n_images", new.calibration),
        "",
        *_targets(new),
        line(0, "zoo", [new.name], "`python -m stamp add-model` fills it"),
    ]
    return "\n".join(lines) + "\n"


def _targets(new: Proposal) -> list[str]:
    if not new.targets:
        return ["# No targets: the study ends in a ranked leaderboard.", ""]
    lines = ["targets:"]
    for key, found in new.targets.items():
        lines += [f"  {key}:", line(4, "dataset", found.key)]
        if split := named_split(found):
            lines.append(line(4, "split", split, "only images of this split"))
        outcomes = "domain" if len(domains(found)) > 1 else "whole"
        lines.append(line(4, "outcomes", outcomes, "what is correlated with the score"))
        known = labeled_classes(found, new.source)
        if new.source.task == "multilabel" and known != new.source.classes:
            lines.append(line(4, "classes", {"all": known}, "it is labeled for these only"))
    return [*lines, ""]


def zoo_text(name: str) -> str:
    """An empty zoo."""
    return (
        f"# The models of study '{name}': one entry per model, put here by `python -m stamp\n"
        f"# add-model --study {name} ...`, or by hand (docs/add-a-model.md).\n"
    )
