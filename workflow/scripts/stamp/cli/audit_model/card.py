"""A model's card: its score, and in words what a reader needs to trust or doubt it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from textwrap import wrap
from typing import Any

from stamp.cli.audit_model.standing import Standing
from stamp.cli.one_model import Audit
from stamp.cli.report_lines import plural
from stamp.config.study import Study
from stamp.data.pairs import pool
from stamp.report.leaderboard import flags
from stamp.report.scoreboard import OTHER, OTHER_SCORES

METRICS = {"auroc": "macro-AUROC", "top1": "top-1 accuracy"}


GROUPS = {"class": "classes"}  # what groups are, by kind of pairs; otherwise patients or the like


NUMBERS = (
    "stamp", "low", "high", "estimator", "raw", "eta2", "within", "total", "se_bootstrap",
    "se_units", "temperature", "n_semantic", "n_random", "n_units", "parameters",
)  # fmt: skip


def record(audit: Audit, study: Study, key: str, among: Standing | None) -> dict[str, Any]:
    """All that the card says, as plain values."""
    metric = audit.evaluation.row(0, named=True)
    return {
        "model": key,
        "data": study.name,
        "task": study.task,
        "semantic": study.pairs.semantic,
        "split": study.pairs.split,
        "seed": audit.seed,
        "level": study.statistics.level,
        "scaled": study.calibration.scale,
        "images": len(pool(audit.pairs)),
        **{name: audit.row[name] for name in NUMBERS},
        **{name: audit.row[name] for name in OTHER_SCORES if name in audit.row},
        "degenerate": audit.row["degenerate"],
        "excluded": audit.row["excluded"],
        "flags": flags(audit.row),
        "source_metric": {part: metric[part] for part in ("metric", "value", "se", "n", "reason")},
        "among": None if among is None else asdict(among),
    }


def text(found: Mapping[str, Any]) -> str:
    """The card for a reader: the numbers, then what they mean."""
    kind, level = found["semantic"], f"{100 * found['level']:g} %"
    lines = [
        ("Model", _model(found)),
        (
            "Data",
            f"{found['data']}: {found['n_semantic']:,} {kind} and {found['n_random']:,} random "
            f"pairs of {found['images']:,} images, seed {found['seed']}",
        ),
        ("STAMP", _score(found, level)),
        (
            "Parts",
            f"SV {found['within']:.4g}, AV {found['total']:.4g}, eta squared {_n(found['eta2'])}",
        ),
        (
            "Temperature",
            f"{found['temperature']:.3f} fitted, {'used' if found['scaled'] else 'not used'}",
        ),
        ("Source", _metric(found["source_metric"])),
        ("Flags", found["flags"] or "none"),
        ("Standing", _standing(found["among"], level)),
    ]
    shown = [f"{name:<12}{line}" for name, line in lines if line]
    return "\n".join([*shown, "", *(wrap(_meaning(found), 88))])


def _model(found: Mapping[str, Any]) -> str:
    """The model's name, and its size where somebody knows it."""
    size = found["parameters"]
    return found["model"] + ("" if size is None else f", {size:,} parameters")


def _score(found: Mapping[str, Any], level: str) -> str:
    if found["stamp"] is None:
        return f"none; the formula gives {_n(found['raw'])}"
    interval = f"{level} interval {_n(found['low'])} to {_n(found['high'])}"
    other = OTHER[found["estimator"]]
    beside = f"by the {found['estimator']} estimator; {other}: {_n(found[f'{other}_stamp'])}"
    return f"{_n(found['stamp'])}, {interval}, {beside}"


def _metric(found: Mapping[str, Any]) -> str:
    name = METRICS[found["metric"]]
    if found["value"] is None:
        return f"{name} not known: {found['reason'] or 'no labels'}"
    left_out = f"; {found['reason']}" if found["reason"] else ""
    error = "" if found["se"] is None else f", standard error {found['se']:.3f}"
    return f"{name} {found['value']:.3f}{error} ({found['n']:,} labeled images{left_out})"


def _standing(among: Mapping[str, Any] | None, level: str) -> str:
    if among is None:
        return ""
    how = "from joint draws on the same pairs" if among["joint"] else "the others held fixed"
    return (
        f"place {among['place']} beside {plural(among['models'], 'reference model')}, {level} "
        f"interval {among['low']} to {among['high']} ({how}); above {among['below']:.0%} of them"
    )


def _meaning(found: Mapping[str, Any]) -> str:
    """What the number says and what it does not, in two sentences."""
    if found["stamp"] is None:
        return (
            "Its outputs hardly vary over the images, so that the formula's value means nothing "
            "and the model has no score. A constant model would get the best value of all."
        )
    groups = GROUPS.get(found["semantic"], "groups, such as patients")
    return (
        f"About {max(found['eta2'], 0):.0%} of the variance of its outputs lies between {groups}, "
        f"the rest between images of one of them. This is how consistent the model is, not how "
        "right: read it beside the source metric, and compare it only with scores on the same "
        "pairs."
    )


def _n(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"
