"""Passes through a network beyond one per image of a view: extra outputs, and training."""

from __future__ import annotations

from collections.abc import Mapping

from stamp.config import view_names
from stamp.config.study import Study
from stamp.config.zoo import Model

TURNS = 3  # of each image whose rotation is predicted
VIEWS = 9  # of test-time augmentation
GRADIENT = 3  # passes that one with its gradient takes


def extra_passes(study: Study, images: Mapping[str, int]) -> dict[str, int]:
    """Forward passes of each kind of extra output of one model at most; a gradient counts as two.

    Targets are taken as one domain each. MC dropout before the last layer alone takes fewer.
    """
    how, source = study.extra_outputs, images[view_names.SOURCE]
    some = min(how.images, source)
    each = {
        "embeddings": source,
        "target_embeddings": sum(min(how.images, images[one]) for one in study.cached_targets),
        "tta": VIEWS * some,
        "mc_dropout": how.samples * some,
        "gradcam": 2 * GRADIENT * some,
        "rotation_prediction": TURNS * some,
        "perturbations": (how.perturbations + 1) * some,
        "jacobian": GRADIENT * (1 + how.power_iterations) * min(how.jacobian_images, some),
        "pixel_distances": 0,
    }
    return {kind: each.get(kind, some) for kind in (*study.kinds, *study.target_kinds)}


def training_passes(model: Model, images: int) -> int:
    """Training images times epochs; a probe learns from embeddings and takes none."""
    if model.trainer == "train":
        from stamp.models.training.train import DEFAULTS

        return images * model.load.get("epochs", DEFAULTS["epochs"])
    if model.trainer == "finetune":
        from stamp.models.training import finetune

        stages = [finetune.DEFAULTS[one] | model.load.get(one, {}) for one in ("stage1", "stage2")]
        return images * sum(stage["epochs"] for stage in stages)
    return 0
