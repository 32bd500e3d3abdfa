"""The kinds of extra inference outputs, and which of them a study needs.

Named here as text, so that planning imports nothing heavy. ``stamp.inference.extra_outputs.extraction`` makes them,
``stamp.inference.extra_outputs.manifest`` reads them, a metric names those that it needs in ``stamp.config.metrics``, an
analysis in ``stamp.config.analyses``.
"""

from __future__ import annotations

from collections.abc import Iterable

# Each kind with the settings that it depends on.
KINDS: dict[str, tuple[str, ...]] = {
    "features": (),
    "targets": ("images",),
    "flip": ("images",),
    "rotation": ("images",),
    "brightness": ("images",),
    "contrast": ("images",),
    "crop": ("images",),
    "composite": ("images",),
    "tta": ("images",),
    "dropout": ("images", "samples", "head_dropout"),
    "gradcam": ("images",),
    "rotations": ("images",),
    "perturbed": ("images", "perturbations", "perturbation_norm"),
    "jacobian": ("images", "jacobian_images", "power_iterations", "task", "temperature"),
    "distances": ("pairs",),
}

OF_TARGETS = ("targets",)  # of the targets' images; all others are of the source's

# What some kinds depend on that is no setting of `extra_outputs`: the study's task, the temperature of its
# outputs, its semantic pairs.
OF_STUDY = ("task", "temperature", "pairs")


def in_order(kinds: Iterable[str]) -> list[str]:
    """Distinct kinds in the order of the registry; one that does not exist is an error."""
    wanted = set(kinds)
    if unknown := wanted - set(KINDS):
        raise ValueError(f"unknown kinds of extra outputs: {sorted(unknown)}")
    return [kind for kind in KINDS if kind in wanted]
