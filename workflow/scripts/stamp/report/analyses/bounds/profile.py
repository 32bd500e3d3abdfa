"""The terms of the paper's error bound, each for itself, and two kinds of eta squared.

``class_eta2`` and ``patient_eta2`` are the share of the outputs' variance between classes and
between groups, both without bias by the number of images (``exact_groups``). ``spread_ratio`` is
S_W / S_B of the classes, ``mean_ratio`` the mean over classes of r_y = sigma_proj^2 / gamma_y^2,
``agreement`` the second over the first, ``cv`` the standard deviation of r_y over its mean.

What these are not: S_W is a trace, sigma_proj a variance along one direction, gamma the distance to
one centroid and S_B an average over all, so no inequality joins r_bar and S_W / S_B, and cv bounds
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stamp.report.profiles.centroids import class_terms, members
from stamp.report.profiles.model_profile import CONSTANT, ProfileInputs
from stamp.report.profiles.rows import entry, finite
from stamp.scoring.stamp import exact_groups

TERMS = ("class_eta2", "patient_eta2", "spread_ratio", "mean_ratio", "agreement", "cv")


def rows(inputs: ProfileInputs) -> Iterator[dict[str, Any]]:
    """The terms, and r_y of each class."""
    design = inputs.design
    if inputs.constant:
        yield from (entry(name, reason=CONSTANT) for name in TERMS)
        return
    if design.semantic == "class":
        yield entry("patient_eta2", reason="the groups are classes: see class_eta2")
    else:
        groups = exact_groups(inputs.p, inputs.groups)
        yield entry("patient_eta2", None, finite(groups.stamp_iid), n=groups.groups)
    belong = members(inputs.labels, design.task, design.classes)
    if len(belong.names) < 2:
        few = f"{len(belong.names)} classes have enough labeled images for a centroid"
        names = [name for name in TERMS if name != "patient_eta2"]
        yield from (entry(name, reason=few) for name in names)
        return
    yield from _terms(inputs.p, belong)


def _terms(p: np.ndarray, belong: Any) -> Iterator[dict[str, Any]]:
    classes = exact_groups(p[belong.rows], belong.classes, weights="size")
    within, total = classes.within / 2, classes.total_iid / 2
    count = len(belong.names)
    yield entry("class_eta2", None, finite(classes.stamp_iid), n=count)
    ratio = class_terms(p, belong).ratio
    for name, value, size in zip(belong.names, ratio, belong.sizes, strict=True):
        yield entry("class_ratio", name, finite(value), n=int(size))
    between = total - within
    spread = within / between if between > 0 else float("nan")
    mean = float(ratio.mean())
    found = {
        "spread_ratio": spread,
        "mean_ratio": mean,
        "agreement": mean / spread,
        "cv": float(ratio.std(ddof=1) / mean),
    }
    none = "classes explain none of the outputs' variance"
    for name, value in found.items():
        known = finite(value)
        yield entry(name, None, known, n=count, reason=None if known is not None else none)
