"""A study in numbers before it runs, from its file, its zoo and the numbers of its images."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from stamp.cli.cost.operations import gflops
from stamp.cli.cost.passes import extra_passes, training_passes
from stamp.config import view_names
from stamp.config.datasets import Dataset
from stamp.config.plan import Plan
from stamp.config.study import Study
from stamp.config.zoo import Model
from stamp.data.planned_caches import images_of, planned_caches
from stamp.data.transfer.disk import readable_bytes

LOGIT = 4  # bytes of one output
PREDICTION = 16  # bytes of a streamed image
EMBEDDING = 2_048 * 4  # bytes of one image, a wide network's last layer
IMAGES = " (images)"
BACKWARD = 2  # a backward pass takes as much as two forward passes


@dataclass(frozen=True, slots=True)
class StudyCost:
    """Bytes, passes and hours of a study; ``left`` are those still to write or to download."""

    study: str
    models: int
    downloads: float
    downloads_left: float
    caches: int
    caches_left: int
    logits: int
    extra_outputs: int
    forwards: int
    training: int
    gpu_hours: float
    not_counted: list[str]
    assumed: int
    left_out: list[str]

    @property
    def to_write(self) -> int:
        """The bytes that the study still writes, downloads among them."""
        return int(self.downloads_left) + self.caches_left + self.logits + self.extra_outputs

    @property
    def cells(self) -> list[str]:
        """A row of the table."""
        more = " and more" if any(one.endswith(IMAGES) for one in self.not_counted) else ""
        sizes = (self.downloads, self.caches, self.logits, self.extra_outputs)
        return [
            self.study,
            f"{self.models}",
            *(readable_bytes(size) if size else "none" for size in sizes),
            *(f"{number:,}" if number else "none" for number in (self.forwards, self.training)),
            f"{self.gpu_hours:,.1f}{more}",
        ]


def study_cost(study: Study, plan: Plan, tflops: float) -> StudyCost:
    """All of it for one study."""
    datasets = _datasets(study, plan)
    caches = planned_caches(study, plan)
    training = (view for model in study.models.values() for view in study.training_views(model))
    views = (*study.forwarded_views, *study.streamed_targets, *training)
    counted = {view: images_of(study, view, plan) for view in dict.fromkeys(views)}
    images = {view: number or 0 for view, number in counted.items()}
    run = [model for model in study.models.values() if not model.precomputed]
    passes = [_model_passes(study, model, images) for model in run]
    operations = sum(
        (one.forwards + (1 + BACKWARD) * one.training) * gflops(model).number
        for model, one in zip(run, passes, strict=True)
    )
    return StudyCost(
        study=study.name,
        models=len(study.models),
        downloads=sum(1e9 * (one.gigabytes or 0) for one in datasets),
        downloads_left=sum(1e9 * (one.gigabytes or 0) for one in datasets if not _there(one)),
        caches=sum(one.size or 0 for one in caches),
        caches_left=sum(one.missing for one in caches),
        logits=_logits(study, images),
        extra_outputs=sum(one.stored for one in passes),
        forwards=sum(one.forwards for one in passes),
        training=sum(one.training for one in passes),
        gpu_hours=operations / (tflops * 1e3) / 3600,
        not_counted=[
            *(f"{one.key} (download)" for one in datasets if one.gigabytes is None),
            *(f"{view}{IMAGES}" for view, number in counted.items() if number is None),
        ],
        assumed=sum(gflops(model).assumed for model in run),
        left_out=list(study.unavailable),
    )


@dataclass(frozen=True, slots=True)
class ModelPasses:
    """One model's passes through images, and the bytes of its extra outputs."""

    forwards: int
    training: int
    stored: int


def _model_passes(study: Study, model: Model, images: dict[str, int]) -> ModelPasses:
    views = (*study.forwarded_views, *study.streamed_targets)
    extra = extra_passes(study, images)
    forwards = sum(images[view] for view in views) + sum(extra.values())
    if model.trainer == "probe":
        forwards += images[view_names.TRAIN] + images[view_names.VAL]
    stored = sum(
        number * (EMBEDDING if "embeddings" in kind else len(study.classes) * LOGIT)
        for kind, number in extra.items()
    )
    return ModelPasses(forwards, training_passes(model, images.get(view_names.TRAIN, 0)), stored)


def _logits(study: Study, images: dict[str, int]) -> int:
    """The bytes of all models' logits, and of their predictions of streamed targets."""
    kept = sum(images[view] for view in study.forwarded_views) * len(study.classes) * LOGIT
    streamed = sum(images[view] for view in study.streamed_targets) * PREDICTION
    return len(study.models) * (kept + streamed)


def _datasets(study: Study, plan: Plan) -> list[Dataset]:
    """The data sets of a study that come from elsewhere: those that others relabel count once."""
    views = (view_names.SOURCE, *study.targets)
    names = [name for view in views for name in study.view(view)["datasets"]]
    found = [plan.datasets[name] for name in names]
    owners = [plan.datasets[one.relabels] if one.relabels else one for one in found]
    folders = {
        one.root: owner if owner.root == one.root else one
        for one, owner in zip(found, owners, strict=True)
    }
    return [one for one in folders.values() if not one.made and not one.owned]


def _there(dataset: Dataset) -> bool:
    """Whether something lies in the folder of a data set already."""
    return Path(dataset.root).is_dir() and bool(os.listdir(dataset.root))
