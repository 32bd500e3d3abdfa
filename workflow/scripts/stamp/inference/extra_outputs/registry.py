"""Which function makes each kind of extra output that ``config.registries`` lists."""

from __future__ import annotations

from collections.abc import Callable

from stamp.config.registries.extra_outputs import KINDS
from stamp.images.augmentations import AUGMENTATIONS
from stamp.inference.extra_outputs import augmented, embeddings
from stamp.inference.extra_outputs.gradcam import gradcam
from stamp.inference.extra_outputs.jacobian import jacobian
from stamp.inference.extra_outputs.mc_dropout import mc_dropout
from stamp.inference.extra_outputs.output_files import OutputKinds
from stamp.inference.extra_outputs.perturbations import perturbations
from stamp.inference.extra_outputs.pixel_distances import pixel_distances
from stamp.inference.extra_outputs.runner import ArrayStream, Runner

MAKERS: dict[str, Callable[[Runner], ArrayStream]] = {
    "embeddings": embeddings.embeddings,
    "target_embeddings": embeddings.target_embeddings,
    **{name: augmented.augmented(name) for name in AUGMENTATIONS if name != "composite"},
    "composite": augmented.composite,
    "tta": augmented.tta,
    "mc_dropout": mc_dropout,
    "gradcam": gradcam,
    "rotation_prediction": embeddings.rotation_prediction,
    "perturbations": perturbations,
    "jacobian": jacobian,
    "pixel_distances": pixel_distances,
}

EXTRA_OUTPUTS = OutputKinds(MAKERS, KINDS)
