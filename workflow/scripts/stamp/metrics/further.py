"""The metrics of one model that need more than its outputs on the source: pairs, extra outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from stamp.inference.extra_outputs.manifest import NotAvailable, note_of, read_output
from stamp.metrics import embeddings, perturbed
from stamp.metrics.outputs import Value
from stamp.scoring.stamp import health, probabilities, squared_distances

Pairs = tuple[np.ndarray, np.ndarray]
NO_EXTRA_OUTPUTS = "no extra inference outputs were made"
DEGENERATE = "degenerate: the outputs are nearly the same for every image"
AUGMENTED = ("flip", "rotation", "brightness", "contrast", "crop", "composite")


@dataclass(frozen=True)
class Elsewhere:
    """What there is of a model's extra outputs on targets, with the image ids of each view."""

    manifest: str | Path | None = None
    images: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def _features(self) -> tuple[np.ndarray, np.ndarray]:
        if self.manifest is None:
            raise NotAvailable(NO_EXTRA_OUTPUTS)
        every = [image for images in self.images.values() for image in images]
        found = read_output(self.manifest, "target_embeddings", every)
        return found["rows"], found["embeddings"]

    def features(self, view: str, member: np.ndarray) -> np.ndarray:
        """The features of those images of a target that were forwarded and are members."""
        rows, h = self._features
        names = list(self.images)
        first = sum(len(self.images[name]) for name in names[: names.index(view)])
        own = rows - first
        inside = (own >= 0) & (own < len(member))
        return h[inside][member[own[inside]]]


@dataclass(frozen=True)
class Further:
    """What there is of a model beside its outputs on the pool.

    ``view`` are the rows of the source view. Pairs number the pool's rows; ``p`` and ``labels`` are
    of the pool, over the classes ``there``.
    """

    manifest: str | Path | None
    view: pl.DataFrame
    semantic: Pairs
    random: Pairs
    p: np.ndarray
    labels: np.ndarray
    there: np.ndarray
    task: str
    temperature: float
    elsewhere: Elsewhere = field(default_factory=Elsewhere)

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
        """AV: the mean squared distance of the outputs of the random pairs."""
        return float(squared_distances(self.p, *self.random).mean())

    @property
    def degenerate(self) -> bool:
        """Whether the outputs say nothing, so that no metric of them does."""
        return health(self.p, self.total).degenerate

    def read(self, kind: str) -> dict[str, np.ndarray]:
        """The arrays of a kind of pass, or :class:`NotAvailable`."""
        if self.manifest is None:
            raise NotAvailable(NO_EXTRA_OUTPUTS)
        return read_output(self.manifest, kind, self.view["image"].to_list())

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Rows of the view as rows of the pool."""
        return np.searchsorted(self.pool, rows)

    def outputs(self, logits: np.ndarray) -> np.ndarray:
        """Probabilities of logits [..., n, C], over the classes that are there."""
        flat = logits[..., self.there].reshape(-1, int(self.there.sum()))
        return probabilities(flat, self.task, self.temperature).reshape(*logits.shape[:-1], -1)

    @cached_property
    def _features(self) -> np.ndarray:
        return self.read("embeddings")["embeddings"][self.pool]

    def features(self) -> np.ndarray:
        """The features of the pool, read once."""
        return self._features

    @cached_property
    def moments(self) -> embeddings.Moments:
        """The mean and covariance of the pool's features."""
        return embeddings.Moments.of(self._features)

    def changed(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """The outputs on images as they are, and on the changed ones."""
        found = self.read(kind)
        return self.p[self.places(found["rows"])], self.outputs(found["logits"])


def _augmented(data: Further, kind: str) -> tuple[Value, int]:
    p, q = data.changed(kind)
    return perturbed.augmented_stamp(p, q, data.total), len(p)


def _dropout(data: Further) -> tuple[Value, int]:
    samples = data.outputs(data.read("mc_dropout")["logits"])
    found = perturbed.mc_dropout(samples, data.task)
    note = note_of(data.manifest, "mc_dropout") if data.manifest else ""
    return Value(found.value, found.reason or note), samples.shape[1]


def _tta_flip(data: Further) -> tuple[Value, int]:
    p, q = data.changed("flip")
    return perturbed.tta_flip(p, q), len(p)


def _tta_multi(data: Further) -> tuple[Value, int]:
    """Over eleven views: the image itself, its mirror image, and the nine fixed ones."""
    p, mirrored = data.changed("flip")
    views = data.outputs(data.read("tta")["logits"])
    return perturbed.tta_multi(np.concatenate([p[None], mirrored[None], views])), len(p)


def _frechet(data: Further) -> tuple[Value, int]:
    """Between images as they are and the same ones under all changes together."""
    h, changed = data.features(), data.read("composite")
    place = data.places(changed["rows"])
    return embeddings.frechet_distance(h[place], changed["embeddings"]), len(place)


def _rotations(data: Further) -> tuple[Value, int]:
    h, turned = data.features(), data.read("rotation_prediction")
    place = data.places(turned["rows"])
    every = np.concatenate([h[place][None], turned["embeddings"]])
    return embeddings.rotation_accuracy(every, data.groups[place]), len(place)


def _dice(data: Further, name: str) -> tuple[Value, int]:
    values = data.read("gradcam")[name]
    return perturbed.gradcam_dice(values), len(values)


def _of_pool(measure: Callable[[Further, np.ndarray], Value]) -> Callable[..., tuple[Value, int]]:
    """A metric of the features of all pool images."""

    def found(data: Further) -> tuple[Value, int]:
        h = data.features()
        return measure(data, h), len(h)

    return found


MEASURES: dict[str, Callable[[Further], tuple[Value, int]]] = {
    "mc_dropout": _dropout,
    "tta_flip": _tta_flip,
    "tta_multi": _tta_multi,
    "embedding_instability": _of_pool(
        lambda data, h: embeddings.embedding_instability(h, data.semantic)
    ),
    "gradcam_dice": lambda data: _dice(data, "dice"),
    "gradcam_dice_pairs": lambda data: _dice(data, "pair_dice"),
    "fd": _of_pool(lambda data, h: embeddings.feature_discriminability(h, data.labels, data.task)),
    "fd_groups": _of_pool(lambda data, h: embeddings.feature_stamp(h, data.groups)),
    "fd_frechet": _frechet,
    "rot_acc": _rotations,
    "feature_alignment": _of_pool(
        lambda data, h: embeddings.feature_alignment(h, data.semantic, data.random)
    ),
    **{f"aug_{kind}": lambda data, kind=kind: _augmented(data, kind) for kind in AUGMENTED},  # type: ignore[misc]
    "dispersion": _of_pool(lambda data, h: embeddings.dispersion(h, data.p, data.task)),
    "effective_rank": _of_pool(lambda data, h: embeddings.effective_rank(h)),
    "feature_norm": _of_pool(lambda data, h: embeddings.feature_norm(h)),
}


def target_distance(data: Further, view: str, member: np.ndarray) -> tuple[Value, int]:
    """The Frechet distance of the pool's features and a target's, and how many of the latter."""
    try:
        own, there = data.moments, data.elsewhere.features(view, member)
    except NotAvailable as reason:
        return Value(float("nan"), str(reason)), 0
    return embeddings.frechet_distance(own, there), len(there)


def further_values(data: Further, wanted: Sequence[str]) -> dict[str, tuple[Value, int]]:
    """Every wanted metric with the number of images that it is of; a reason where there is none."""
    found = {}
    for name in wanted:
        if name in MEASURES:
            try:
                found[name] = MEASURES[name](data)
            except NotAvailable as reason:
                found[name] = (Value(float("nan"), str(reason)), 0)
    return found
