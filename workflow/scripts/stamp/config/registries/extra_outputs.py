"""The kinds of extra inference outputs, and the settings that each depends on.

Text only, so that planning imports nothing heavy. ``stamp.inference.extra_outputs`` makes and reads
them; a metric names the kinds it needs in ``stamp.config.registries.metrics``, an analysis in
``stamp.config.registries.analyses``.
"""

from __future__ import annotations

from collections.abc import Iterable

# Each kind with the settings that it depends on.
KINDS: dict[str, tuple[str, ...]] = {
    "embeddings": (),
    "target_embeddings": ("images",),
    "flip": ("images",),
    "rotation": ("images",),
    "brightness": ("images",),
    "contrast": ("images",),
    "crop": ("images",),
    "composite": ("images",),
    "tta": ("images",),
    "mc_dropout": ("images", "samples", "head_dropout"),
    "gradcam": ("images",),
    "rotation_prediction": ("images",),
    "perturbations": ("images", "perturbations", "perturbation_norm"),
    "jacobian": ("images", "jacobian_images", "power_iterations", "task", "temperature"),
    "pixel_distances": ("pairs",),
}

OF_TARGETS = ("target_embeddings",)  # on images of the targets; all others are of the source

# What some kinds depend on that the study sets elsewhere: its task, the temperature of its outputs,
# its semantic pairs.
OF_STUDY = ("task", "temperature", "pairs")


def in_order(kinds: Iterable[str]) -> list[str]:
    """Distinct kinds in the order above; an unknown one is an error."""
    wanted = set(kinds)
    if unknown := wanted - set(KINDS):
        raise ValueError(f"unknown kinds of extra outputs: {sorted(unknown)}")
    return [kind for kind in KINDS if kind in wanted]
