"""The metrics of one model that are made from extra inference outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from stamp.inference.extra_outputs.manifest import NotAvailable, note_of, read_output
from stamp.metrics import stability
from stamp.metrics.inputs import ScaledOutputs
from stamp.metrics.of_embeddings import (
    domain_distance,
    embedding_graphs,
    embeddings,
    transferability,
)
from stamp.metrics.of_embeddings.principal_axes import PrincipalAxes
from stamp.metrics.value import NO_EXTRA_OUTPUTS, NO_LABELS, Measured, Value, missing
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

    @cached_property
    def axes(self) -> PrincipalAxes:
        """The principal axes of the pool's embeddings."""
        return PrincipalAxes.of(self.pool_embeddings)

    @cached_property
    def on_axes(self) -> np.ndarray:
        """The pool's embeddings on its principal axes."""
        return self.axes.on(self.pool_embeddings)

    @cached_property
    def on_leading_axes(self) -> np.ndarray:
        """The same on so few axes that a linear model of them means something."""
        return self.axes.on_leading(self.pool_embeddings)

    @cached_property
    def kernel(self) -> domain_distance.SourceKernel:
        """The kernel of the pool's embeddings."""
        return domain_distance.SourceKernel.of(self.on_axes)

    @cached_property
    def clouds(self) -> list[np.ndarray]:
        """The embeddings of each class of the pool."""
        source = self.source
        return embedding_graphs.class_clouds(self.pool_embeddings, source.labels, source.task)

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


def _of_clouds(measure: Callable[[Sequence[np.ndarray]], Value]) -> Callable[..., Measured]:
    """A signal of the graphs of the classes' embeddings."""

    def found(data: ExtraInputs) -> Measured:
        return Measured(measure(data.clouds), sum(map(len, data.clouds)))

    return found


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
    "logme": _of_pool(
        lambda data, _: transferability.logme(
            data.on_leading_axes, data.source.labels, data.source.task
        )
    ),
    "h_score": _of_pool(
        lambda data, _: transferability.h_score(
            data.on_leading_axes, data.source.labels, data.source.task
        )
    ),
    "laplacian_logdet": _of_clouds(embedding_graphs.laplacian_logdet),
    "ollivier_ricci": _of_clouds(embedding_graphs.ollivier_ricci),
    "persistence_h0": _of_clouds(embedding_graphs.persistence_h0),
    "persistence_h1": _of_clouds(embedding_graphs.persistence_h1),
}


@dataclass(frozen=True, slots=True)
class DomainOutputs:
    """Outputs on all images of a target as a domain uses them.

    ``own`` are the model's; ``labeled`` those over the classes that the domain is scored on, with
    its labels.
    """

    own: ScaledOutputs
    labeled: ScaledOutputs | None


@dataclass(frozen=True, slots=True)
class _TargetImages:
    """The embeddings of a domain's images, and the rows of the view that they are of."""

    h: np.ndarray
    rows: np.ndarray
    there: DomainOutputs
    axes: PrincipalAxes  # the source's

    def transferred(self, measure: Callable[[np.ndarray, np.ndarray, str], Value]) -> Value:
        """A transferability score of the labeled target."""
        labeled = self.there.labeled
        if labeled is None:
            return missing(NO_LABELS)
        return measure(self.axes.on_leading(self.h), labeled.labels[self.rows], labeled.task)


# Each takes what there is of the source and of the domain of a target.
TARGET_MEASURES: dict[str, Callable[[ExtraInputs, _TargetImages], Value]] = {
    "dispersion": lambda _, images: embeddings.dispersion(
        images.h, images.there.own.p[images.rows], images.there.own.task
    ),
    "fd_target": lambda data, images: embeddings.frechet_distance(data.moments, images.h),
    "mmd": lambda data, images: domain_distance.mmd(data.kernel, data.axes.on(images.h)),
    "proxy_a_distance": lambda data, images: domain_distance.proxy_a_distance(
        data.on_axes, data.axes.on(images.h)
    ),
    "logme_target": lambda _, images: images.transferred(transferability.logme),
    "h_score_target": lambda _, images: images.transferred(transferability.h_score),
}


def target_value(
    name: str, data: ExtraInputs, view: str, member: np.ndarray, there: DomainOutputs
) -> Measured:
    """A metric of the embeddings of those images of a target that are members of a domain."""
    try:
        rows, h = data.target_embeddings.of(view, member)
        images = _TargetImages(h, rows, there, data.axes)
        return Measured(TARGET_MEASURES[name](data, images), len(h))
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
