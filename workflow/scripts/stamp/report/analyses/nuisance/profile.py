"""How far outputs move under augmentation, against how far random pairs are apart.

The nuisance ratio is ``SV_aug / AV = 1 - Aug-STAMP``: SV_aug is the mean squared distance of the
outputs of an image and of its augmented self, AV that of the study's random pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stamp.inference.extra_outputs.manifest import NotAvailable
from stamp.report.profiles.model_profile import CONSTANT, ProfileInputs
from stamp.report.profiles.rows import entry

AUGMENTATIONS = ("composite", "flip", "rotation", "brightness", "contrast", "crop")


def augmented_distances(inputs: ProfileInputs, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the pool, and the squared distance of each one's output and its augmented one."""
    at, outputs, _ = inputs.extra_outputs.outputs(kind)
    return at, np.sum((outputs - inputs.p[at]) ** 2, axis=1)


def rows(inputs: ProfileInputs) -> Iterator[dict[str, Any]]:
    """``ratio`` of each augmentation."""
    if inputs.constant:
        yield from (entry("ratio", kind, reason=CONSTANT) for kind in AUGMENTATIONS)
        return
    random = inputs.random_distances()
    for kind in AUGMENTATIONS:
        try:
            at, distances = augmented_distances(inputs, kind)
        except NotAvailable as missing:
            yield entry("ratio", kind, reason=str(missing))
            continue
        found = inputs.scored(distances, (at, at), random)
        ends = {"low": 1 - found["high"], "high": 1 - found["low"]}
        yield entry("ratio", kind, 1 - found["value"], **ends, n=found["n"])
