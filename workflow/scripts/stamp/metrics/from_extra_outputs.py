"""The metrics of one model that are made from extra inference outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from stamp.inference.extra_outputs.manifest import NotAvailable, note_of, read_output
from stamp.metrics import embeddings, stability
from stamp.metrics.inputs import ScaledOutputs
from stamp.metrics.value import NO_EXTRA_OUTPUTS, Measured, Value, missing
from stamp.scoring.stamp import health, probabilities, squared_distances

Pairs = tuple[np.ndarray, np.ndarray]
AUGMENTED = ("flip", "rotation", "brightness", "contrast", "crop", "composite")


@dataclass(frozen=True)
class TargetEmbeddings:
    """A model's embeddings of target images, if there are any, and the image ids of each view."""

    manifest: str | Path | None = None
    images: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        if self.manifest is None:
            raise NotAvailable(NO_EXTRA_OUTPUTS)
        every = [image for images in self.images.values() for image in images]
        found = read_output(self.manifest, "target_embeddings", every)
        return found["rows"], found["embeddings"]

    def of(self, view: str, member: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those members of a target that were forwarded, as rows, and their embeddings."""
        rows, h = self._arrays
        names = list(self.images)
        first = sum(len(self.images[name]) for name in names[: names.index(view)])
        own = rows - first
        inside = np.flatnonzero((own >= 0) & (own < len(member)))
        inside = inside[member[own[inside]]]
        return own[inside], h[inside]


@dataclass(frozen=True)
class ExtraInputs:
    """What metrics need beside a model's outputs on the pool: pairs and extra outputs.

    ``view`` are the rows of the source view. Pairs number the pool's rows; ``source`` are the
    outputs on the pool, over the classes ``there``.
    """

    manifest: str | Path | None
    view: pl.DataFrame
    semantic: Pairs
    random: Pairs
    source: ScaledOutputs
    there: np.ndarray
    target_embeddings: TargetEmbeddings = field(default_factory=TargetEmbeddings)
    exact_total: float | None = None  # AV by the exact estimator, where the study's is exact

    @cached_property
    def pool(self) -> np.ndarray:
        """The row numbers of the pool in the view."""
        return np.flatnonzero((self.view["role"] == "pool").to_numpy())

    @cached_property
    def groups(self) -> np.ndarray:
        """The group of each pool image, as a number."""
        return self.view["group"].rank("dense").fill_null(0).to_numpy()[self.pool]

    @cached_property
    def total(self) -> float:
        """AV of STAMP, by the study's estimator: the mean squared distance of random pairs."""
        if self.exact_total is not None:
            return self.exact_total
        return float(squared_distances(self.source.p, *self.random).mean())

    @property
    def degenerate(self) -> bool:
        """Whether the outputs say nothing, so that no metric of them does."""
        return health(self.source.p, self.total).degenerate

    def read(self, kind: str) -> dict[str, np.ndarray]:
        """The arrays of a kind of extra outputs, or :class:`NotAvailable`."""
        if self.manifest is None:
            raise NotAvailable(NO_EXTRA_OUTPUTS)
        return read_output(self.manifest, kind, self.view["image"].to_list())

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Rows of the view as rows of the pool."""
        return np.searchsorted(self.pool, rows)

    def outputs(self, logits: np.ndarray) -> np.ndarray:
        """Probabilities of logits [..., n, C], over the classes that are there."""
        flat = logits[..., self.there].reshape(-1, int(self.there.sum()))
        p = probabilities(flat, self.source.task, self.source.temperature)
        return p.reshape(*logits.shape[:-1], -1)

    @cached_property
    def pool_embeddings(self) -> np.ndarray:
        """The embeddings of the pool."""
        return self.read("embeddings")["embeddings"][self.pool]

    @cached_property
    def moments(self) -> embeddings.Moments:
        """The mean and covariance of the pool's embeddings."""
        return embeddings.Moments.of(self.pool_embeddings)

    def augmented(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """The outputs on images as they are, and on the augmented ones."""
        found = self.read(kind)
        return self.source.p[self.places(found["rows"])], self.outputs(found["logits"])


def _augmented(data: ExtraInputs, kind: str) -> Measured:
    p, q = data.augmented(kind)
    return Measured(stability.augmented_stamp(p, q, data.total), len(p))


def _dropout(data: ExtraInputs) -> Measured:
    samples = data.outputs(data.read("mc_dropout")["logits"])
    found = stability.mc_dropout(samples, data.source.task)
    note = note_of(data.manifest, "mc_dropout") if data.manifest else ""
    return Measured(Value(found.value, found.reason or note), samples.shape[1])


def _tta_flip(data: ExtraInputs) -> Measured:
    p, q = data.augmented("flip")
    return Measured(stability.tta_flip(p, q), len(p))


def _tta_multi(data: ExtraInputs) -> Measured:
    """Over eleven views: the image itself, its mirror image, and the nine fixed ones."""
    p, mirrored = data.augmented("flip")
    views = data.outputs(data.read("tta")["logits"])
    value = stability.tta_multi(np.concatenate([p[None], mirrored[None], views]))
    return Measured(value, len(p))


def _frechet(data: ExtraInputs) -> Measured:
    """Between images as they are and the same ones under all augmentations together."""
    h, composite = data.pool_embeddings, data.read("composite")
    place = data.places(composite["rows"])
    return Measured(embeddings.frechet_distance(h[place], composite["embeddings"]), len(place))


def _rotations(data: ExtraInputs) -> Measured:
    h, rotated = data.pool_embeddings, data.read("rotation_prediction")
    place = data.places(rotated["rows"])
    every = np.concatenate([h[place][None], rotated["embeddings"]])
    return Measured(embeddings.rotation_accuracy(every, data.groups[place]), len(place))


def _dice(data: ExtraInputs, name: str) -> Measured:
    values = data.read("gradcam")[name]
    return Measured(stability.gradcam_dice(values), len(values))


def _of_pool(measure: Callable[[ExtraInputs, np.ndarray], Value]) -> Callable[..., Measured]:
    """A metric of the embeddings of all pool images."""

    def found(data: ExtraInputs) -> Measured:
        h = data.pool_embeddings
        return Measured(measure(data, h), len(h))

    return found


MEASURES: dict[str, Callable[[ExtraInputs], Measured]] = {
    "mc_dropout": _dropout,
    "tta_flip": _tta_flip,
    "tta_multi": _tta_multi,
    "embedding_instability": _of_pool(
        lambda data, h: embeddings.embedding_instability(h, data.semantic)
    ),
    "gradcam_dice": lambda data: _dice(data, "dice"),
    "gradcam_dice_pairs": lambda data: _dice(data, "pair_dice"),
    "fd": _of_pool(
        lambda data, h: embeddings.feature_discriminability(h, data.source.labels, data.source.task)
    ),
    "fd_groups": _of_pool(lambda data, h: embeddings.feature_stamp(h, data.groups)),
    "fd_frechet": _frechet,
    "rot_acc": _rotations,
    "feature_alignment": _of_pool(
        lambda data, h: embeddings.feature_alignment(h, data.semantic, data.random)
    ),
    **{f"aug_{kind}": lambda data, kind=kind: _augmented(data, kind) for kind in AUGMENTED},  # type: ignore[misc]
    "dispersion_source": _of_pool(
        lambda data, h: embeddings.dispersion(h, data.source.p, data.source.task)
    ),
    "effective_rank": _of_pool(lambda data, h: embeddings.effective_rank(h)),
    "feature_norm": _of_pool(lambda data, h: embeddings.feature_norm(h)),
}


def target_value(
    name: str, data: ExtraInputs, view: str, member: np.ndarray, there: ScaledOutputs
) -> Measured:
    """A metric of a target's embeddings; ``there`` are the outputs on all its images.

    ``fd_target`` is the Frechet distance of the pool's embeddings and the target's.
    """
    try:
        rows, h = data.target_embeddings.of(view, member)
        if name == "dispersion":
            return Measured(embeddings.dispersion(h, there.p[rows], there.task), len(h))
        return Measured(embeddings.frechet_distance(data.moments, h), len(h))
    except NotAvailable as reason:
        return Measured(missing(str(reason)), 0)


def extra_values(data: ExtraInputs, wanted: Sequence[str]) -> dict[str, Measured]:
    """The wanted metrics that need extra outputs; a reason where one can't be had."""
    found = {}
    for name in wanted:
        if name in MEASURES:
            try:
                found[name] = MEASURES[name](data)
            except NotAvailable as reason:
                found[name] = Measured(missing(str(reason)), 0)
    return found
